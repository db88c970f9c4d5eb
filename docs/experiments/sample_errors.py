#!/usr/bin/env python3
"""Where a computation model errs: predicted over measured cost of groups of samples.

    docs/experiments/sample_errors.py SAMPLES.jsonl [--by cost|pieces|sequence|batch|optimizer]
                                      [--groups COUNT]

SAMPLES.jsonl is what `neuroshard model test MODEL COSTS ... --samples FILE` writes; the files of
costs must lie where they lay then. Groups by cost, pieces and sequence have as many samples each
(as nearly as equal values allow); the sequence is the order in which a file's samples begin to be
measured, and each file is divided by itself.
For each group: its samples, the median of predicted/measured, of |predicted/measured - 1|, and the
value that 95 % of these are below. Below all: the same if each group's median of predicted/measured
is divided out, so how much of the errors the groups have in common.
"""

import argparse
import gzip
import json
import statistics
from functools import cache
from pathlib import Path


@cache
def costs_of(path: str) -> tuple[dict, dict]:
    """The header of a file of costs, and its samples by number."""
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        header, *samples = [json.loads(line) for line in file]
    return header, {sample["index"]: sample for sample in samples}


def parts_of(samples: list[dict], key, count: int) -> dict[str, list[dict]]:
    """The samples in up to `count` groups of rising key; equal keys stay together."""
    ordered = sorted(samples, key=key)
    groups: dict[str, list[dict]] = {}
    begin = 0
    for part in range(count):
        end = max(begin, (part + 1) * len(ordered) // count)
        while 0 < end < len(ordered) and key(ordered[end]) == key(ordered[end - 1]):
            end += 1
        if end > begin:
            name = f"{key(ordered[begin]):.4g} to {key(ordered[end - 1]):.4g}"
            groups[name] = ordered[begin:end]
        begin = end
    return groups


def groups_of(samples: list[dict], by: str, count: int) -> dict[str, list[dict]]:
    """The samples by what is asked for, in the order in which groups are printed."""
    if by == "cost":
        return parts_of(samples, lambda sample: sample["measured_ms"], count)
    if by == "pieces":

        def pieces(sample: dict) -> int:
            return len(costs_of(sample["file"])[1][sample["index"]]["shards"])

        return parts_of(samples, pieces, count)
    groups: dict[str, list[dict]] = {}
    if by == "sequence":
        for path in sorted({sample["file"] for sample in samples}):
            of_file = [sample for sample in samples if sample["file"] == path]
            parts = parts_of(of_file, lambda sample: sample["index"], count)
            for number, part in enumerate(parts.values(), 1):
                groups.setdefault(f"part {number} of {count}", []).extend(part)
        return groups
    field = {"batch": "batch_size", "optimizer": "optimizer"}[by]
    values = sorted({costs_of(sample["file"])[0][field] for sample in samples})
    return {
        str(value): [s for s in samples if costs_of(s["file"])[0][field] == value]
        for value in values
    }


def ratios_of(samples: list[dict]) -> list[float]:
    return [sample["predicted_ms"] / sample["measured_ms"] for sample in samples]


def line_of(name: str, ratios: list[float]) -> str:
    errors = sorted(abs(ratio - 1.0) for ratio in ratios)
    most = errors[min(len(errors) - 1, int(0.95 * len(errors)))]
    return (
        f"{name:24} {len(ratios):8} {statistics.median(ratios):10.3f}"
        f" {100 * statistics.median(errors):7.1f}% {100 * most:7.1f}%"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("samples", type=Path)
    choices = ("cost", "pieces", "sequence", "batch", "optimizer")
    parser.add_argument("--by", choices=choices, default="cost")
    parser.add_argument("--groups", type=int, default=5)
    options = parser.parse_args()
    if options.groups < 1:
        parser.error(f"--groups: expected 1 or more, got {options.groups}")
    samples = [json.loads(line) for line in options.samples.read_text().splitlines()]
    if not samples:
        parser.error(f"{options.samples}: expected samples, got an empty file")
    print(f"{'by ' + options.by:24} {'samples':>8} {'predicted':>10} {'median':>8} {'95%':>8}")
    level = []
    for name, group in groups_of(samples, options.by, options.groups).items():
        ratios = ratios_of(group)
        print(line_of(name, ratios))
        level += [ratio / statistics.median(ratios) for ratio in ratios]
    print(line_of("all", ratios_of(samples)))
    print(line_of("all, less medians", level))


if __name__ == "__main__":
    main()
