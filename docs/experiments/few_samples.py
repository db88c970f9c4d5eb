#!/usr/bin/env python3
"""Copies the first samples of files of measured costs, spread evenly over the files.

Usage: few_samples.py COUNT OUTPUT_FOLDER COSTS.jsonl[.gz] ...
"""

import gzip
import sys
from itertools import islice
from pathlib import Path


def main() -> None:
    count, output, files = int(sys.argv[1]), Path(sys.argv[2]), sorted(map(Path, sys.argv[3:]))
    output.mkdir(parents=True)
    for number, file in enumerate(files):
        samples = count * (number + 1) // len(files) - count * number // len(files)
        opened = gzip.open(file, "rt") if file.suffix == ".gz" else file.open()
        with opened as lines:
            head = islice(lines, 1 + samples)
            (output / file.name.removesuffix(".gz")).write_text("".join(head))


if __name__ == "__main__":
    main()
