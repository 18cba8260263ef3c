"""Builds a kernel with mac80211 and, below it, the radio of this folder, which ``validation/wifi_kernel.py`` measures.

``python validation/wifi_radio/build.py [VERSION [SOURCE]]`` keeps it in ``FOLDER`` under its release; by default of 7.2
and Debian's source, as ``sojourn kernel build``. Experiments do not run on it unless ``--kernel`` names it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from sojourn.linux import build, kernel

HERE = Path(__file__).parent
FOLDER = kernel.built_directory() / "wifi"
"""Where these kernels are kept, a folder each."""


def add_radio(tree: Path) -> None:
    """Adds the driver as a folder beside the kernel's own drivers of radios."""
    drivers = tree / "drivers" / "net" / "wireless"
    target = drivers / "sojourn"
    target.mkdir()
    for name in ("Kconfig", "Makefile", "contention.h", "sojourn_wifi.c"):
        shutil.copy2(HERE / name, target / name)
    options = drivers / "Kconfig"
    # Before the end of the menu, which is the end of the file.
    before, end, after = options.read_text(encoding="utf-8").rpartition("endif # WLAN")
    if not end:
        raise SystemExit("this version of the kernel is not known: its drivers/net/wireless/Kconfig has another form")
    options.write_text(f'{before}source "drivers/net/wireless/sojourn/Kconfig"\n\n{end}{after}', encoding="utf-8")
    with (drivers / "Makefile").open("a", encoding="utf-8") as file:
        file.write("\nobj-$(CONFIG_SOJOURN_WIFI) += sojourn/\n")


def main(version: str = "7.2", source: str | None = None) -> None:
    """Builds it and names its folder."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER, prefix=".source-") as temporary:
        tree = build.copy_of(version, None if source is None else Path(source), Path(temporary), print)
        release = build.release_of(tree, tree, version)
        add_radio(tree)
        built = build.build(version, tree, FOLDER / release, print, config=HERE / "wifi.config")
    print(f"{built.release}: {built.modules}")


if __name__ == "__main__":
    main(*sys.argv[1:])
