"""A browser that a test drives over WebDriver, as chromedriver speaks it, with the standard library only."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMEDRIVER = shutil.which("chromedriver")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    """One window."""

    def __init__(self, address: str, session: str) -> None:
        self.address = f"{address}/session/{session}"

    def command(self, path: str, **given: Any) -> Any:
        """A command of the protocol."""
        return _post(f"{self.address}{path}", given)

    def open(self, url: str) -> None:
        """Loads a page."""
        self.command("/url", url=url)

    def run(self, script: str, *arguments: Any) -> Any:
        """What a function body returns in the page; what it awaits is awaited."""
        wrapped = f"return (async () => {{ {script} }})()"
        return self.command("/execute/sync", script=wrapped, args=list(arguments))

    def wait(self, condition: str, seconds: float = 30.0) -> Any:
        """Waits until an expression is true; returns its value."""
        last = time.monotonic() + seconds
        while not (value := self.run(f"return {condition}")):
            if time.monotonic() > last:
                raise AssertionError(f"not within {seconds} s: {condition}; log: {self.errors()}")
            time.sleep(0.02)
        return value

    def element(self, selector: str) -> str:
        """The path of an element's commands."""
        found = self.command("/element", using="css selector", value=selector)
        return f"/element/{found[ELEMENT]}"

    def click(self, selector: str) -> None:
        """Clicks as a user would: what is covered or not on the screen is not clicked."""
        self.command(f"{self.element(selector)}/click")

    def type(self, selector: str, text: str) -> None:
        """Presses keys, in an element."""
        self.command(f"{self.element(selector)}/value", text=text)

    def size(self, width: int, height: int, *, phone: bool = False) -> None:
        """Gives the page a size on the screen, of a phone that is touched if wanted."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 2 if phone else 1, "mobile": phone}
        self.command("/goog/cdp/execute", cmd="Emulation.setDeviceMetricsOverride", params=metrics)

    def picture(self, path: Path) -> None:
        """Saves what is on the screen."""
        with urllib.request.urlopen(f"{self.address}/screenshot") as reply:
            path.write_bytes(base64.b64decode(json.load(reply)["value"]))

    def errors(self) -> list[str]:
        """What the page's console has had to complain about since the last call."""
        entries = self.command("/se/log", type="browser")
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]


def _post(url: str, given: dict[str, Any]) -> Any:
    data = json.dumps(given).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as reply:
            return json.load(reply)["value"]
    except urllib.error.HTTPError as error:
        raise AssertionError(json.load(error)["value"]["message"]) from None


@contextmanager
def browser(profile: Path, *arguments: str) -> Iterator[Browser]:
    """A browser, ended at last."""
    assert CHROMEDRIVER is not None and CHROMIUM is not None
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    driver = subprocess.Popen([CHROMEDRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(500):
            try:
                urllib.request.urlopen(f"{address}/status").close()
                break
            except OSError:
                time.sleep(0.02)
        options = {"binary": CHROMIUM, "args": [*ARGUMENTS, *arguments, f"--user-data-dir={profile}"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        session = _post(f"{address}/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        try:
            yield Browser(address, session)
        finally:
            urllib.request.urlopen(urllib.request.Request(f"{address}/session/{session}", method="DELETE")).close()
    finally:
        driver.terminate()
        driver.wait()
