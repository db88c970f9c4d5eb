#!/usr/bin/env python3
"""Copies files of measured computation costs with all times multiplied, as of a slower or faster host.

Usage: scaled_costs.py FACTOR OUTPUT_FOLDER COSTS.jsonl[.gz] ...
"""

import gzip
import json
import sys
from pathlib import Path


def main() -> None:
    factor, output, files = float(sys.argv[1]), Path(sys.argv[2]), sorted(map(Path, sys.argv[3:]))
    output.mkdir(parents=True)
    for file in files:
        opened = gzip.open(file, "rt") if file.suffix == ".gz" else file.open()
        with opened as lines, (output / file.name.removesuffix(".gz")).open("w") as scaled:
            scaled.write(next(lines))  # the header
            for line in lines:
                sample = json.loads(line)
                for time in ("forward_ms", "backward_ms"):
                    if time in sample:  # not in one that was skipped
                        sample[time] *= factor
                scaled.write(json.dumps(sample) + "\n")


if __name__ == "__main__":
    main()
