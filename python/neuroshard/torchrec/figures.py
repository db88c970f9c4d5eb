"""What a plan costs by which estimate, and where its time went."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Estimates:
    """Costs of plans: of the slowest device, in milliseconds, by TorchRec's estimate unless it says
    otherwise."""

    #: Of the plan that is returned.
    chosen_ms: float
    #: What our search found; None if it found no plan.
    neuroshard_ms: float | None = None
    #: Of the plan of TorchRec's planner; None where it was not asked, or found none.
    torchrec_ms: float | None = None
    #: No choice among the options that fits into memory costs less; None where our search did not
    #: choose by this estimate.
    lower_bound_ms: float | None = None
    #: The same plans by our models; None where none is measured or they do not know all tables.
    by_models_ms: float | None = None
    torchrec_by_models_ms: float | None = None


@dataclass
class Seconds:
    """Where the time of a plan went."""

    #: TorchRec's enumerator.
    enumeration: float = 0.0
    #: TorchRec's estimators.
    estimates: float = 0.0
    #: Our search.
    search: float = 0.0
    #: TorchRec's planner, as a candidate, as the fallback, or for tables that are left to it.
    torchrec: float = 0.0

    @contextmanager
    def counting(self, part: str) -> Iterator[None]:
        """Adds the time of its block to the part of this name, also where the block fails."""
        start = time.perf_counter()
        try:
            yield
        finally:
            setattr(self, part, getattr(self, part) + time.perf_counter() - start)


def figures(estimates: Estimates) -> str:
    """The costs next to each other, in one line."""
    others = []
    if estimates.torchrec_ms is not None:
        others.append(f"TorchRec's plan {estimates.torchrec_ms:.3f} ms")
    if estimates.lower_bound_ms is not None:
        others.append(f"no plan below {estimates.lower_bound_ms:.3f} ms")
    text = f"by TorchRec's estimate {estimates.chosen_ms:.3f} ms"
    if others:
        text += f" ({', '.join(others)})"
    if estimates.by_models_ms is not None:
        text += f"; by our models {estimates.by_models_ms:.3f} ms"
        if estimates.torchrec_by_models_ms is not None:
            text += f" (TorchRec's plan {estimates.torchrec_by_models_ms:.3f} ms)"
    return f"plan: {text}"
