#!/usr/bin/env python3
"""How well measured computation costs repeat: by how much the costs of equal samples differ.

    docs/experiments/repeated_costs.py FILE AGAIN [FILE AGAIN ...]

Files of neuroshard/compute-costs/1 (.jsonl or .jsonl.gz), in pairs, matched by the samples'
numbers.
For each pair: the mean of |again/first - 1|, the median of again/first - 1, which is the drift of
the machine's speed, and the mean difference once that is divided out; also the median of the
differences and the value that nine tenths of them are below.
"""

import gzip
import json
import statistics
import sys
from pathlib import Path


def samples(path):
    """The lines of measured samples by their numbers."""
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file][1:]
    return {line["index"]: line for line in lines if "skipped" not in line}


def costs(path):
    """The pieces and the cost [ms] of each sample by its number."""
    return {
        index: (line["shards"], line["forward_ms"] + line["backward_ms"])
        for index, line in samples(path).items()
    }


def ratios(first, again):
    """Cost again over the first cost, of the samples that both files have."""
    found = []
    for index, (shards, cost) in again.items():
        if index not in first:
            continue
        if first[index][0] != shards:
            raise SystemExit(f"sample {index}: expected the same pieces in both files")
        found.append(cost / first[index][1])
    if not found:
        raise SystemExit("expected samples that both files have, got none")
    return found


def line_of(name, found):
    drift = statistics.median(found)
    differences = sorted(abs(ratio - 1.0) for ratio in found)
    without = statistics.fmean(abs(ratio / drift - 1.0) for ratio in found)
    tenth = differences[min(len(differences) - 1, int(0.9 * len(differences)))]
    return (
        f"{name:44} {len(found):6} {100 * statistics.fmean(differences):6.1f}%"
        f" {100 * (drift - 1.0):+6.1f}% {100 * without:6.1f}%"
        f" {100 * statistics.median(differences):6.1f}% {100 * tenth:6.1f}%"
    )


def main():
    files = sys.argv[1:]
    if len(files) < 2 or len(files) % 2 or "-h" in files or "--help" in files:
        raise SystemExit(__doc__)
    titles = ("mean", "drift", "less it", "median", "9 of 10")
    print(f"{'':44} {'again':>6}", *(f"{title:>7}" for title in titles))
    together = []
    for first, again in zip(files[::2], files[1::2], strict=True):
        found = ratios(costs(first), costs(again))
        together += found
        print(line_of(Path(first).name.removesuffix(".gz").removesuffix(".jsonl"), found))
    if len(files) > 2:
        print(line_of("all", together))


if __name__ == "__main__":
    main()
