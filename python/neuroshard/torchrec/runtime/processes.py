"""The processes that torchrun started, as a gloo group, and the end of its threads."""

from __future__ import annotations

import gc
import logging
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist

# Imported later, it would keep the group for good: as default argument of a function in it.
import torch.distributed.optim  # noqa: F401
from torchrec.distributed import comm

from ...errors import InputError


@contextmanager
def gloo_processes(local_world_size: int, threads: int) -> Iterator[tuple[int, int]]:
    """A gloo group of these processes: how many there are, and how many count as one host's. Its
    threads end with it, also where the work fails; an interpreter that exits while they run may
    abort."""
    if "WORLD_SIZE" not in os.environ:
        raise InputError("expected processes of torchrun, got one that it has not started")
    world_size = int(os.environ["WORLD_SIZE"])
    if world_size < 2:
        raise InputError(f"--nproc-per-node: expected at least 2 processes, got {world_size}")
    local = local_world_size or int(os.environ.get("LOCAL_WORLD_SIZE", world_size))
    if world_size % local:
        raise InputError(
            f"--local-world-size: expected a divisor of {world_size} processes, got {local}"
        )
    os.environ["LOCAL_WORLD_SIZE"] = str(local)  # where TorchRec looks for it
    logging.getLogger("torchrec").setLevel(logging.ERROR)
    torch.set_num_threads(threads)
    dist.init_process_group("gloo")
    try:
        yield world_size, local
    except BaseException as error:
        _let_go(error)
        raise
    finally:
        # TorchRec keeps the groups of hosts for good.
        comm._INTRA_PG = None
        comm._CROSS_PG = None
        gc.collect()
        dist.destroy_process_group()


def _let_go(error: BaseException | None) -> None:
    """Clears the frames of a failure and of its causes, which may hold the group."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
