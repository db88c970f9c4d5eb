#!/usr/bin/env python3
"""Plans of random tasks whose tables nearly fill the devices.

    docs/experiments/tight_tasks.py NEUROSHARD [--before NEUROSHARD] [--model MODEL ...]

Tables have 10,000 to 10 million rows and 4 to 128 columns; the devices of one host have the memory
of which the tables take the given part. Printed are the predicted cost with columns alone and with
all cuts, in ms, and the seconds that each took; with --before also those of another build's search
with all cuts.
"""

import argparse
import json
import random
import subprocess
import tempfile
import time
from pathlib import Path

SIZES = [(60, 8), (120, 16), (300, 32), (1000, 128)]
FILLS = [0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999]


def task_of(tables, devices, fill):
    chance = random.Random(tables)
    made = [
        {
            "name": f"t{number}",
            "num_embeddings": int(10 ** chance.uniform(4, 7)),
            "embedding_dim": 4 * chance.choice([1, 2, 4, 8, 16, 32]),
            "pooling_factor": chance.uniform(1, 30),
            "data_type": "fp32",
        }
        for number in range(tables)
    ]
    needed = sum(4 * table["num_embeddings"] * table["embedding_dim"] for table in made)
    return {
        "format": "neuroshard/task/1",
        "batch_size": 1024 * devices,
        "optimizer": "sgd",
        "tables": made,
        "topology": {
            "world_size": devices,
            "local_world_size": devices,
            "memory_bytes": int(needed / devices / fill) + 1,
        },
    }


def planned(program, task, models, cuts):
    start = time.monotonic()
    done = subprocess.run(
        [program, "plan", task, *models, "--cuts", cuts, "--quiet", "--json"],
        capture_output=True,
        text=True,
    )
    seconds = time.monotonic() - start
    if done.returncode:
        return f"{'none':>10}{seconds:7.1f}"
    return f"{json.loads(done.stdout)['predicted']['cost_ms']:10.1f}{seconds:7.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("neuroshard")
    parser.add_argument("--before", help="another build to compare with")
    parser.add_argument("--model", action="append", default=None)
    options = parser.parse_args()
    models = [
        word for model in options.model or ["cpu-xeon-2core", "pcie4"] for word in ("--model", model)
    ]
    before = f"{'before':>10}{'s':>7}" if options.before else ""
    print(f"tables devices   fill{'columns':>10}{'s':>7}{before}{'all cuts':>10}{'s':>7}")
    with tempfile.TemporaryDirectory() as folder:
        task = Path(folder) / "task.json"
        for tables, devices in SIZES:
            for fill in FILLS:
                task.write_text(json.dumps(task_of(tables, devices, fill)))
                line = f"{tables:6}{devices:8}{fill:7}"
                line += planned(options.neuroshard, task, models, "columns")
                if options.before:
                    line += planned(options.before, task, models, "columns,rows,replicas")
                line += planned(options.neuroshard, task, models, "columns,rows,replicas")
                print(line, flush=True)


if __name__ == "__main__":
    main()
