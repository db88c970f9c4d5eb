#!/usr/bin/env python3
"""Checks the references of the documents: relative links, their anchors, paths of files, and names of
tests; and that docs/formats.md names every format that the sources write.

    scripts/check_documents.py             prints each broken reference; exit code 1 if there are any
    scripts/check_documents.py FILE...     of these documents alone

A path is what stands in `code` and ends as a file of the source tree does, from the root of the
repository or from neuroshard/, e.g. `neuroshard/cost/simulator.h` or `cost/simulator.h`. A test is
`Suite.Name` of C++, or `test_name` of Python.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
SOURCE_PATH = re.compile(r"`((?:\.?[\w-]+/)+[\w.-]+\.(?:h|cpp|cu|cuh|inc|py|sh|cmake|md))`")
FORMAT = re.compile(r'"(neuroshard/[a-z-]+/\d+)"')
TEST_NAME = re.compile(r"`([A-Z]\w+\.[A-Z]\w+|test_\w+)`")
FENCE = re.compile(r"^\s*```")


def documents():
    skipped = {"build", "node_modules"}
    for path in sorted(ROOT.rglob("*.md")):
        parts = path.relative_to(ROOT).parts
        if not any(part in skipped or part.startswith(".") for part in parts):
            yield path


def prose(path):
    """Lines with their numbers, blocks of code left out."""
    fenced = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def tests():
    """Names of all tests, and of the executables that they are in."""
    names = {f"test_{path.name}" for path in (ROOT / "tests").iterdir() if path.is_dir()}
    for path in (ROOT / "tests").rglob("*"):
        if path.suffix == ".cpp":
            found = re.findall(
                r"^(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP)\((\w+),\s*(\w+)", path.read_text(), re.M
            )
            names |= {".".join(name) for name in found}
        elif path.suffix == ".py":
            names |= {path.stem} | set(re.findall(r"^def (test_\w+)", path.read_text(), re.M))
    return names


def anchors(path):
    """Anchors of headings by GitHub's rules: repeated ones are numbered."""
    seen = {}
    result = set()
    for _, line in prose(path):
        heading = re.match(r"^#+\s+(.*?)\s*#*$", line)
        if not heading:
            continue
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)).lower()
        anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        count = seen.get(anchor, 0)
        seen[anchor] = count + 1
        result.add(f"{anchor}-{count}" if count else anchor)
    return result


def shown(path):
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def broken_link(path, target):
    """Why a link leads nowhere; None if it leads somewhere, or out of the tree."""
    if re.match(r"^[a-z][a-z0-9+.-]*:", target):
        return None
    name, _, anchor = target.partition("#")
    file = (path.parent / name).resolve() if name else path
    if not file.exists():
        return "expected an existing file"
    if anchor and file.suffix == ".md" and anchor not in anchors(file):
        return f"expected a heading of {shown(file)}"
    return None


def undocumented_formats():
    """Formats of files and of answers with --json that formats.md does not name."""
    documented = (ROOT / "docs/formats.md").read_text()
    for folder in ("neuroshard", "cli", "python"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".cpp", ".h", ".py"):
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                for name in FORMAT.findall(line):
                    if f"`{name}`" not in documented:
                        yield f"{shown(path)}: line {number}: {name}: expected in docs/formats.md"


def main():
    broken = 0
    if not sys.argv[1:]:
        for text in undocumented_formats():
            broken += 1
            print(text)
    known_tests = tests()
    for path in map(Path, sys.argv[1:]) if sys.argv[1:] else documents():
        for number, line in prose(path):
            found = [(target, broken_link(path, target)) for target in LINK.findall(line)]
            found += [(name, "expected a file of the source tree") for name in SOURCE_PATH.findall(line)
                      if not (ROOT / name).exists() and not (ROOT / "neuroshard" / name).exists()]
            found += [(name, "expected a test") for name in TEST_NAME.findall(line)
                      if name not in known_tests]
            for target, why in found:
                if why:
                    broken += 1
                    print(f"{shown(path)}: line {number}: {target}: {why}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
