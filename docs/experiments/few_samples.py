#!/usr/bin/env python3
"""Copies some samples of files of measured costs, as many of each file.

Usage: few_samples.py [--evenly] [--without-reference-sets] COUNT OUTPUT_FOLDER COSTS.jsonl[.gz] ...

The first lines of each file or, with --evenly, samples evenly spaced by their numbers: files have
samples as they were done, the longest, which are repeated least often, before others, and the first
minutes of a machine are not like its others. With --without-reference-sets, what these took is left
out, as if they had not been measured.
"""

import argparse
import gzip
import json
import sys
from pathlib import Path


def without(line: str) -> str:
    """The line without what it says of reference sets."""
    fields = json.loads(line)
    for field in ("reference_sets", "reference_ms"):
        fields.pop(field, None)
    return json.dumps(fields) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evenly", action="store_true")
    parser.add_argument("--without-reference-sets", action="store_true")
    parser.add_argument("count", type=int)
    parser.add_argument("output", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    options = parser.parse_args()
    options.output.mkdir(parents=True)
    files = sorted(options.files)
    for number, file in enumerate(files):
        samples = options.count * (number + 1) // len(files) - options.count * number // len(files)
        opened = gzip.open(file, "rt") if file.suffix == ".gz" else file.open()
        with opened as lines:
            header, *measured = lines
        if options.evenly:
            measured.sort(key=lambda line: json.loads(line)["index"])
            samples = min(samples, len(measured))
            chosen = [measured[i * len(measured) // samples] for i in range(samples)]
        else:
            chosen = measured[:samples]
        if options.without_reference_sets:
            header, *chosen = [without(line) for line in (header, *chosen)]
        (options.output / file.name.removesuffix(".gz")).write_text("".join([header, *chosen]))


if __name__ == "__main__":
    main()
