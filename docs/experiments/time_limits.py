#!/usr/bin/env python3
"""Plans random tasks with time limits, and prints by how much each run exceeded its own.

    docs/experiments/time_limits.py NEUROSHARD --sizes 60x4 1000x128 --limits 0.01 0.1 1 5
    docs/experiments/time_limits.py NEUROSHARD --sizes 1000x128 --fill 0.95 --by-frequency

Reading the task is not in the limit: a run with a limit of a microsecond, which finds no plan, says
how long that takes. `no plan` stands for exit code 1. Tables are those of many_tables.py. Other
options, such as --algorithm, go to `neuroshard plan`.
"""

import argparse
import json
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
    return task


def run(command, limit):
    """Seconds, and whether there was a plan."""
    start = time.monotonic()
    done = subprocess.run(
        [*command, "--time-limit", f"{limit}s"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - start
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    return seconds, done.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("neuroshard", help="executable")
    parser.add_argument("--sizes", nargs="+", default=["60x4"], help="TABLESxDEVICES")
    parser.add_argument("--limits", nargs="+", type=float, default=[1.0], help="seconds")
    parser.add_argument("--columns", default="16:128", help="MIN:MAX of a table")
    parser.add_argument("--fill", type=float, help="share of the memory; default ample")
    parser.add_argument("--by-frequency", action="store_true", help="hot rows first")
    parser.add_argument("--seed", type=int, default=0)
    options, plan_options = parser.parse_known_args()
    for size in options.sizes:
        options.tables, options.devices = (int(number) for number in size.split("x"))
        with tempfile.TemporaryDirectory() as folder:
            task = Path(folder) / "task.json"
            task.write_text(json.dumps(change(many_tables.task(options), options)))
            plan = Path(folder) / "plan.json"
            command = [options.neuroshard, "plan", task, "-o", plan, *plan_options]
            reading, _ = run(command, 1e-6)
            for limit in options.limits:
                seconds, has_plan = run(command, limit)
                found = "no plan"
                if has_plan:
                    found = f"{json.loads(plan.read_text())['predicted']['cost_ms']:.3f} ms"
                beyond = seconds - reading - limit
                print(f"{size}, limit {limit:g} s: {beyond:+.3f} s beyond it, {found}", flush=True)
                plan.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
