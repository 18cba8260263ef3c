"""``sojourn completion``: tab completion for bash, zsh and fish, by typer."""

from __future__ import annotations

from typing import Annotated, Literal

from typer.completion import get_completion_script  # type: ignore[attr-defined]

from sojourn.cli.parameters import argument

_INSTALLED = {
    "bash": 'In ~/.bashrc: eval "$(sojourn completion bash)"',
    "zsh": 'In ~/.zshrc, after compinit: eval "$(sojourn completion zsh)"',
    "fish": "In ~/.config/fish/config.fish: sojourn completion fish | source",
}


def command(shell: Annotated[Literal["bash", "zsh", "fish"], argument("bash, zsh or fish")]) -> None:
    """Print the completion script of a shell; its first line says how to install it."""
    print(f"# {_INSTALLED[shell]}")
    print(get_completion_script(prog_name="sojourn", complete_var="_SOJOURN_COMPLETE", shell=shell))
