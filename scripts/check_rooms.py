#!/usr/bin/env python3
"""Checks that a room of neuroshard/ includes only rooms above it, in the order of HACKING's tour, and
that the tour has every room.

    scripts/check_rooms.py    prints each include that runs backwards; exit code 1 if there are any
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^#include "((?:neuroshard/|cli/|python/|tests/)([\w-]+)/[^"]+)"')


def rooms():
    """The first table of HACKING.md, from top to bottom."""
    result = []
    for line in (ROOT / "HACKING.md").read_text().splitlines():
        if row := re.match(r"^\| `(\w+)/` \|", line):
            result.append(row.group(1))
        elif result:
            return result
    return result


def backwards(order):
    place = {room: number for number, room in enumerate(order)}
    for path in sorted((ROOT / "neuroshard").rglob("*")):
        parts = path.relative_to(ROOT / "neuroshard").parts
        if len(parts) < 2 or path.suffix not in (".h", ".cpp", ".cu", ".cuh", ".inc"):
            continue
        shown = path.relative_to(ROOT)
        if parts[0] not in place:
            yield f"{shown}: expected {parts[0]}/ in HACKING's tour"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            include = INCLUDE.match(line)
            if not include:
                continue
            name, room = include.groups()
            is_above = name.startswith("neuroshard/") and place.get(room, len(place)) <= place[parts[0]]
            if not is_above:
                yield f"{shown}: line {number}: expected a room above {parts[0]}/, got {name}"


def main():
    found = list(backwards(rooms()))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
