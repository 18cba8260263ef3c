"""``sojourn kernel`` and runs in User-Mode Linux. A kernel is not built here; one that was built is used."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sojourn import ExperimentError
from sojourn.linux import build, kernel, programs
from sojourn.linux.programs import LinuxError

Cli = Callable[..., subprocess.CompletedProcess[str]]

needs_built_kernel = pytest.mark.skipif(
    not kernel.built() or programs.agent() is None,
    reason="needs a kernel: sojourn kernel build 6.1",
)


@pytest.fixture
def no_kernels(tmp_path: Path) -> dict[str, str]:
    """An environment whose cache is empty."""
    return {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}


def put(cache: Path, *releases: str) -> None:
    """Kernels that were built, by their looks."""
    for release in releases:
        folder = cache / "sojourn/user-mode" / release
        folder.mkdir(parents=True)
        (folder / "linux").write_text("#!/bin/sh\necho no kernel\nexit 3\n")
        (folder / "linux").chmod(0o755)
        (folder / "recipe").write_text(kernel.RECIPE)
        (folder / "modules.builtin").write_text(
            "\n".join(
                f"kernel/net/{name}.ko"
                for name in ("veth", "sch_htb", "sch_netem", "sch_codel", "inet_diag", "tcp_diag", "tcp_cubic")
            )
        )


def test_built_kernels_are_listed_newest_first(sojourn: Cli, no_kernels: dict[str, str], tmp_path: Path):
    put(tmp_path / "cache", "7.3.0-rc7", "6.1.192", "7.3.0", "6.12.9")
    listed = json.loads(sojourn("kernel", "list", "--json", env=no_kernels).stdout)
    built = [one for one in listed if one["machine"] == "user-mode"]
    assert [one["release"] for one in built] == ["7.3.0", "7.3.0-rc7", "6.12.9", "6.1.192"]
    assert built[0]["image"] == str(tmp_path / "cache/sojourn/user-mode/7.3.0/linux")


def test_a_kernel_in_a_folder_of_any_name_has_its_release(tmp_path: Path):
    put(tmp_path, "mine")
    folder = tmp_path / "sojourn/user-mode/mine"
    (folder / "config").write_text("#\n# Linux/um 7.2.13 Kernel Configuration\n#\nCONFIG_UML=y\n")
    built = kernel.built_in(folder)
    assert built is not None
    assert (built.release, kernel.simulated(built.release)) == ("7.2.13", "7.3")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("build", "new"), 'kernel build: got "new"; must be a version like 6.1'),
        (("build",), "kernel build: got no version; must be one like 6.1, or --source"),
        (
            ("build", "--source", "other", "--out", "other"),
            '--out: got "other"; must be a new folder, or one that this command made',
        ),
        (("build", "6.1", "--config", "more"), '--config: got "more"; needs --out'),
        (
            ("build", "6.1", "--config", "more", "--out", "new"),
            '--config: got "more"; must be a file of options, CONFIG_NAME=y',
        ),
        (("build", "6.1", "--source", "nowhere"), '--source: got "nowhere"; there is no such file or folder'),
        (("build", "6.1", "--source", "tree"), "--source: tree is not the source of a kernel"),
        (("build", "6.1", "--source", "other"), "--source: got other, which is Linux 6.12.3; must be 6.1"),
    ],
)
def test_what_cannot_be_built_is_told_in_one_line(
    sojourn: Cli, no_kernels: dict[str, str], tmp_path: Path, arguments: tuple[str, ...], line: str
):
    (tmp_path / "tree").mkdir()
    (tmp_path / "other/arch/um").mkdir(parents=True)
    (tmp_path / "other/Makefile").write_text("VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 3\n")
    ended = sojourn("kernel", *arguments, env=no_kernels)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.splitlines()[-1] == line
    left = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert left == []


def test_a_version_that_debian_lacks_is_wrong_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def call(command: list[str], _: Path) -> str:
        if "download" in command:
            raise LinuxError(f"{' '.join(command)}: E: Unable to locate package linux-source-9.9")
        return ""

    monkeypatch.setattr(programs, "call", call)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    with pytest.raises(ExperimentError) as refused:
        build._download("9.9", tmp_path)
    assert str(refused.value) == 'kernel build: got "9.9"; Debian has no linux-source-9.9: use --source'


def test_a_kernel_that_was_not_built_is_told_how_to_build(sojourn: Cli, no_kernels: dict[str, str], short: Path):
    asked = sojourn("run", short, "--backend", "linux", "--kernel", "6.1", env=no_kernels)
    assert (asked.returncode, asked.stderr) == (2, '--kernel: got "6.1"; is not built: sojourn kernel build 6.1\n')


def test_a_kernel_of_an_earlier_version_must_be_built_again(
    sojourn: Cli, no_kernels: dict[str, str], short: Path, tmp_path: Path
):
    put(tmp_path / "cache", "6.1.192")
    folder = tmp_path / "cache/sojourn/user-mode/6.1.192"
    (folder / "recipe").unlink()
    why = "was built by an earlier version and must be built again: sojourn kernel build"
    for named, again in (("6.1", "6.1"), (str(folder), f"6.1.192 --out {folder}")):
        asked = sojourn("run", short, "--backend", "linux", "--kernel", named, env=no_kernels)
        assert (asked.returncode, asked.stderr) == (2, f'--kernel: got "{named}"; {why} {again}\n')
    listed = sojourn("kernel", "list", env=no_kernels)
    assert (listed.returncode, listed.stderr) == (0, f"6.1.192 {why} 6.1.192\n")


def test_a_kernel_in_the_cache_is_not_built_again(sojourn: Cli, no_kernels: dict[str, str], tmp_path: Path):
    put(tmp_path / "cache", "6.1.192", "6.12.9")
    built = sojourn("kernel", "build", "6.1", env=no_kernels)
    assert built.returncode == 0
    assert built.stderr == "Linux 6.1.192 is built already; --again builds Debian's newest 6.1\n"
    assert str(tmp_path / "cache/sojourn/user-mode/6.1.192/linux") in built.stdout
    nothing = sojourn("kernel", "build", "6.1", "--again", env=no_kernels | {"PATH": ""})
    assert nothing.returncode != 0 and "is built already" not in nothing.stderr


@needs_built_kernel
def test_a_machine_needs_no_home_and_leaves_nothing_there(sojourn: Cli, short: Path, tmp_path: Path):
    version = kernel.built()[0].release
    home = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(kernel.built_directory().parents[1])}
    ended = sojourn("run", short, "--backend", "linux", "--kernel", version, env=home)
    assert ended.returncode == 0, ended.stderr
    assert not (tmp_path / "home").exists()


def test_a_kernel_that_ends_early_fails_its_run(sojourn: Cli, no_kernels: dict[str, str], short: Path, tmp_path: Path):
    put(tmp_path / "cache", "6.1.192")
    agent = {"SOJOURN_AGENT": "/bin/true"}
    failed = sojourn("run", short, "--backend", "linux", "--kernel", "6.1", env=no_kernels | agent)
    assert failed.returncode == 1
    assert "User-Mode Linux ended early with status 3 after 0 s of the guest's time: no kernel" in failed.stderr


@needs_built_kernel
def test_the_same_seed_gives_the_same_bytes(sojourn: Cli, short: Path):
    version = kernel.built()[0].release
    first, second, other = (
        sojourn("run", short, "--backend", "linux", "--kernel", version, "--set", f"experiment.seed={seed}", "--json")
        for seed in (1, 1, 2)
    )
    (one, same, another) = (json.loads(ended.stdout)["runs"][0] for ended in (first, second, other))
    assert "invalid" not in one
    assert one["kernel"].startswith(version)
    for run in (one, same, another):
        del run["wall_s"]
    assert one == same
    assert one["flows"] != another["flows"]
    assert 1.0 < one["bottleneck"]["down"]["sojourn_ms"]["p50"] < 20.0


@needs_built_kernel
@pytest.mark.parametrize("version", [one.release for one in kernel.built()])
def test_random_drops_are_the_same_in_every_run(sojourn: Cli, tmp_path: Path, version: str):
    file = tmp_path / "random.toml"
    file.write_text(
        '[experiment]\nduration = "3 s"\nwarmup = "1 s"\n[link]\nrate = "10 Mbit/s"\n'
        '[[queue]]\naqm = "pie"\n[[queue]]\naqm = "red"\n[[traffic]]\nkind = "bulk"\nflows = 12\nrtt = "50 ms"\n'
    )
    command = ("run", file, "--backend", "linux", "--kernel", version, "--json")
    first, second = (json.loads(sojourn(*command).stdout)["runs"] for _ in range(2))
    for one, same in zip(first, second, strict=True):
        assert one["bottleneck"]["down"]["dropped_aqm"] > 0
        for run in (one, same):
            del run["wall_s"]
        assert one == same


def handshake(capture: Path) -> Iterator[tuple[str, int, int]]:
    """SYN, SYN-ACK and the next segment without data of a capture's first connection: who sends, ACE and ECN field."""
    data, at = capture.read_bytes(), 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        packet = data[at + 28 + 14 : at + length] if kind == 6 else b""
        at += length
        if len(packet) < 40 or packet[9] != 6:
            continue
        first, second = packet[32], packet[33]
        has_data = int.from_bytes(packet[2:4], "big") > 20 + 4 * (first >> 4)
        if not has_data:
            who = "listener" if second & 0x12 == 0x12 else "opener"
            yield who, (first & 1) << 2 | second >> 6, packet[1] & 3


@pytest.mark.skipif(
    not any(int(one.release.partition(".")[0]) >= 7 for one in kernel.built()) or programs.agent() is None,
    reason="needs a kernel: sojourn kernel build 7.3",
)
def test_both_shake_hands_with_accecn_alike(sojourn: Cli, tmp_path: Path):
    version = next(one.release for one in kernel.built() if int(one.release.partition(".")[0]) >= 7)
    for tcp, ect, first in (("reno", 0, 0b010), ("dctcp", 2, 0b100)):
        (tmp_path / "accecn.toml").write_text(f"""
            experiment = {{ duration = "1 s", kernel = "7.3" }}
            link = {{ rate = "10 Mbit/s" }}
            queue = [{{ aqm = "codel", ecn = true }}]
            traffic = [{{ kind = "bulk", rtt = "20 ms", start = "0.1 s", tcp = "{tcp}", ecn = true, accecn = true }}]
            record = {{ pcap = true }}
        """)
        seen = []
        for where in ([], ["--backend", "linux", "--kernel", version]):
            out = tmp_path / f"{tcp}{len(where)}"
            assert sojourn("run", tmp_path / "accecn.toml", *where, "--out", out).returncode == 0
            segments = handshake(next(out.glob("*.pcapng")))
            seen.append([next(segments), next(segments)])
        # RFC 9768 §3.1.1: all three flags ask; the answer reports how the SYN arrived.
        assert seen == [[("opener", 0b111, ect), ("listener", first, ect)]] * 2


@needs_built_kernel
def test_pings_by_udp_are_answered(sojourn: Cli, tmp_path: Path):
    """An idle link of 10 Mbit/s: the base RTT and, each way, 98 bytes (56 of payload, UDP, IP, Ethernet) in 78 µs."""
    file = tmp_path / "pings.toml"
    file.write_text(
        """\
experiment = { duration = "4 s" }
link = { rate = "10 Mbit/s" }
queue = [{ aqm = "pfifo" }]
traffic = [
    { kind = "ping", name = "icmp", rtt = "20 ms", interval = "100 ms" },
    { kind = "ping", name = "udp", protocol = "udp", rtt = "20 ms", interval = "100 ms" },
]
""",
        encoding="utf-8",
    )
    ran = sojourn("run", file, "--backend", "linux", "--kernel", kernel.built()[0].release, "--json")
    assert ran.returncode == 0, ran.stderr
    groups = {group["name"]: group for group in json.loads(ran.stdout)["runs"][0]["groups"]}
    for name in ("icmp", "udp"):
        assert groups[name]["rtt_ms"]["n"] >= 38
        assert 20.0 <= groups[name]["rtt_ms"]["p50"] < 20.4, name


@needs_built_kernel
def test_traffic_of_one_host_has_its_base_rtt_in_both_directions(sojourn: Cli, tmp_path: Path):
    """What a host sends waits by its socket's priority: data not, acknowledgements for the base RTT."""
    file = tmp_path / "host.toml"
    file.write_text(
        """\
experiment = { duration = "6 s", warmup = "1 s" }
link = { rate = "20 Mbit/s", up = { rate = "5 Mbit/s" } }
queue = [{ aqm = "fq_codel", variant = "linux" }]
traffic = [
    { kind = "bulk", name = "up", direction = "up", rtt = "30 ms", host = "pc" },
    { kind = "bulk", name = "down", rtt = "40 ms", host = "pc" },
    { kind = "ping", rtt = "30 ms" },
]
""",
        encoding="utf-8",
    )
    ran = sojourn("run", file, "--backend", "linux", "--kernel", kernel.built()[0].release, "--json")
    assert ran.returncode == 0, ran.stderr
    groups = {group["name"]: group for group in json.loads(ran.stdout)["runs"][0]["groups"]}
    # Smoothed RTTs: the base and some milliseconds of queue.
    assert 30.0 < groups["up"]["rtt_ms"]["p50"] < 60.0
    assert 40.0 < groups["down"]["rtt_ms"]["p50"] < 60.0


@needs_built_kernel
def test_cake_shares_an_upload_between_hosts(sojourn: Cli, tmp_path: Path):
    """Nine flows of UDP from one host and one from another, each at more than its share: tc-cake(8), dual-srchost."""
    file = tmp_path / "hosts.toml"
    file.write_text(
        """\
experiment = { duration = "4 s", warmup = "1 s" }
link = { rate = "20 Mbit/s", up = { rate = "20 Mbit/s" } }
queue = [{ aqm = "cake", variant = "linux", bandwidth = "19 Mbit/s", isolation = "dual-srchost" }]
traffic = [
    { kind = "cbr", flows = 8, rate = "2 Mbit/s", direction = "up", rtt = "20 ms", host = "pc1" },
    { kind = "cbr", rate = "2 Mbit/s", direction = "up", rtt = "20 ms", host = "pc1" },
    { kind = "cbr", rate = "15 Mbit/s", direction = "up", rtt = "20 ms", host = "pc2" },
]
""",
        encoding="utf-8",
    )
    ran = sojourn("run", file, "--backend", "linux", "--kernel", kernel.built()[0].release, "--json")
    assert ran.returncode == 0, ran.stderr
    first, same, second = (group["goodput_bps"] for group in json.loads(ran.stdout)["runs"][0]["groups"])
    assert first + same == pytest.approx(second, rel=0.01)


@needs_built_kernel
def test_classes_share_as_in_the_simulator(sojourn: Cli, tmp_path: Path):
    """tc-htb(8): a site sends 12 Mbit/s; beyond their 2 and 6, subscribers share the rest by their rates: 3 and 9."""
    file = tmp_path / "tree.toml"
    file.write_text(
        """\
experiment = { duration = "5 s", warmup = "1 s" }
link = { rate = "40 Mbit/s", up = { rate = "40 Mbit/s" } }
class = [
    { name = "site", rate = "8 Mbit/s", ceil = "12 Mbit/s" },
    { name = "slow", parent = "site", rate = "2 Mbit/s", ceil = "12 Mbit/s" },
    { name = "fast", parent = "site", rate = "6 Mbit/s", ceil = "12 Mbit/s" },
    { name = "other", rate = "4 Mbit/s" },
]
queue = [{ aqm = "fq_codel", variant = "linux" }]
traffic = [
    { kind = "cbr", name = "slow", class = "slow", rate = "20 Mbit/s", rtt = "20 ms" },
    { kind = "cbr", name = "fast", class = "fast", rate = "20 Mbit/s", rtt = "20 ms" },
    { kind = "cbr", name = "other", class = "other", rate = "20 Mbit/s", rtt = "20 ms" },
]
""",
        encoding="utf-8",
    )
    on_wire = 1448 / (1448 + 28 + 14)
    for options in ([], ["--backend", "linux", "--kernel", kernel.built()[0].release]):
        ran = sojourn("run", file, *options, "--json")
        assert ran.returncode == 0, ran.stderr
        groups = json.loads(ran.stdout)["runs"][0]["groups"]
        found = {group["name"]: group["goodput_bps"] / on_wire / 1e6 for group in groups}
        rates = [found[name] for name in ("slow", "fast", "other")]
        assert rates == pytest.approx([3.0, 9.0, 4.0], rel=0.03), options
