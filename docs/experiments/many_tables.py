#!/usr/bin/env python3
"""Writes a task of many tables, plans it and prints the time, all files included, and the gap.

    docs/experiments/many_tables.py NEUROSHARD --tables 100000 --devices 64 --columns 16:128

Tables have 100 to 100,000 rows, pooling factors of 1 to 20 and a multiple of four columns, all
uniform at random. Other options, such as --threads, go to `neuroshard plan`.
"""

import argparse
import json
import random
import subprocess
import tempfile
import time
from pathlib import Path


def task(options):
    draw = random.Random(options.seed)
    least, most = (int(columns) for columns in options.columns.split(":"))
    tables = [
        {
            "name": f"t{i}",
            "num_embeddings": draw.randint(100, 100_000),
            "embedding_dim": 4 * draw.randint(least // 4, most // 4),
            "pooling_factor": draw.uniform(1.0, 20.0),
        }
        for i in range(options.tables)
    ]
    return {
        "format": "neuroshard/task/1",
        "batch_size": 4096,
        "optimizer": "sgd",
        "tables": tables,
        "topology": {
            "world_size": options.devices,
            "local_world_size": min(options.devices, 8),
            "memory_bytes": 1 << 50,
            "interconnect": "a100-nvswitch",
        },
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("neuroshard", help="executable")
    parser.add_argument("--tables", type=int, default=100_000)
    parser.add_argument("--devices", type=int, default=64)
    parser.add_argument("--columns", default="16:128", help="MIN:MAX of a table")
    parser.add_argument("--seed", type=int, default=0)
    options, plan_options = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        task_file, plan_file = Path(folder) / "task.json", Path(folder) / "plan.json"
        task_file.write_text(json.dumps(task(options)))
        command = [options.neuroshard, "plan", task_file, "-o", plan_file, *plan_options]
        start = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - start
        plan = json.loads(plan_file.read_text())
    above = plan["predicted"]["cost_ms"] / plan["search"]["lower_bound_ms"] - 1.0
    print(
        f"{options.tables} tables of {options.columns} columns on {options.devices} devices: "
        f"{seconds:.1f} s, {100.0 * above:.1f} % above the bound"
    )


if __name__ == "__main__":
    main()
