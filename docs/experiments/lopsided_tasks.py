#!/usr/bin/env python3
"""Makes tasks lopsided: one to three tables of each get most of the lookups, or of the memory.

Usage: lopsided_tasks.py TASKS OUTPUT [SEED], folders of task files as `neuroshard workload tasks`
writes them. Every second task gets tables of many lookups, the others tables of many rows; memory
is such that the tables fill 50 to 80 % of it.
"""

import json
import math
import random
import sys
from pathlib import Path

_BYTES = {"fp32": 4, "fp16": 2}


def table_bytes(table: dict, optimizer: str) -> int:
    row = table["embedding_dim"] * _BYTES[table.get("data_type", "fp32")]
    state = 4 if optimizer == "rowwise_adagrad" else 0
    return table["num_embeddings"] * (row + state)


def make_lopsided(task: dict, by_lookups: bool, rng: random.Random) -> None:
    tables = task["tables"]
    chosen = rng.sample(tables, rng.randint(1, 3))
    share = rng.uniform(0.6, 0.85)  # of everything, that these tables have in the end
    for table in chosen:
        table["embedding_dim"] = rng.choice([64, 128])

    def lookups(table: dict) -> float:
        return table["pooling_factor"]

    def size(table: dict) -> float:
        return table_bytes(table, task["optimizer"])

    quantity = lookups if by_lookups else size
    others = sum(map(quantity, tables)) - sum(map(quantity, chosen))
    for table in chosen:
        factor = others * share / (1.0 - share) / len(chosen) / quantity(table)
        if by_lookups:
            table["pooling_factor"] *= max(factor, 1.0)
        else:
            times = max(round(factor), 1)
            table["num_embeddings"] *= times
            classes = table["index_distribution"]["access_classes"]
            for access_class in classes:
                access_class[0] *= times
    topology = task["topology"]
    fill = rng.uniform(0.5, 0.8)
    topology["memory_bytes"] = math.ceil(sum(map(size, tables)) / fill / topology["world_size"])


def main() -> None:
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    seed = sys.argv[3] if len(sys.argv) > 3 else "0"
    target.mkdir(parents=True)
    for number, file in enumerate(sorted(source.glob("*.json"))):
        rng = random.Random(f"{seed} {file.name}")
        task = json.loads(file.read_text())
        make_lopsided(task, by_lookups=number % 2 == 0, rng=rng)
        (target / file.name).write_text(json.dumps(task) + "\n")


if __name__ == "__main__":
    main()
