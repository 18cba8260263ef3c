"""A user's mistake: exit status 2, one clear line on standard error, nothing run or written."""

from __future__ import annotations

from pathlib import Path

import pytest

import sojourn as sj
from conftest import EXPERIMENT, Cli, wrong


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("flows = 2", "flows = 2\nflow = 3", (":21: ", "traffic.0.flow", "flows")),
        ('"10 Mbit/s"', '"10 Mb"', (":8: ", "link.rate", "10 Mb", "Mbit/s")),
        ('"10 Mbit/s"', '"-10 Mbit/s"', (":8: ", "link.rate", "above zero")),
        ('"10 Mbit/s"', '"0 Mbit/s"', (":8: ", "link.rate", "above zero")),
        ('"10 Mbit/s"', "10", (":8: ", "link.rate", "10")),
        ('rtt = "40 ms"', 'rtt = "40"', (":21: ", "traffic.0.rtt", "ms")),
        ("[link]", "[lnk]", (":7: ", "lnk", "link")),
        ('[link]\nrate = "10 Mbit/s"\nbuffer = "100 packets"\n', "", ("link",)),
        ('aqm = "codel"', 'aqm = "codle"', (":15: ", "queue.1.aqm", "codle", 'did you mean "codel"')),
        ('target = "5 ms"', 'targt = "5 ms"', (":16: ", "queue.1.targt", 'did you mean "target"')),
        ('warmup = "1 s"', 'warmup = "9 s"', (":4: ", "experiment.warmup", "9 s")),
        ('aqm = "pfifo"', "aqm = ", (":12: ",)),
        ("repeat = 2", "repeat = 0", (":5: ", "experiment.repeat")),
    ],
    ids=[
        "unknown key", "wrong unit", "negative rate", "zero rate", "no unit", "no unit in text", "misspelt section",
        "missing section", "unknown discipline", "unknown parameter", "impossible combination", "no TOML", "no repeat",
    ],
)  # fmt: skip
def test_a_mistake_in_the_file_names_its_line(sojourn: Cli, tmp_path: Path, old, new, parts):
    assert old in EXPERIMENT
    (tmp_path / "bad.toml").write_text(EXPERIMENT.replace(old, new, 1), encoding="utf-8")
    result = sojourn("run", "bad.toml", "--out", "out", "--json")
    wrong(result, "bad.toml:" if parts[0].startswith(":") else "bad.toml", *parts)
    assert not (tmp_path / "out").exists()


def test_a_missing_file(sojourn: Cli):
    wrong(sojourn("run", "none.toml"), "none.toml", "No such file")


def test_a_file_that_is_not_utf8(sojourn: Cli, tmp_path: Path):
    (tmp_path / "bad.toml").write_bytes(b'[experiment]\nname = "\xff"\n')
    wrong(sojourn("run", "bad.toml"), "bad.toml", "UTF-8")


def test_a_directory_instead_of_a_file(sojourn: Cli):
    wrong(sojourn("run", "."), "directory")


def test_an_output_that_is_a_file(sojourn: Cli, experiment: Path):
    wrong(sojourn("run", experiment, "--out", experiment), "--out", "directory")


def test_an_output_that_cannot_be_created(sojourn: Cli, experiment: Path):
    wrong(sojourn("run", experiment, "--out", "/proc/sojourn"), "--out", "/proc/sojourn")


@pytest.mark.parametrize("backend", ["testbed", "ns3"])
def test_a_backend_that_is_not_there(sojourn: Cli, experiment: Path, backend):
    wrong(sojourn("run", experiment, "--backend", backend), backend, "not available", "sim")


@pytest.mark.parametrize(
    ("assignment", "part"),
    [("queue.1.target", "KEY=VALUE"), ("=3", "KEY=VALUE"), ("queue.1.target=soon", "5 ms"),
     ("queue.9.target=5 ms", "queue"), ("link.speed=3", "link.speed")],
)  # fmt: skip
def test_a_wrong_override(sojourn: Cli, experiment: Path, assignment, part):
    wrong(sojourn("run", experiment, "--set", assignment), part)


@pytest.mark.parametrize(
    "arguments",
    [("run",), ("run", "a", "b"), ("rnu",), ("run", "x.toml", "--jbos", "2"), ("run", "x.toml", "--jobs", "0"),
     ("run", "x.toml", "--jobs", "two"), ("list",), ("list", "fruit"), ("study",), ("study", "run"),
     ("study", "run", "nobody1999"), ("study", "run", "khademi2013", "--figure", "99"), ("compare", "codel"),
     ("compare", "--rate", "10mbit", "--rtt", "100ms"), ("compare", "--rate", "10mbit", "--rtt", "100ms", "cdoel"),
     ("compare", "--rate", "10 mb", "--rtt", "100ms", "codel"), ("compare", "--rate", "10mbit", "--rtt", "1", "codel"),
     ("compare", "--rate", "10mbit", "--rtt", "100ms", "--flows", "0", "codel"),
     ("compare", "--rate", "10mbit", "--rtt", "100ms", "--tcp", "tahoo", "codel"),
     ("compare", "--rate", "10mbit", "--rtt", "100ms", "codel:target"),
     ("compare", "--rate", "10mbit", "--rtt", "100ms", "codel:targt=5ms")],
    ids=" ".join,
)  # fmt: skip
def test_a_wrong_command_line(sojourn: Cli, arguments):
    wrong(sojourn(*arguments))


def test_a_wrong_choice_is_told_the_choices(sojourn: Cli):
    wrong(sojourn("list", "fruit"), "'what': 'fruit' is not one of 'aqm'")


def test_a_misspelt_command_is_told_the_right_one(sojourn: Cli):
    wrong(sojourn("rnu"), "run")


@pytest.mark.parametrize(
    ("queue", "parts"),
    [("codel:aqm=pie", ("aqm=pie", "before the colon")), ("codel:target=5ms,target=6ms", ("target twice",)),
     ("codel:target=5ms, target =5ms", ("target twice",))],
)  # fmt: skip
def test_a_queue_of_compare_is_told_once(sojourn: Cli, queue, parts):
    wrong(sojourn("compare", "--rate", "10mbit", "--rtt", "100ms", "--duration", "1s", queue), "compare: ", *parts)


def test_a_value_of_compare_is_blamed_as_it_was_written(sojourn: Cli):
    command = ("compare", "--rate", "10mbit", "--rtt", "100ms", "codel", "pie:alpha=0.2,target=20")
    result = sojourn(*command)
    wrong(result, 'compare: in queue "pie:alpha=0.2,target=20": target: got 20; must be a time')
    assert "--set" not in result.stderr


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("compare pfifo --rate 10 --rtt 40ms", '--rate: got "10"; must be a rate above zero'),
        ("compare pfifo --rate 10mbit --rtt 40", '--rtt: got "40"; must be a time'),
        (
            "compare pfifo --rate 10mbit --rtt 4ms --warmup 9min",
            '--warmup: got "9min"; must be below --duration ("30 s")',
        ),
        ("compare cdel --rate 10mbit --rtt 4ms", 'compare: in queue "cdel": aqm: got "cdel"; did you mean "codel"?'),
        ("compare pie pie --rate 10mbit --rtt 4ms", 'compare: in queue "pie": queue.0 is labelled "pie" as well'),
        ("shell --rate x -- true", '--rate: got "x"; must be a rate above zero'),
        ("shell --rate 1mbit --up x -- true", '--up: got "x"; must be a rate above zero'),
        ("shell --rate 1mbit --delay 5 -- true", '--delay: got "5"; must be a time'),
        ("shell --rate 1mbit --aqm codel:tgt=5ms -- true", 'shell: in queue "codel:tgt=5ms": tgt: unknown key'),
        ("shell --rate 1mbit --set queue.0.x=1 -- true", "--set queue.0.x: unknown key; accepted by pfifo"),
        ("evaluate codel:targt=5ms", 'evaluate: in queue "codel:targt=5ms": targt: unknown key'),
        ("evaluate cubik --suite ccwg", 'evaluate: TCP: got "cubik"; did you mean "cubic"?'),
    ],
)
def test_what_a_file_is_made_of_is_blamed_not_the_file(sojourn: Cli, command, says):
    result = sojourn(*command.split())
    wrong(result, says)
    assert result.stderr.startswith(says)


def test_an_option_of_the_interface_is_blamed_by_its_name():
    with pytest.raises(sj.ExperimentError, match=r'^compare: rate: got "10"; must be a rate above zero'):
        sj.compare("pfifo", rate="10", rtt="40 ms")


def test_an_output_without_a_name(sojourn: Cli, experiment: Path):
    wrong(sojourn("run", experiment, "--out", ""), "--out", "must be the name of a directory; got ''")
    wrong(
        sojourn("study", "run", "khademi2013", "--quick", "--out", ""),
        "--out",
        "must be the name of a directory; got ''",
    )


def test_a_kernel_that_is_not_there(sojourn: Cli, experiment: Path):
    wrong(sojourn("run", experiment, "--backend", "linux", "--kernel", "nowhere"), "--kernel", "nowhere")


@pytest.mark.parametrize("given", ["0", "-3", "two", "1.5"])
def test_a_wrong_number_is_told_what_was_given(sojourn: Cli, experiment: Path, given):
    wrong(sojourn("run", experiment, "--jobs", given), "--jobs", f"'{given}'")


def test_bytes_that_are_no_text_are_no_discipline(sojourn: Cli):
    """Python keeps such bytes of a command line as surrogates, which no text may have."""
    wrong(sojourn("compare", "\udcff", "--rate", "10 Mbit/s", "--rtt", "40 ms"), "compare: in queue", 'aqm: got "?"')
