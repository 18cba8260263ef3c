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

from sojourn.linux.backend import Linux
from sojourn.linux.datapath import Datapath
from sojourn.linux.doctor import checks, is_available
from sojourn.linux.lab import Lab
from sojourn.linux.programs import LinuxError

__all__ = ["Datapath", "Lab", "Linux", "LinuxError", "checks", "is_available"]
