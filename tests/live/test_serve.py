"""``sojourn serve``: who may watch, what is told, what can be changed, and the page in a real browser."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sojourn import _core
from sojourn.linux import datapath
from sojourn.live.feed import Feed
from sojourn.live.server import served
from web.driver import CHROMEDRIVER, CHROMIUM, Browser, browser

LACKING = datapath.missing()
real = pytest.mark.skipif(LACKING is not None, reason=f"real packets: {LACKING}")
FILE = """
experiment = { duration = "600 s" }
link = { rate = "20 Mbit/s" }
queue = [{ aqm = "codel" }, { aqm = "fq_codel" }]
traffic = [{ kind = "bulk", flows = 2, rtt = "20 ms" }, { kind = "ping", rtt = "20 ms", interval = "100 ms" }]
"""


def ask(url: str, data: object = None, **headers: str) -> tuple[int, str]:
    """The status and the text of an answer."""
    body = None if data is None else json.dumps(data).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=20) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def events(url: str) -> Iterator[dict]:
    """The events of a run as they come."""
    with urllib.request.urlopen(url, timeout=20) as stream:
        for line in stream:
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))


@contextmanager
def serving(file: Path, *options: str) -> Iterator[str]:
    """The URL of a run that is served, ended at last."""
    command = [sys.executable, "-m", "sojourn", "serve", str(file), *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        try:
            said = process.stderr.readline()
            assert said.startswith("open http://"), said + process.stderr.read()
            yield said.removeprefix("open ").strip()
        finally:
            process.send_signal(signal.SIGINT)
            process.stderr.read()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "watched.toml"
    path.write_text(FILE)
    return path


def test_readers_get_what_happened_before_and_each_event_once():
    feed = Feed({})
    feed.add({"sample": {"now_s": math.nan, "queues": [{"sojourn_mean_ms": math.inf}]}})
    number, told = feed.after(0, 0)
    assert told == [{"sample": {"now_s": None, "queues": [{"sojourn_mean_ms": None}]}}]
    assert feed.after(number, 0) == (number, [])
    for n in range(10_000):
        feed.add({"sample": {"now_s": n}})
    number, told = feed.after(number, 0)
    assert number == 10_001
    assert 3000 <= len(told) <= 6000
    assert told[-1] == {"sample": {"now_s": 9999}}


def test_a_change_is_told_and_a_refused_one_is_not():
    feed = Feed({})
    with pytest.raises(_core.ExperimentError, match="the run is not going on"):
        feed.set("link.rate", "5 Mbit/s")
    asked = []
    feed.setter = lambda key, value: asked.append((key, value))
    with served(feed, "127.0.0.1", 0) as url:
        assert ask(f"{url}set", {"key": "link.rate", "value": "5 Mbit/s"})[0] == 204
        assert ask(f"{url}set", {"key": "link.rate"})[0] == 400
        assert ask(f"{url}set", {"key": "k" * 5000, "value": ""})[0] == 400
        # What a form of a foreign page can send.
        assert ask(f"{url}set", {"key": "a", "value": "b"}, **{"Content-Type": "text/plain"})[0] == 400
    assert asked == [("link.rate", "5 Mbit/s")]
    assert feed.after(0, 0)[1] == [{"set": ["link.rate", "5 Mbit/s"]}, {"end": True}]


def test_the_page_is_for_this_machine_or_for_who_has_the_token():
    feed = Feed({"title": "mine"})
    with served(feed, "127.0.0.1", 0) as url:
        assert ask(f"{url}run") == (200, '{"title": "mine"}')
        # A foreign page whose name was made to mean this machine.
        assert ask(f"{url}run", Host="example.org")[0] == 403
        assert [ask(f"{url}{name}")[0] for name in ("", "served.js", "style.css")] == [200] * 3
        assert [ask(f"{url}{name}")[0] for name in ("build.py", "../README.md", "%2e%2e/x.js", "none.js")] == [404] * 4
    with served(feed, "0.0.0.0", 0) as url:
        page, _, token = url.partition("?token=")
        assert len(token) >= 20
        assert ask(f"{page}run?token={token}")[0] == 200
        for wrong in ("", "?token=", f"?token={token}x"):
            assert ask(f"{page}run{wrong}")[0] == 403
            assert ask(f"{page}set{wrong}", {"key": "a", "value": "b"})[0] == 403


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--backend", "linux"], '--backend: got "linux"; must be sim or datapath'),
        (["--speed", "0"], "--speed: got 0; must be above 0"),
        (["--queue", "pie"], 'queue: got "pie"; must be one of codel, fq_codel'),
    ],
)
def test_mistakes_are_one_line(file: Path, options: list[str], message: str):
    done = subprocess.run([sys.executable, "-m", "sojourn", "serve", file, *options], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message + "\n")


def test_a_simulation_is_told_as_it_goes_on_and_changed(file: Path):
    with serving(file, "--queue", "fq_codel") as url:
        about = json.loads(ask(f"{url}run")[1])
        assert about["title"] == "watched: fq_codel"
        assert [flow["name"] for flow in about["flows"]] == ["bulk", "bulk", "ping"]
        status, why = ask(f"{url}set", {"key": "link.rate", "value": "5 parsec"})
        assert (status, why.partition(" like")[0]) == (409, 'link.rate: got "5 parsec"; must be a rate above zero')
        assert ask(f"{url}set", {"key": "link.rate", "value": "5 Mbit/s"})[0] == 204
        assert ask(f"{url}set", {"key": "queue.target", "value": "20 ms"})[0] == 204
        assert changed_rates(url, after_s=0.5)[0] < 5.5e6


def changed_rates(url: str, after_s: float) -> tuple[float, list[float]]:
    """The goodput of a second after a change, and the last round trips of the flows."""
    goodput, trips, changed = [], {}, None
    for event in events(f"{url}events"):
        if "set" in event:
            changed = True
        sample = event.get("sample")
        if sample is None or not changed:
            continue
        if changed is True:
            changed = sample["now_s"]
        flows = sample["flows"]
        trips |= {number: flow["rtt_ms"] for number, flow in enumerate(flows) if flow and flow["rtt_ms"]}
        if sample["now_s"] > changed + after_s:
            goodput.append(sum(flow["goodput_bps"] or 0.0 for flow in flows if flow))
        if len(goodput) == 10:
            return sum(goodput) / 10, list(trips.values())
    raise AssertionError("the run has ended")


@real
def test_real_packets_are_told_as_they_come_and_changed(file: Path):
    file.write_text(FILE.replace("600 s", "20 s"))
    with serving(file, "--backend", "datapath") as url:
        wait_for_sample(url)
        assert ask(f"{url}set", {"key": "link.rate", "value": "5 parsec"})[0] == 409
        assert ask(f"{url}set", {"key": "link.rate", "value": "5 Mbit/s"}) == (204, "")
        rate, trips = changed_rates(url, after_s=0.5)
        assert 3e6 < rate < 5.5e6
        # Two flows and a ping, behind 20 ms of propagation.
        assert len(trips) == 3
        assert all(20.0 <= trip < 300.0 for trip in trips)


def wait_for_sample(url: str) -> dict:
    return next(event["sample"] for event in events(f"{url}events") if "sample" in event)


@real
def test_a_program_is_watched(file: Path):
    fetch = (
        "import os, socket, time\nfor n in range(60):\n"
        " c = socket.create_connection((os.environ['SOJOURN_SERVER'], 9)); c.sendall(bytes(200_000)); c.recv(1)\n"
        " time.sleep(0.05)\n"
    )
    serve = (
        "import os, socket\ns = socket.create_server((os.environ['SOJOURN_SERVER'], 9))\n"
        "while True:\n c, _ = s.accept()\n n = 0\n while n < 200_000: n += len(c.recv(65536))\n c.sendall(b'1')\n"
    )
    script = file.with_name("serve.py")
    script.write_text(serve)
    program = ["--server", f"{sys.executable} {script}", str(file), "--", sys.executable, "-c", fetch]
    with serving(Path(program[0]), *program[1:]) as url:
        for event in events(f"{url}events"):
            sample = event.get("sample")
            if sample and any(flow["rtt_ms"] for flow in sample["flows"]):
                assert sample["described"][0] == {"name": "tcp 9", "direction": "up"}
                return
    raise AssertionError("no flow has come")


def test_nothing_is_served_after_an_interruption(file: Path):
    with serving(file) as url:
        wait_for_sample(url)
    with pytest.raises(OSError):
        ask(f"{url}run")


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None or CHROMEDRIVER is None:
        pytest.skip("no chromium with chromedriver to open the page with")
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


TIME = "parseFloat(document.getElementById('told-time').textContent)"
WIDE = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"


@pytest.mark.parametrize("phone", [False, True])
def test_a_browser_shows_the_run_and_changes_it(window: Browser, file: Path, tmp_path: Path, phone: bool):
    size = (390, 844) if phone else (1360, 900)
    window.size(*size, phone=phone)
    with serving(file) as url:
        window.open(url)
        window.wait(f"{TIME} > 1.0")
        assert window.run("return document.querySelectorAll('#legend span').length") == 3
        window.wait("Number(document.getElementById('told-waiting').textContent) > 0")
        drawn = "return new Set(document.getElementById('{}').getContext('2d').getImageData(0, 0, 600, 150).data).size"
        for chart in ("delays", "rates", "backlog", "drops", "trips"):
            assert window.run(drawn.format(chart)) > 8, chart
        assert window.run(f"return {WIDE}")
        slide = "const it = document.querySelector('[data-key=\"link rate\"]'); it.value = -100;"
        window.run(slide + "it.dispatchEvent(new Event('input'))")
        assert re.search(r"4\.5 Mbit/s", window.run("return document.getElementById('sliders').textContent"))
        assert changed_rates(url, after_s=0.5)[0] < 4.8e6
        if os.environ.get("SOJOURN_PICTURES"):
            time.sleep(4)
            window.picture(Path(os.environ["SOJOURN_PICTURES"], f"served-{size[0]}.png"))
        window.click("#hold")
        held = window.run("return document.getElementById('hold').textContent")
        assert held == "Go on"
    window.wait("document.getElementById('told').textContent !== ''")
    # That the server has gone is all that there is to complain about.
    assert [line for line in window.errors() if "ERR_" not in line] == []
