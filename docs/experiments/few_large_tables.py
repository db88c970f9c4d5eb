#!/usr/bin/env python3
"""Makes tasks with one to four tables of most of the lookups and 4 to 20 small ones, each on a
host of its own.

Usage: few_large_tables.py OUTPUT FIRST_SEED COUNT, a folder for `task-SEED.json`
"""

import json
import random
import sys
from pathlib import Path


def make_task(seed: int) -> dict:
    rng = random.Random(seed)
    devices = rng.choice([4, 8, 16])
    num_large = rng.randint(1, 4)
    num_small = rng.randint(4, 20)

    def table(name: str, rows: tuple[float, float], dims: list[int], lookups: tuple[int, int]):
        return {
            "name": name,
            "num_embeddings": int(10 ** rng.uniform(*rows)),
            "embedding_dim": rng.choice(dims),
            "pooling_factor": round(rng.uniform(*lookups), 1),
        }

    tables = [table(f"hot{i}", (5.5, 7), [128, 256, 512], (20, 80)) for i in range(num_large)]
    tables += [table(f"s{i}", (1.5, 4), [16, 32, 64, 128], (1, 5)) for i in range(num_small)]
    return {
        "format": "neuroshard/task/1",
        "batch_size": rng.choice([4096, 16384, 65536]),
        "optimizer": "rowwise_adagrad",
        "tables": tables,
        "topology": {"world_size": devices, "local_world_size": 1, "memory_bytes": 1 << 36},
    }


def main() -> None:
    output, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    output.mkdir(parents=True, exist_ok=True)
    for seed in range(first, first + count):
        (output / f"task-{seed}.json").write_text(json.dumps(make_task(seed)) + "\n")


if __name__ == "__main__":
    main()
