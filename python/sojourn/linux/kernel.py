"""The kernel of a virtual machine: its image, its modules, and where to find them."""

from __future__ import annotations

import contextlib
import gzip
import lzma
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sojourn._core import ExperimentError
from sojourn.files import whole
from sojourn.files.manifest import sha256
from sojourn.linux import programs
from sojourn.linux.programs import LinuxError

PACKAGE = "linux-image-cloud-amd64"
"""Debian's kernel for virtual machines: small, with every discipline as a module."""


_TITLE = re.compile(r"^# Linux/\S+ (\S+) Kernel Configuration$", re.MULTILINE)


@dataclass(frozen=True)
class Kernel:
    """A kernel image and its modules."""

    image: Path
    modules: Path
    """The directory of one release, ``lib/modules/6.1.0-…``."""
    user_mode: bool = False
    """Whether it is User-Mode Linux, a program with everything built in."""

    @cached_property
    def release(self) -> str:
        """The kernel's release: of a built one, in a folder of any name, from its configuration's title."""
        with contextlib.suppress(OSError):
            title = _TITLE.search((self.modules / "config").read_text(encoding="utf-8"))
            if self.user_mode and title is not None:
                return title[1]
        return self.modules.name

    @cached_property
    def _files(self) -> dict[str, Path]:
        """File of every module by the module's name."""
        return {_name(path.name): path for path in self.modules.rglob("*.ko*")}

    @cached_property
    def _built_in(self) -> set[str]:
        listing = self.modules / "modules.builtin"
        return {_name(line) for line in listing.read_text(encoding="utf-8").splitlines()} | _NEVER_MODULES

    def has(self, module: str) -> bool:
        """True if the kernel has a module, or has it built in."""
        return module in self._built_in or module in self._files

    def in_order(self, modules: Iterable[str]) -> list[Path]:
        """Files of modules, each after its dependencies, but for built-in ones. Raises LinuxError if one is missing."""
        order: dict[Path, None] = {}

        def add(module: str) -> None:
            if module in self._built_in:
                return
            if module not in self._files:
                raise LinuxError(f"kernel {self.release} has no {module}{meaning(module, '--kernel')}")
            path = self._files[module]
            for need in _needs(module_content(path)):
                add(need)
            order[path] = None

        for module in modules:
            add(module)
        return list(order)


_NEVER_MODULES = {"sch_fifo"}
"""Modules of every kernel with queue disciplines that some kernels do not list."""


def _name(path: str) -> str:
    return re.sub(r"\.ko(\.\w+)?$", "", Path(path).name).replace("-", "_")


def _needs(module: bytes) -> list[str]:
    """The dependencies listed in a module itself, since depmod may not have been run."""
    match = re.search(rb"\0depends=([^\0]*)\0", module)
    return [_name(name) for name in match[1].decode().split(",") if name] if match else []


def meaning(module: str, way: str) -> str:
    """What a missing module means for the user; ``way`` is an option that selects another kernel."""
    kind, _, name = module.partition("_")
    if kind == "sch" and name not in ("htb", "netem"):
        return f": the discipline {name} needs another kernel ({way}) or another backend (sim)"
    if kind == "tcp" and name != "diag":
        return f": the congestion control {name} needs another kernel ({way}) or another backend (sim)"
    return f"; for another kernel: {way}"


def module_content(path: Path) -> bytes:
    """A module's code, decompressed. Raises LinuxError if zstd is needed and missing."""
    content = path.read_bytes()
    if path.suffix in (".xz", ".gz"):
        return lzma.decompress(content) if path.suffix == ".xz" else gzip.decompress(content)
    if path.suffix == ".zst":
        unpacker = shutil.which("zstd")
        if unpacker is None:
            raise LinuxError(f"{path} needs zstd; on Debian: apt-get install zstd")
        return subprocess.run([unpacker, "-dc", str(path)], stdout=subprocess.PIPE, check=True).stdout
    return content


EMULATED = "emulated"
"""The name that selects the emulated machine."""


def locate(given: str | None) -> Kernel:
    """The kernel to run: the given one, else the newest that was built, else one for the emulated machine.

    That is the cached package's, else the host's own, else a download. Raises ExperimentError if the given path is no
    kernel, and LinuxError if there is none; the message says how to get one.
    """
    if given is None:
        newest = next(iter(built()), None)
        if newest is not None:
            return newest
    elif given != EMULATED:
        return _given(given)
    return cached() or own() or download()


def is_user_mode(given: str | None) -> bool:
    """Whether the kernel that ``locate`` finds is User-Mode Linux. Downloads nothing; ExperimentError as there."""
    if given is None:
        return bool(built())
    return given != EMULATED and _given(given).user_mode


def _given(given: str) -> Kernel:
    """A kernel as named by ``--kernel``: a built one by version or folder, IMAGE:MODULES, or an unpacked package."""
    if is_version(given):
        found = newest_built(given)
        if found is None:
            old = any(is_of(kernel.release, given) for kernel in built(outdated=True))
            why = "was built by an earlier version and must be built again" if old else "is not built"
            raise ExperimentError(f'--kernel: got "{given}"; {why}: sojourn kernel build {given}')
        return found
    image, colon, modules = given.partition(":")
    if colon:
        kernel = Kernel(Path(image), Path(modules))
        if kernel.image.is_file() and (kernel.modules / "modules.builtin").is_file():
            return kernel
    elif (known := built_in(Path(given)) or _in_root(Path(given))) is not None:
        if known.user_mode and is_outdated(known):
            raise ExperimentError(
                f'--kernel: got "{given}"; was built by an earlier version and must be built again: '
                f"sojourn kernel build {known.release} --out {given}"
            )
        return known
    raise ExperimentError(
        f'--kernel: got "{given}"; must be a version like 6.1, a directory with boot/vmlinuz-RELEASE and '
        f"lib/modules/RELEASE, IMAGE:MODULES_DIRECTORY, a folder that sojourn kernel build made, or {EMULATED}"
    )


def _in_root(root: Path) -> Kernel | None:
    """The newest kernel below a root directory that also has its modules there."""
    for image in sorted(root.glob("boot/vmlinuz-*"), key=lambda path: _version(path.name), reverse=True):
        modules = root / "lib/modules" / image.name.removeprefix("vmlinuz-")
        if os.access(image, os.R_OK) and (modules / "modules.builtin").is_file():
            return Kernel(image, modules)
    return None


_SINCE = {"6.1": "6.1", "6.12": "6.12", "6.18": "6.18", "7.3": "7.2"}
"""By version of Linux whose TCP the simulator has: the oldest release known to have it (docs/kernel-versions.md)."""
SIMULATED = tuple(_SINCE)
"""The versions of Linux whose TCP the simulator has, accepted by ``experiment.kernel``."""


def _version(name: str) -> tuple[list[int], bool, list[int]]:
    """The key by which names of kernels are sorted: a release candidate comes before its release."""
    version, candidate, rest = name.partition("-rc")
    numbers = [[int(number) for number in re.findall(r"\d+", part)] for part in (version, rest)]
    return numbers[0], not candidate, numbers[1]


def cache_directory() -> Path:
    """The folder of downloaded kernels and of ssh's sockets: ``$XDG_CACHE_HOME/sojourn`` or ``~/.cache/sojourn``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "sojourn"


def is_version(text: str) -> bool:
    """Whether it is the version of a kernel: ``6.1``, ``6.1.192`` or ``7.3.0-rc7``."""
    return re.fullmatch(r"\d+\.\d+(\.\d+)?(-rc\d+)?", text) is not None


def is_of(release: str, version: str) -> bool:
    """Whether a release is of a version: 6.1.192 is of 6.1."""
    return release == version or release.startswith(f"{version}.")


def simulated(release: str) -> str:
    """The value of ``experiment.kernel`` for this release, or candidate: the newest whose TCP is not newer than it."""
    of = _version(release)[0][:2]
    older = [version for version, since in _SINCE.items() if _version(since)[0] <= of]
    return max(older, key=_version, default=SIMULATED[0])


def built_directory() -> Path:
    """Where ``sojourn kernel build`` keeps kernels, a folder each."""
    return cache_directory() / "user-mode"


RECIPE = "3"
"""How ``sojourn kernel build`` builds. Another number whenever kernels built before may give other results."""


def built(*, outdated: bool = False) -> list[Kernel]:
    """The kernels built as User-Mode Linux, the newest first: as this version builds them, or else ``outdated``."""
    newest_first = sorted(built_directory().glob("[0-9]*"), key=lambda folder: _version(folder.name), reverse=True)
    known = [kernel for kernel in map(built_in, newest_first) if kernel is not None]
    return [kernel for kernel in known if is_outdated(kernel) == outdated]


def is_outdated(kernel: Kernel) -> bool:
    """True if a built kernel was built in another way than this version builds it."""
    try:
        return (kernel.modules / "recipe").read_text(encoding="utf-8").strip() != RECIPE
    except OSError:
        return True


def newest_built(version: str) -> Kernel | None:
    """The newest kernel of a version that was built in today's way; None if none was."""
    return next((kernel for kernel in built() if is_of(kernel.release, version)), None)


def built_in(folder: Path) -> Kernel | None:
    """The kernel that was built into a folder; None if there is none."""
    if os.access(folder / "linux", os.X_OK) and (folder / "modules.builtin").is_file():
        return Kernel(folder / "linux", folder, user_mode=True)
    return None


def own() -> Kernel | None:
    """The host's newest installed kernel, if this user may read it and it can run as a guest."""
    kernel = _in_root(Path("/"))
    return kernel if kernel is not None and kernel.has("sch_htb") and kernel.has("virtio_blk") else None


def cached() -> Kernel | None:
    """The newest kernel in the cache whose package still has the downloaded checksum."""
    for checksum in sorted(cache_directory().glob("*.sha256"), key=lambda path: _version(path.name), reverse=True):
        package = checksum.with_suffix(".deb")
        kernel = _in_root(checksum.with_suffix(""))
        if kernel is not None and package.is_file() and sha256(package) == checksum.read_text().split()[0]:
            return kernel
    return None


def download() -> Kernel:
    """Downloads the distribution's kernel package into the cache, without root. Raises LinuxError if it cannot."""
    apt, dpkg = shutil.which("apt-get"), shutil.which("dpkg-deb")
    if apt is None or dpkg is None:
        raise LinuxError(
            "no kernel for the virtual machine: name one with --kernel, like one unpacked from Debian's "
            f"package {PACKAGE}"
        )
    # The package with the kernel is what the metapackage depends on.
    match = re.search(r"Depends: (linux-image-\S+)", programs.call(["apt-cache", "depends", PACKAGE], Path("/")))
    if match is None:
        raise LinuxError(f"apt knows no {PACKAGE}: run apt-get update as root, or name a kernel with --kernel")
    folder = cache_directory()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".download-") as temporary:
            # As root, apt would drop its privileges and then could not write to this directory.
            programs.call([apt, "-o", "APT::Sandbox::User=root", "download", match[1]], Path(temporary))
            (package,) = Path(temporary).glob("*.deb")
            programs.call([dpkg, "-x", package.name, "root"], Path(temporary))
            return _keep(package, Path(temporary) / "root", folder)
    except OSError as error:
        raise LinuxError(f"{folder}: cannot keep a kernel: {error.strerror}") from None


def _keep(package: Path, root: Path, folder: Path) -> Kernel:
    """Moves a package and its content to the cache. Its checksum is written last and marks it as complete."""
    target = folder / package.stem
    shutil.rmtree(target, ignore_errors=True)
    root.rename(target)
    digest = sha256(package)
    package.rename(target.with_name(package.name))
    whole.write(target.with_name(f"{target.name}.sha256"), f"{digest}  {package.name}\n".encode())
    kernel = _in_root(target)
    if kernel is None or not kernel.has("sch_htb"):
        raise LinuxError(f"{target}: not a kernel with queue disciplines")
    return kernel
