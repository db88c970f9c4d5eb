"""The package's type hints hold under mypy --strict."""

import subprocess
import sys

from conftest import ROOT


def test_mypy_strict():
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir=/dev/null", ROOT / "python" / "neuroshard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
