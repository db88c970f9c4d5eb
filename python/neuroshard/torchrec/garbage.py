"""Python's collector of garbage, which has nothing to do while many options are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collector() -> Iterator[None]:
    """No collection inside: each looks at every object there is, PyTorch's modules among them, and
    options by the thousand would bring it on again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
