"""``sojourn completion``: tab completion for bash, zsh and fish."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer

from sojourn.cli.app import HELPER
from sojourn.cli.names import LISTS, What
from sojourn.runs.backends import BACKENDS

FILES = ":files"
"""The candidate that stands for file names."""


class Shell(StrEnum):
    """A shell."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def command(shell: Annotated[Shell, typer.Argument(help="bash, zsh or fish")]) -> None:
    """Print the completion script of a shell; its first line says how to install it."""
    print(_SCRIPTS[shell].replace("HELPER", HELPER).replace("FILES", FILES), end="")


def helper(context: typer.Context, words: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    """Print the candidates for the last of these words."""
    *before, current = words or [""]
    for candidate in candidates(context.find_root().command, before, current):
        print(candidate)


def candidates(root: Any, before: list[str], current: str) -> list[str]:
    """The candidates for ``current`` after these words, ``FILES`` for file names; ``root`` is typer's command."""
    found = root
    path: list[str] = []
    waiting: Any = None
    for word in before:
        if waiting is not None:
            waiting = None
        elif word.startswith("-"):
            option = next((option for option in found.params if word in option.opts), None)
            waiting = None if option is None or option.is_flag else option
        elif word in getattr(found, "commands", {}):
            found = found.commands[word]
            path.append(word)
    if waiting is not None:
        names = _choices(waiting) or _VALUES.get(waiting.opts[0], lambda: [])()
    elif current.startswith("-"):
        names = sorted({name for param in found.params for name in param.opts if name.startswith("-")} | {"--help"})
    elif hasattr(found, "commands"):
        names = [name for name, each in found.commands.items() if not each.hidden]
    else:
        arguments = [param for param in found.params if param.param_type_name == "argument"]
        own = [name for argument in arguments for name in _choices(argument)]
        names = own or _ARGUMENTS.get(" ".join(path), lambda: [FILES])()
    return [name for name in names if name == FILES or name.startswith(current)]


def _choices(param: Any) -> list[str]:
    """The values of a parameter that has few."""
    kind: Any = param.type_descriptor.annotation
    return [str(one) for one in kind] if isinstance(kind, type) and issubclass(kind, StrEnum) else []


def _names(what: What) -> list[str]:
    return [entry["name"] for entry in LISTS[what]()]


def _formats() -> list[str]:
    from sojourn.export import FORMATS

    return list(FORMATS)


_VALUES: dict[str, Callable[[], list[str]]] = {
    "--aqm": partial(_names, What.AQM),
    "--tcp": partial(_names, What.TCP),
    "--backend": lambda: list(BACKENDS),
    "--on": lambda: ["vm", "host", FILES],
    "--format": _formats,
    "--width": lambda: ["column", "page"],
    **dict.fromkeys(("--out", "--load", "--kernel"), lambda: [FILES]),
}
"""The values of each option; options not listed here have free values."""
_ARGUMENTS: dict[str, Callable[[], list[str]]] = {
    "compare": partial(_names, What.AQM),
    "study run": lambda: [*_names(What.STUDIES), FILES],
    "study list": lambda: [],
    "plot": lambda: [],
    "explore": lambda: [],
    "doctor": lambda: [],
}
"""The arguments of each command; commands not listed here take files."""

_SCRIPTS = {
    Shell.BASH: """\
# In ~/.bashrc: eval "$(sojourn completion bash)"
_sojourn() {
    local current="${COMP_WORDS[COMP_CWORD]}" line
    COMPREPLY=()
    while IFS= read -r line; do
        if [ "$line" = "FILES" ]; then
            compopt -o filenames 2>/dev/null
            while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current")
        else
            COMPREPLY+=("$line")
        fi
    done < <("${COMP_WORDS[0]}" HELPER -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _sojourn sojourn
""",
    Shell.ZSH: """\
# In ~/.zshrc, after compinit: eval "$(sojourn completion zsh)"
_sojourn() {
    local -a lines
    lines=("${(@f)$("${words[1]}" HELPER -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if (( ${lines[(Ie)FILES]} )); then
        lines=("${(@)lines:#FILES}")
        _files
    fi
    lines=("${(@)lines:#}")
    (( ${#lines} )) && compadd -- "${lines[@]}"
}
compdef _sojourn sojourn
""",
    Shell.FISH: """\
# In ~/.config/fish/config.fish: sojourn completion fish | source
function __sojourn
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] HELPER -- $words[2..] 2>/dev/null)
        if test "$line" = "FILES"
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c sojourn -f -a '(__sojourn)'
""",
}
