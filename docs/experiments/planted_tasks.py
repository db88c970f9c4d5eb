#!/usr/bin/env python3
"""Makes tasks with a known plan that fills every device to the last byte, or leaves some slack.

    docs/experiments/planted_tasks.py FOLDER [--count 4000] [--slack 0.02] [--rows 100:1000000]

The tables of a task (2 to 12, of 1 to 128 columns, a tenth of which cannot be cut) are cut in
columns and placed at random on 2 to 6 devices, and each device then has the memory that its pieces
take, times one plus the slack. Whether the search finds a plan, this or another:

    neuroshard compare FOLDER --algorithms neuroshard:columns,neuroshard --steps 1
"""

import argparse
import json
import math
import random
from pathlib import Path

_UNIT_COLUMNS = 4  # cuts are at multiples of them
_VALUE_BYTES = {"fp32": 4, "fp16": 2}
_STATE_BYTES = {"sgd": 0, "rowwise_adagrad": 4}  # of a row of a piece


def random_table(number: int, rows: tuple[int, int], rng: random.Random) -> dict:
    can_be_cut = rng.random() < 0.9
    return {
        "name": f"table{number}",
        "num_embeddings": round(math.exp(rng.uniform(*map(math.log, rows)))),
        "embedding_dim": _UNIT_COLUMNS * rng.randint(1, 32) if can_be_cut else rng.randint(1, 31),
        "pooling_factor": round(rng.uniform(1.0, 20.0), 1),
        "data_type": rng.choice(list(_VALUE_BYTES)),
    }


def random_widths(dim: int, most_pieces: int, rng: random.Random) -> list[int]:
    """Columns of a table's pieces."""
    if dim % _UNIT_COLUMNS != 0:
        return [dim]
    units = dim // _UNIT_COLUMNS
    cuts = rng.sample(range(1, units), rng.randint(1, min(units, most_pieces)) - 1)
    ends = [0, *sorted(cuts), units]
    return [_UNIT_COLUMNS * (end - begin) for begin, end in zip(ends, ends[1:])]


def planted_task(rows: tuple[int, int], slack: float, rng: random.Random) -> dict:
    optimizer = rng.choice(list(_STATE_BYTES))
    devices = rng.randint(2, 6)
    num_tables = rng.randint(2, 12)
    memory = [0]
    while 0 in memory:
        tables = [random_table(number, rows, rng) for number in range(num_tables)]
        memory = [0] * devices
        for table in tables:
            widths = random_widths(table["embedding_dim"], devices, rng)
            for device, width in zip(rng.sample(range(devices), len(widths)), widths):
                row = width * _VALUE_BYTES[table["data_type"]] + _STATE_BYTES[optimizer]
                memory[device] += table["num_embeddings"] * row
    return {
        "format": "neuroshard/task/1",
        "batch_size": 65536,
        "optimizer": optimizer,
        "tables": tables,
        "topology": {
            "world_size": devices,
            "local_world_size": devices,
            "memory_bytes": [math.ceil(used * (1.0 + slack)) for used in memory],
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="to write the tasks to; must not exist")
    parser.add_argument("--count", type=int, default=4000, help="of tasks")
    parser.add_argument("--slack", type=float, default=0.0, help="share of a device left free")
    parser.add_argument("--rows", default="100:1000000", help="of a table, as MIN:MAX")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    fewest, most = map(int, options.rows.split(":"))
    options.folder.mkdir(parents=True)
    for number in range(options.count):
        task = planted_task((fewest, most), options.slack, random.Random(f"{options.seed} {number}"))
        file = options.folder / f"task-{number:04}.json"
        file.write_text(json.dumps(task) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
