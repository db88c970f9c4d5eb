#!/usr/bin/env python3
"""How steady is this machine? The same sets of tables, measured again and again.

    docs/experiments/machine_states.py FOLDER --neuroshard build/release/cli/neuroshard --minutes 10

Each run is a new process that measures the same sets, at the same places of its memory, with the
same batches. Printed, a line for each run: how far its forward and backward passes are from the
sets' medians over all runs, in the median of the sets and in their scatter (standard deviation). A
machine whose speed changes as one number has no scatter: one factor for all sets and both passes
would correct it. Runs are kept in FOLDER, and a run of the script that was stopped goes on.
"""

import argparse
import json
import statistics
import subprocess
import time
from pathlib import Path

PASSES = ("forward_ms", "backward_ms")


def measure(options: argparse.Namespace, path: Path) -> None:
    subprocess.run(
        [
            *(options.neuroshard, "collect", "compute", "--workload", options.workload),
            *("--tables", "5:20", "--samples", str(options.sets), "--held-out", "0"),
            *("--in-flight", str(options.sets), "--arena", "2GiB", "--quiet", "-o", str(path)),
        ],
        check=True,
    )


def read(path: Path) -> dict[str, list[float]]:
    """The times of both passes by set."""
    with path.open() as lines:
        next(lines)
        samples = [json.loads(line) for line in lines]
    return {json.dumps(sample["shards"]): [sample[name] for name in PASSES] for sample in samples}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--neuroshard", default="neuroshard")
    parser.add_argument("--workload", default="dlrm-2022")
    parser.add_argument("--sets", type=int, default=32)
    parser.add_argument("--minutes", type=float, default=10.0)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)

    started = time.monotonic()
    while time.monotonic() - started < 60 * options.minutes:
        number = len(list(options.folder.glob("*.jsonl")))
        measuring = options.folder / "measuring.jsonl.part"
        measuring.unlink(missing_ok=True)
        measure(options, measuring)
        measuring.rename(options.folder / f"{number:03}-{int(time.monotonic())}.jsonl")

    files = sorted(options.folder.glob("*.jsonl"))
    runs = [read(path) for path in files]
    usual = {
        key: [statistics.median(run[key][number] for run in runs) for number in (0, 1)]
        for key in runs[0]
    }
    first = int(files[0].stem.split("-")[1])
    print("| minute | forward | scatter | backward | scatter | both |")
    print("|---|---|---|---|---|---|")
    for path, run in zip(files, runs):
        cells = [f"{(int(path.stem.split('-')[1]) - first) / 60:.1f}"]
        for number in (0, 1):
            ratios = [run[key][number] / usual[key][number] for key in usual]
            cells += [f"{statistics.median(ratios) - 1:+.1%}", f"{statistics.stdev(ratios):.1%}"]
        both = [sum(run[key]) / sum(usual[key]) for key in usual]
        cells.append(f"{statistics.median(both) - 1:+.1%}")
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
