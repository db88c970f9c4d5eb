#!/usr/bin/env python3
"""What a forward pass of FBGEMM's operator costs where the C library gives the memory of its output
back to the system between passes, and where it keeps it: times and page faults of the last passes
of each, one thread, a table of few lookups whose output is most of the work.

Usage: torchrec_page_faults.py, by the Python of `make test-torchrec`: build/torchrec/bin/python
"""

from __future__ import annotations

import multiprocessing
import resource
import statistics
import time

NUM_COLUMNS = (64, 256, 704)
BATCH_SIZE = 16384
NUM_LOOKUPS = 2000
NUM_ROWS = 50_000
PASSES = 40  # of which the last half counts


def measure(num_columns: int, data_type: str, keeps: bool) -> list[tuple[float, int]]:
    """Milliseconds and page faults of forward passes."""
    import torch

    from neuroshard.collect import keep_freed_memory
    from neuroshard.fbgemm import Arena, Operator, Piece

    torch.set_num_threads(1)
    torch.manual_seed(0)
    arena = Arena(1 << 28, data_type, torch.device("cpu"))
    if keeps:
        keep_freed_memory()
    indices = torch.randint(0, NUM_ROWS, (NUM_LOOKUPS,))
    offsets = torch.linspace(0, NUM_LOOKUPS, BATCH_SIZE + 1).long()
    operator = Operator([Piece(NUM_ROWS, num_columns, indices, offsets)], arena, "sgd")
    passes = []
    for _ in range(PASSES):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        start = time.perf_counter()
        operator.forward()
        milliseconds = 1e3 * (time.perf_counter() - start)
        passes.append((milliseconds, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before))
        operator.backward()
    return passes[PASSES // 2 :]


def main() -> None:
    """Each case in a process of its own, as what was allocated before decides."""
    print("tables  output [MiB]  memory    forward [ms]: least, median, most   page faults, mean")
    context = multiprocessing.get_context("spawn")
    for data_type in ("fp32", "fp16"):
        for num_columns in NUM_COLUMNS:
            for keeps in (False, True):
                with context.Pool(1) as pool:
                    passes = pool.apply(measure, (num_columns, data_type, keeps))
                times = [milliseconds for milliseconds, _ in passes]
                faults = statistics.mean(count for _, count in passes)
                print(
                    f"{data_type:6}  {num_columns * BATCH_SIZE * 4 / 2**20:12.0f}  "
                    f"{'kept' if keeps else 'glibc':8}  {min(times):19.2f} "
                    f"{statistics.median(times):7.2f} {max(times):6.2f}   {faults:17.0f}"
                )


if __name__ == "__main__":
    main()
