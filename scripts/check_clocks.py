#!/usr/bin/env python3
"""Checks that no source reads a clock that can be set: limits and timings go by steady ones.

    scripts/check_clocks.py [FILE...]    prints each use; exit code 1 if there is any
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (".h", ".cpp", ".cu", ".cuh", ".inc", ".py")
# The tests' library of faults lets these very clocks jump.
LEFT_OUT = {"scripts/check_clocks.py", "tests/faults/fault_shim.cpp", "tests/cli/documents_test.cpp"}
SETTABLE = re.compile(
    r"\b(system_clock|high_resolution_clock|utc_clock|gettimeofday|CLOCK_REALTIME\w*|time\.time(?:_ns)?"
    r"|timespec_get|MPI_Wtime|datetime\.(?:now|utcnow))\b|\bstd::time\(|\b::time\("
)


def tracked():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    names = listed.stdout.splitlines() or [
        str(path.relative_to(ROOT))
        for folder in ("bench", "cli", "fuzz", "neuroshard", "python", "scripts", "tests")
        for path in (ROOT / folder).rglob("*")
    ]
    return [ROOT / name for name in names if name.endswith(SOURCES) and name not in LEFT_OUT]


def main():
    found = False
    for path in [Path(name) for name in sys.argv[1:]] or tracked():
        if not path.is_file():
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if use := SETTABLE.search(line):
                found = True
                print(f"{path}: line {number}: expected a steady clock, got {use.group(0)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
