#!/usr/bin/env python3
"""What a piece of a large table costs by the memory that its rows lie in: times of FBGEMM's passes
over the same lookups, wrapped around less and less memory, one thread, in alternation, with caches
full of other things. A set whose pieces share the memory is measured with less of it for each.

Usage: torchrec_shared_memory.py, by the Python of `make test-torchrec`: build/torchrec/bin/python
"""

from __future__ import annotations

import statistics

import torch

from neuroshard.collect import keep_freed_memory
from neuroshard.fbgemm import Arena, Operator, Piece

ARENA_BYTES = 4 << 30
NUM_COLUMNS = 128
#: The memory of a piece: all of the arena, or what each of 4, 12 or 40 pieces would have of it.
SHARERS = (1, 4, 12, 40)
#: Samples and lookups of each.
BATCHES = ((512, 20), (4096, 20), (16384, 20))
PASSES = 25
DISTURBANCE_BYTES = 1 << 30


def operators_of(arena: Arena, batch_size: int, pooling_factor: int) -> dict[int, Operator]:
    generator = torch.Generator().manual_seed(batch_size)
    offsets = torch.arange(0, batch_size + 1) * pooling_factor
    lookups = torch.randint(0, 1 << 40, (batch_size * pooling_factor,), generator=generator)
    operators = {}
    for sharers in SHARERS:
        rows = arena.weights.numel() // sharers // NUM_COLUMNS
        piece = Piece(rows, NUM_COLUMNS, lookups % rows, offsets)
        operators[sharers] = Operator([piece], arena, "rowwise_adagrad", sharers)
    return operators


def main() -> None:
    torch.set_num_threads(1)
    keep_freed_memory()
    arena = Arena(ARENA_BYTES, "fp32", torch.device("cpu"))
    others = torch.ones(DISTURBANCE_BYTES // 8, dtype=torch.int64)
    print("forward and backward [ms], median, by the memory that the piece's rows lie in")
    sizes = "".join(f"{ARENA_BYTES // sharers >> 20:>8} MiB" for sharers in SHARERS)
    print(f"lookups{sizes}")
    for batch_size, pooling_factor in BATCHES:
        operators = operators_of(arena, batch_size, pooling_factor)
        times: dict[int, list[float]] = {sharers: [] for sharers in SHARERS}
        for _ in range(PASSES):
            for sharers, operator in operators.items():
                others.sum().item()
                forward = operator.time_ms(operator.forward)
                others.sum().item()
                times[sharers].append(forward + operator.time_ms(operator.backward))
        medians = (statistics.median(times[sharers]) for sharers in SHARERS)
        print(f"{batch_size * pooling_factor:7}" + "".join(f"{ms:12.2f}" for ms in medians))


if __name__ == "__main__":
    main()
