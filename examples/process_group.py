"""The processes that torchrun started, and the end of their threads."""

from __future__ import annotations

import gc
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist

# Imported later, it would keep the group for good: as default argument of a function in it.
import torch.distributed.optim  # noqa: F401


def let_go(error: BaseException | None) -> None:
    """Clears the frames of a failure and of its causes."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


@contextmanager
def process_group() -> Iterator[None]:
    """A gloo group of these processes. Its threads end with it, also where the work fails: an
    interpreter that exits while they run may abort, and the other ranks would wait. They end when
    nothing holds the group any more: sharded modules do, in cycles, and the frames of a failure."""
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // int(os.environ.get("WORLD_SIZE", "1"))))
    dist.init_process_group("gloo")
    try:
        yield
    except BaseException as error:
        let_go(error)
        raise
    finally:
        gc.collect()
        dist.destroy_process_group()
