#!/usr/bin/env python3
"""Plans random tasks with time limits, and prints by how much each run exceeded its own.

    docs/experiments/time_limits.py NEUROSHARD --sizes 60x4 1000x128 --limits 0.01 0.1 1 5
    docs/experiments/time_limits.py NEUROSHARD --sizes 1000x128 --fill 0.95 --by-frequency
    docs/experiments/time_limits.py NEUROSHARD --sizes 1000x128 --row-access 300

Neither reading the task nor writing the plan is in the limit: no plan is written, and a run with a
limit of a microsecond, which finds none, says how long reading takes. `no plan` stands for exit
code 1. Tables are those of many_tables.py. Other options, such as --algorithm, go to `neuroshard
plan`.
"""

import argparse
import itertools
import json
import random
import re
import subprocess
import tempfile
import time
from pathlib import Path

import many_tables


def change(task, options):
    """Memory that the tables fill to a share, and rows whose order says how they are used."""
    if options.fill:
        needed = sum(4 * t["num_embeddings"] * t["embedding_dim"] for t in task["tables"])  # fp32
        topology = task["topology"]
        topology["memory_bytes"] = int(needed / options.fill / topology["world_size"])
    if options.by_frequency:
        for table in task["tables"]:
            table |= {"row_order": "by_frequency", "index_distribution": {"zipf_exponent": 1.1}}
    if options.row_access:
        draw = random.Random(options.seed)
        for table in task["tables"]:
            # A measured curve: the hottest rows first, and noise that no two segments share.
            weights = [
                draw.uniform(0.5, 1.5) / (1 + point) ** 0.8 for point in range(options.row_access)
            ]
            sums = list(itertools.accumulate(weights))
            table |= {
                "row_access": [
                    [(point + 1) / options.row_access, min(at / sums[-1], 1.0)]
                    for point, at in enumerate(sums)
                ],
                "index_distribution": {"zipf_exponent": 1.1},
            }
    return task


def run(command, limit):
    """Seconds, and the plan's cost as printed; None where there was no plan."""
    start = time.monotonic()
    done = subprocess.run(
        [*command, "--time-limit", f"{limit}s"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - start
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    if done.returncode == 1:
        return seconds, None
    return seconds, re.search(r"predicted cost (\S+ ms)", done.stdout)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("neuroshard", help="executable")
    parser.add_argument("--sizes", nargs="+", default=["60x4"], help="TABLESxDEVICES")
    parser.add_argument("--limits", nargs="+", type=float, default=[1.0], help="seconds")
    parser.add_argument("--columns", default="16:128", help="MIN:MAX of a table")
    parser.add_argument("--fill", type=float, help="share of the memory; default ample")
    parser.add_argument("--by-frequency", action="store_true", help="hot rows first")
    parser.add_argument("--row-access", type=int, metavar="POINTS", help="of a measured curve")
    parser.add_argument("--seed", type=int, default=0)
    options, plan_options = parser.parse_known_args()
    for size in options.sizes:
        options.tables, options.devices = (int(number) for number in size.split("x"))
        with tempfile.TemporaryDirectory() as folder:
            task = Path(folder) / "task.json"
            task.write_text(json.dumps(change(many_tables.task(options), options)))
            command = [options.neuroshard, "plan", task, *plan_options]
            reading, _ = run(command, 1e-6)
            for limit in options.limits:
                seconds, cost = run(command, limit)
                beyond = seconds - reading - limit
                found = cost or "no plan"
                print(f"{size}, limit {limit:g} s: {beyond:+.3f} s beyond it, {found}", flush=True)


if __name__ == "__main__":
    main()
