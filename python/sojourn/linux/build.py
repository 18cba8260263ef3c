"""Builds User-Mode Linux from a kernel's source: a program that runs the kernel's own network code in virtual time."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from sojourn._core import ExperimentError
from sojourn.linux import kernel, programs
from sojourn.linux.kernel import Kernel
from sojourn.linux.programs import LinuxError

TOOLS = {"gcc": "gcc", "make": "make", "flex": "flex", "bison": "bison", "bc": "bc", "tar": "tar", "xz": "xz-utils"}
"""Programs that a build calls, with Debian's package of each."""
WANTED = Path(__file__).with_name("user_mode.config")
NEEDED = ("UML_TIME_TRAVEL_SUPPORT", "HOSTFS", "VETH", "NET_SCH_HTB", "NET_SCH_NETEM", "ENABLE_DEFAULT_TRACERS")
"""Options that every run needs."""
DEBIAN = "https://deb.debian.org/debian"
SUITES = ("stable", "testing", "unstable", "experimental")
"""Debian's suites, which have kernels newer than the machine's own release."""
HZ = 250
"""Timer interrupts a second, as Debian's kernels have."""
TELL_EVERY = 100
"""Compiled files between two lines about progress."""
_SWITCHED_ON = re.compile(r"^CONFIG_(\w+)=y$", re.MULTILINE)
_HZ = re.compile(r"(config HZ\n\tint\n\tdefault) \d+")
_EXTENDED = "have_xstate_support = 1;"
"""Kernels before 6.13 keep a process's floating-point and vector registers in a buffer of fixed size. Hosts whose
processor has more (AMX) refuse to restore them from it, and no process starts. There the kernel keeps only what every
processor has; the agent uses no more (``user_mode``)."""
_EXTENDED_IF_IT_FITS = "have_xstate_support = iov.iov_len < FP_SIZE * sizeof(unsigned long);"
_MIXES_IN = "add_interrupt_randomness("
_BUILD = {"KBUILD_BUILD_TIMESTAMP": "2024-01-01", "KBUILD_BUILD_USER": "sojourn", "KBUILD_BUILD_HOST": "sojourn"}
"""When, by whom and where the kernel says that it was built. Its generator mixes this in, so it is always the same."""
_RANDOM = Path(__file__).with_name("archrandom.h")
"""Replaces arch/um/include/asm/archrandom.h, which takes random numbers from the host."""

Say = Callable[[str], None]


def build(
    version: str | None,
    source: Path | None,
    out: Path | None,
    say: Say,
    *,
    config: Path | None = None,
    again: bool = False,
) -> Kernel:
    """Builds a kernel into the cache. Takes some minutes and three gigabytes of disk while it does.

    ``version``, like ``6.1``, is the one that the source must have. ``source`` is a tarball or an unpacked source,
    which is not changed, by default Debian's package ``linux-source-VERSION``; what the cache has of it is built anew
    only with ``again``. ``out`` is the kernel's folder in place of one in the cache; an earlier build there is
    replaced. ``config`` has more options, in the form of a kernel's ``.config``; it needs ``out``, since the cache has
    one kernel per release. ``say`` gets a line about each step.

    Raises ExperimentError if the version is malformed, the source is not that of a kernel, or ``config`` is missing or
    has no ``out``, and LinuxError if a program is missing, the kernel lacks an option, the package cannot be
    downloaded, or the build fails.
    """
    if version is None and source is None:
        raise ExperimentError("kernel build: got no version; must be one like 6.1, or --source")
    if version is not None and not kernel.is_version(version):
        raise ExperimentError(f'kernel build: got "{version}"; must be a version like 6.1')
    if source is not None and not source.exists():
        raise ExperimentError(f'--source: got "{source}"; there is no such file or folder')
    if config is not None and (out is None or not config.is_file()):
        what = "needs --out" if out is None else "must be a file of options, CONFIG_NAME=y"
        raise ExperimentError(f'--config: got "{config}"; {what}')
    if out is not None and out.exists() and kernel.built_in(out) is None:
        raise ExperimentError(f'--out: got "{out}"; must be a new folder, or one that this command made')
    if source is not None and source.is_dir():
        release_of(source, source, version)
    cache = kernel.built_directory()
    if version is not None and source is None and out is None and not again:
        known = kernel.newest_built(version)
        if known is not None:
            say(f"Linux {known.release} is built already; --again builds Debian's newest {version}")
            return known
    missing = [package for program, package in TOOLS.items() if programs.find(program) is None]
    if missing:
        raise LinuxError(f"a kernel build needs more programs; on Debian: apt-get install {' '.join(missing)}")
    folder = cache if out is None else out.resolve().parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".build-") as temporary:
            tree = copy_of(version, source, Path(temporary), say)
            release = release_of(tree, source or tree, version)
            say(f"configuring Linux {release}")
            _adapt(tree)
            _configure(tree, [WANTED] if config is None else [WANTED, config.resolve()])
            say("compiling about a thousand files: some minutes of every processor")
            _make(tree, f"-j{os.cpu_count() or 1}", "linux", log=folder / f"{release}.log", say=say)
            return _keep(tree, folder / release if out is None else out.resolve())
    except OSError as error:
        raise LinuxError(f"{error.filename or folder}: {error.strerror}") from None


def copy_of(version: str | None, source: Path | None, temporary: Path, say: Say) -> Path:
    """A copy of a source, which may be changed; the parameters are those of ``build``."""
    if source is not None and source.is_dir():
        say(f"copying {source}")
        tree = temporary / "linux"
        # Without the history of a repository, and without what another configuration has built.
        shutil.copytree(source, tree, symlinks=True, ignore=shutil.ignore_patterns(".git", "*.o", "*.a", "*.cmd"))
        if (tree / ".config").exists():
            _make(tree, "mrproper")
        return tree
    if source is None:
        assert version is not None
        say(f"downloading linux-source-{version}")
        source = _download(version, temporary)
    say(f"unpacking {source.name}")
    unpacked = temporary / "unpacked"
    unpacked.mkdir()
    programs.call(["tar", "-xf", str(source.resolve())], unpacked)
    trees = [path.parent for path in unpacked.glob("*/Makefile")]
    if len(trees) != 1:
        raise ExperimentError(f"--source: {source} is not the source of a kernel")
    return trees[0]


def _download(version: str, temporary: Path) -> Path:
    """Downloads Debian's source package, from the machine's own package sources or else from Debian's later suites."""
    apt, dpkg = shutil.which("apt-get"), shutil.which("dpkg-deb")
    if apt is None or dpkg is None:
        raise LinuxError("this system is not Debian: name the kernel's source with --source")
    # As root, apt would drop its rights and then miss those to this directory; its errors are read in English.
    command = ["env", "LC_ALL=C", apt, "-q", "-o", "APT::Sandbox::User=root"]
    package = f"linux-source-{version}"
    try:
        programs.call([*command, "download", package], temporary)
    except LinuxError:
        command += _debians_suites(temporary)
        programs.call([*command, "update"], temporary)
        try:
            programs.call([*command, "download", package], temporary)
        except LinuxError as error:
            if "Unable to locate package" in str(error):
                raise ExperimentError(f'kernel build: got "{version}"; Debian has no {package}: use --source') from None
            raise LinuxError(f"{error}; another source of a kernel: --source") from None
    (found,) = temporary.glob("*.deb")
    programs.call([dpkg, "-x", found.name, "package"], temporary)
    (tarball,) = temporary.glob("package/usr/src/*.tar.*")
    return tarball


def _debians_suites(temporary: Path) -> list[str]:
    """Options with which apt uses Debian's suites, and package lists of its own instead of the machine's."""
    base = temporary / "apt"
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (base / folder).mkdir(parents=True)
    sources = base / "sources.list"
    sources.write_text("".join(f"deb {DEBIAN} {suite} main\n" for suite in SUITES), encoding="utf-8")
    options = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "-",
        "Dir::State": base / "state",
        "Dir::State::status": "/var/lib/dpkg/status",
        "Dir::Cache": base / "cache",
        "Acquire::Languages": "none",
    }
    return [word for name, value in options.items() for word in ("-o", f"{name}={value}")]


def release_of(tree: Path, source: Path, version: str | None) -> str:
    """The release in a source's Makefile, checked against ``version``; ``source`` is its name in messages."""
    try:
        head = (tree / "Makefile").read_text(encoding="utf-8")[:1000]
    except (OSError, UnicodeDecodeError):
        head = ""
    parts = [re.search(rf"^{name} = (\d+)$", head, re.MULTILINE) for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL")]
    if not all(parts) or not (tree / "arch/um").is_dir():
        raise ExperimentError(f"--source: {source} is not the source of a kernel")
    candidate = re.search(r"^EXTRAVERSION = (-rc\d+)$", head, re.MULTILINE)
    release = ".".join(part[1] for part in parts if part is not None) + (candidate[1] if candidate else "")
    if version is not None and not kernel.is_of(release, version):
        raise ExperimentError(f"--source: got {source}, which is Linux {release}; must be {version}")
    return release


def _adapt(tree: Path) -> None:
    """Sets Debian's timer frequency, takes nothing random from the host, and starts on every processor."""
    options = tree / "arch/um/Kconfig"
    changed, times = _HZ.subn(rf"\g<1> {HZ}", options.read_text(encoding="utf-8"))
    random = tree / "arch/um/include/asm/archrandom.h"
    if times != 1 or not random.is_file():
        raise LinuxError("this version of the kernel is not known: its arch/um has another form")
    options.write_text(changed, encoding="utf-8")
    shutil.copyfile(_RANDOM, random)
    registers = tree / "arch/x86/um/os-Linux/registers.c"
    text = registers.read_text(encoding="utf-8") if registers.is_file() else ""
    if _EXTENDED in text:
        registers.write_text(text.replace(_EXTENDED, _EXTENDED_IF_IT_FITS), encoding="utf-8")
    # Some versions also seed the generator with the host's random numbers at boot.
    boot = tree / "arch/um/kernel/um_arch.c"
    text = boot.read_text(encoding="utf-8")
    boot.write_text(text.replace("if (os_getrandom(", "if (0 && os_getrandom("), encoding="utf-8")
    # The host decides at which instruction an interrupt comes, and the generator mixes the instruction's address in.
    interrupts = tree / "kernel/irq/handle.c"
    text = interrupts.read_text(encoding="utf-8")
    interrupts.write_text(text.replace(_MIXES_IN, f"if (0) {_MIXES_IN}"), encoding="utf-8")


def _configure(tree: Path, wanted: Sequence[Path]) -> None:
    """The default options, and those of these files; all must be there that are switched on."""
    _make(tree, "defconfig")
    programs.call(["scripts/kconfig/merge_config.sh", "-m", "-O", ".", ".config", *map(str, wanted)], tree)
    _make(tree, "olddefconfig")
    config = (tree / ".config").read_text(encoding="utf-8")
    of_user = [name for path in wanted[1:] for name in _SWITCHED_ON.findall(path.read_text(encoding="utf-8"))]
    lacking = [option for option in (*NEEDED, *of_user) if f"CONFIG_{option}=y\n" not in config]
    if lacking:
        raise LinuxError(f"this version of the kernel has no {lacking[0]}")


def _make(tree: Path, *words: str, log: Path | None = None, say: Say | None = None) -> None:
    """Runs make; tells how many files are compiled, and keeps in ``log`` what a failed make has written."""
    command = ["make", "ARCH=um", *words]
    # Ignore settings of the caller's own builds.
    own = {name: value for name, value in os.environ.items() if name not in ("ARCH", "CROSS_COMPILE", "MAKEFLAGS")}
    output: list[str] = []
    compiled = 0
    with subprocess.Popen(
        programs.ending_with_us(command),
        cwd=tree,
        env=own | _BUILD,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as made:
        for line in made.stdout or ():
            output.append(line)
            compiled += line.startswith("  CC ")
            if say is not None and line.startswith("  CC ") and compiled % TELL_EVERY == 0:
                say(f"compiled {compiled} files")
    if made.returncode != 0:
        where = ""
        if log is not None:
            log.write_text("".join(output), encoding="utf-8")
            where = f" (full output: {log})"
        errors = [line.strip() for line in output if "error" in line.lower()] or output[-1:]
        raise LinuxError(f"{' '.join(command)} failed: {errors[0].strip() if errors else ''}{where}")


def _keep(tree: Path, target: Path) -> Kernel:
    """Copies the built kernel to its folder, in place of an earlier build."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".keep-") as temporary:
        whole = Path(temporary) / "whole"
        whole.mkdir()
        for name in ("linux", "modules.builtin", ".config"):
            shutil.copy2(tree / name, whole / name.lstrip("."))
        (whole / "recipe").write_text(f"{kernel.RECIPE}\n", encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        whole.rename(target)
    return Kernel(target / "linux", target, user_mode=True)
