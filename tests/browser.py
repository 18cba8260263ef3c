"""Pages looked at in a real browser, where there is one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--window-size=1280,900",
)  # fmt: skip
PHONE = '<!DOCTYPE html><meta charset="utf-8"><iframe style="width: 390px; height: 844px" srcdoc="{page}"></iframe>'
"""A page on a screen as wide as a phone's."""


def titled(page: Path, *flags: str) -> dict:
    """The page's title, which its script makes JSON."""
    if BROWSER is None:
        pytest.skip("no chromium to open the page with")
    profile = page.with_name("profile")
    result = subprocess.run(
        [BROWSER, *FLAGS, *flags, f"--user-data-dir={profile}", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    title = re.search(r"<title>(.*?)</title>", result.stdout, re.S)
    assert title is not None
    return json.loads(title.group(1).replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))
