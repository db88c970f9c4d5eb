#!/usr/bin/env python3
"""Copies some samples of files of measured costs, as many of each file.

Usage: few_samples.py [--evenly] COUNT OUTPUT_FOLDER COSTS.jsonl[.gz] ...

The first lines of each file or, with --evenly, samples evenly spaced by their numbers: files have
samples as they were done, the longest, which are repeated least often, before others, and the first
minutes of a machine are not like its others.
"""

import argparse
import gzip
import json
import sys
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evenly", action="store_true")
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
        (options.output / file.name.removesuffix(".gz")).write_text("".join([header, *chosen]))


if __name__ == "__main__":
    main()
