"""``sojourn kernel``: the kernels of the Linux backend."""

from __future__ import annotations

import json as json_
import sys
from pathlib import Path
from typing import Annotated

import typer

from sojourn.cli.options import Json
from sojourn.cli.output import show
from sojourn.cli.parameters import argument, flag, folder, option
from sojourn.linux.build import build as made
from sojourn.linux.kernel import built, cached, own
from sojourn.page.sheet import listing

app = typer.Typer(help="List and build the kernels of the Linux backend.", no_args_is_help=True, add_completion=False)


@app.command("list")
def list_(json: Json = False) -> None:
    """Show the kernels available to the Linux backend."""
    found = [*built(), *(kernel for kernel in (cached(), own()) if kernel is not None)]
    rows = [
        {"release": one.release, "machine": "user-mode" if one.user_mode else "emulated", "image": str(one.image)}
        for one in found
    ]
    for old in built(outdated=True):
        why = "was built by an earlier version and must be built again"
        print(f"{old.release} {why}: sojourn kernel build {old.release}", file=sys.stderr)
    if json:
        print(json_.dumps(rows))
        return
    if not rows:
        print("No kernels yet. `sojourn kernel build 6.1` builds one; the first run downloads Debian's.")
        return
    show(listing(("kernel", "machine", "image"), (list(row.values()) for row in rows)))


@app.command("build")
def build(
    version: Annotated[str | None, argument("Like 6.1; with --source it can be omitted.", "[VERSION]")] = None,
    source: Annotated[
        Path | None,
        option(
            "The kernel's source: a tarball or an unpacked folder; without it Debian's linux-source-VERSION.", "PATH"
        ),
    ] = None,
    out: Annotated[
        Path | None, folder("Keep the kernel in this folder, not in the cache; --kernel DIR then runs it.")
    ] = None,
    config: Annotated[Path | None, option("More of the kernel's options, CONFIG_NAME=y; with --out.", "FILE")] = None,
    again: Annotated[
        bool, flag("Build Debian's newest source of this version even if one is in the cache.", "--again")
    ] = False,
) -> None:
    """Build a kernel as User-Mode Linux. Takes minutes, once; --kernel VERSION then runs it."""
    kernel = made(
        version, source, out, lambda line: print(line, file=sys.stderr, flush=True), config=config, again=again
    )
    name = out or version or kernel.release
    print(f"{kernel.release}: {kernel.image}; sojourn run FILE --backend linux --kernel {name} runs it")
