"""The real Linux kernel as a backend: its queue disciplines and its TCP, in virtual time and without root.

This package starts machines and, in them, the agent (``crates/agent``), which builds the network, sends the traffic and
records the packets.

| module | what is there |
| --- | --- |
| ``backend`` | ``Linux``: runs the jobs of a plan |
| ``machine`` | a virtual machine for one run, emulated or User-Mode Linux, followed by ``guest`` |
| ``host`` | the running kernel, in real time |
| ``lab`` | a testbed: hosts over ssh, their checks, and runs on them |
| ``datapath`` | ``Datapath``: the running kernel's hosts, with real packets on Sojourn's own path |
| ``shell`` | a program with its network behind that path |
| ``kernel``, ``programs`` | kernels and their modules; QEMU and the agent |
| ``build`` | builds kernels as User-Mode Linux |
| ``doctor`` | the requirements, and whether they are met |
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sojourn.linux.backend import Linux as Linux
    from sojourn.linux.datapath import Datapath as Datapath
    from sojourn.linux.doctor import checks as checks
    from sojourn.linux.doctor import is_available as is_available
    from sojourn.linux.lab import Lab as Lab
    from sojourn.linux.programs import LinuxError as LinuxError

_HOME_OF = {
    "Linux": "backend", "Datapath": "datapath", "checks": "doctor", "is_available": "doctor", "Lab": "lab",
    "LinuxError": "programs",
}  # fmt: skip
__all__ = [*_HOME_OF]


def __getattr__(name: str) -> object:
    """Loads a name on first use: simulated runs need none."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'sojourn.linux' has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(f"sojourn.linux.{_HOME_OF[name]}"), name)
    return found
