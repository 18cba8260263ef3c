"""A virtual machine with Python, this package and a kernel's modules: enough to run ``sojourn`` as on a host.

Its clock is the host's: there is no virtual time.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterable
from pathlib import Path

from sojourn.linux import kernel, programs
from sojourn.linux.machine import Archive

_LOADED = """
import contextlib, ctypes, io, json, sys
from pathlib import Path
from sojourn.cli.app import status
import sojourn.linux.host
# With its table and an option that is a number, which need more packages than summary.json and texts.
sys.argv = ["sojourn", "run", sys.argv[1], "--jobs", "2"]
with contextlib.redirect_stdout(io.StringIO()):
    assert status() == 0
maps = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if ".so" in line}
print(json.dumps({"modules": [m.__file__ for m in sys.modules.values() if getattr(m, "__file__", None)],
                  "libraries": sorted(maps)}))
"""
_TINY = """
experiment = { duration = "1 s", repeat = 2 }
queue = [{ aqm = "codel" }]
link = { rate = "1 Mbit/s" }
traffic = [{ kind = "bulk", rtt = "20 ms", start = "0..100 ms" }]
"""
_NOT_NEEDED = {"test", "idlelib", "tkinter", "ensurepip", "lib2to3", "turtledemo", "__pycache__", "site-packages"}
_NOT_NEEDED |= {"dist-packages", "tests", "_studies"}


HERE = Path(__file__).parent
PATIENCE_S = 900.0
MEMORY_MIB = 2048
_TOOLS = ("ip", "modprobe")


def cases(
    folder: Path,
    files: dict[str, str],
    told: list[dict],
    *,
    without: Iterable[str] = (),
    extra: dict[str, bytes] | None = None,
    tools: Iterable[str] = (),
) -> dict[str, dict]:
    """Boots the machine and tells by name how each case of ``first_process`` ended there.

    ``files`` are in the cases' working directory, ``without`` are modules to leave out, ``extra`` are files by path,
    ``tools`` programs.
    """
    booted = kernel.locate("emulated")
    first = f"#!{sys.executable} -u\n".encode() + (HERE / "first_process.py").read_bytes()
    given = {"/init": first, "/cases.json": json.dumps({"files": files, "cases": told}).encode(), **(extra or {})}
    initrd = folder / "initrd"
    initrd.write_bytes(_initial_files(booted, given, set(without), [*_TOOLS, *tools], folder))
    said = _boot(booted.image, initrd)
    found = {}
    for line in said.splitlines():
        if line.startswith("@case "):
            name, brace, answer = line.removeprefix("@case ").partition(" {")
            found[name] = json.loads(brace.strip() + answer)
    assert "@end" in said, said[-2000:]
    return found


def _boot(image: Path, initrd: Path) -> str:
    """All that the machine says until it is over."""
    machine = [
        str(programs.require(programs.QEMU)), "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot",
        "-machine", "q35", "-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", str(MEMORY_MIB), "-serial", "stdio",
        "-kernel", str(image), "-initrd", str(initrd), "-append",
        "console=ttyS0 quiet loglevel=2 mitigations=off panic=-1",
    ]  # fmt: skip
    said = b""
    with subprocess.Popen(machine, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as qemu:
        assert qemu.stdout is not None
        limit = time.monotonic() + PATIENCE_S
        while time.monotonic() < limit:
            if select.select([qemu.stdout], [], [], 1.0)[0]:
                some = os.read(qemu.stdout.fileno(), 1 << 16)
                if not some:
                    break
                said += some
        qemu.kill()
    return said.decode(errors="replace").replace("\r\n", "\n")


def _initial_files(
    booted: kernel.Kernel, given: dict[str, bytes], without: set[str], tools: Iterable[str], folder: Path
) -> bytes:
    archive = Archive()
    archive.add_device("/dev/console", 5, 1)
    archive.add_directories(["proc", "sys", "tmp", "run", "etc"])
    archive.add_file(
        "/etc/passwd", b"root:x:0:0:root:/tmp:/bin/sh\nsshd:x:100:65534:sshd:/run/sshd:/usr/sbin/nologin\n"
    )
    for path, content in given.items():
        archive.add_file(path, content, executable=True)
    _python(archive, folder)
    for tool in tools:
        path = programs.find(tool)
        assert path is not None, tool
        for place in {f"/sbin/{tool}", str(path)} | ({"/bin/sh"} if tool == "sh" else set()):
            _program(archive, place, path.resolve())
    _modules(archive, booted, without, folder)
    return archive.to_bytes()


def _program(archive: Archive, place: str, path: Path) -> None:
    archive.add_file(place, path.read_bytes(), executable=True)
    for library in _libraries(path):
        archive.add_file(str(library), library.read_bytes(), executable=True)


def _libraries(program: Path) -> list[Path]:
    """The shared libraries that a program loads, its loader included; none for a static program."""
    # Ignore the libraries that this process has preloaded, or finds in its own folders.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
    listing = subprocess.run(["ldd", str(program)], env=plain, capture_output=True, text=True, check=False)
    assert "not found" not in listing.stdout, listing.stdout
    return [Path(path) for path in re.findall(r"(/\S+) \(0x", listing.stdout)]


def _python(archive: Archive, folder: Path) -> None:
    """The interpreter, its library, and the packages that a run loads, where they are here."""
    tiny = folder / "tiny.toml"
    tiny.write_text(_TINY, encoding="utf-8")
    command = [sys.executable, "-c", _LOADED, str(tiny)]
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    loaded = json.loads(told)
    _program(archive, sys.executable, Path(sys.executable).resolve())
    settings = Path(sys.prefix, "pyvenv.cfg")
    if settings.exists():
        archive.add_file(str(settings), settings.read_bytes())
        # The environment's own library is found from the interpreter that it was made of.
        archive.add_file(sys._base_executable, Path(sys._base_executable).read_bytes(), executable=True)
    _tree(archive, Path(sysconfig.get_path("stdlib")))
    packages = Path(sysconfig.get_path("platlib"))
    modules = [Path(module) for module in loaded["modules"] if packages in Path(module).parents]
    tops = {module.relative_to(packages).parts[0] for module in modules}
    for top in sorted(tops):
        place = packages / top
        if place.is_dir():
            _tree(archive, place)
        else:
            archive.add_file(str(place), place.read_bytes())
    for described in packages.glob("*.dist-info"):
        _tree(archive, described)
    for library in loaded["libraries"]:
        # By the names under which others ask for what it needs, too.
        _program(archive, library, Path(library))


def _tree(archive: Archive, root: Path) -> None:
    for path in sorted(root.rglob("*")):
        if path.is_file() and not _NOT_NEEDED & set(path.relative_to(root).parts):
            archive.add_file(str(path), path.read_bytes(), executable=path.name == "sojourn-agent")


def _modules(archive: Archive, booted: kernel.Kernel, without: set[str], folder: Path) -> None:
    """What networking needs of the kernel's modules, with their list as depmod(8) makes it."""
    target = folder / "lib/modules" / booted.release
    for part in ("net/**/*.ko*", "lib/**/*.ko*", "drivers/net/veth.ko*", "drivers/net/macvlan.ko*"):
        for path in sorted((booted.modules / "kernel").glob(part)):
            if path.name.split(".")[0] not in without:
                copy = target / path.relative_to(booted.modules)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, copy)
    for listing in ("modules.builtin", "modules.order", "modules.builtin.modinfo"):
        if (booted.modules / listing).is_file():
            shutil.copy(booted.modules / listing, target)
    depmod = programs.find("depmod")
    assert depmod is not None
    subprocess.run([str(depmod), "-b", str(folder), booted.release], check=True)
    for path in sorted(target.rglob("*")):
        if path.is_file():
            archive.add_file(f"/lib/modules/{booted.release}/{path.relative_to(target)}", path.read_bytes())
