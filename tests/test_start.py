"""What the command line loads before it knows what to do."""

from __future__ import annotations

import subprocess
import sys


def test_nothing_heavy_is_loaded_at_the_start():
    heavy = ["numpy", "pyarrow", "pandas", "matplotlib", "sojourn.studies", "sojourn.plots", "sojourn.report"]
    code = f"import sys, sojourn.cli.app; print(*[name for name in {heavy} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert loaded.stdout.split() == []
