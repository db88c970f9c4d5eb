"""What planners log: TorchRec's statistics table and classes of users in its place."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

try:
    from torchrec.distributed.planner.types import PlanDebugStats
except ImportError:  # an earlier release
    PlanDebugStats = None


def log_stats(
    stats: Sequence[Any],
    facts: Mapping[str, Any],
    *,
    enumerator: Any,
    planner_type: str,
    timeout_seconds: int | None,
) -> None:
    """Gives each the facts of a plan, and what `Stats.log` takes in some releases, and in classes
    of users not always."""
    newer: dict[str, Any] = {"enumerator": enumerator}
    if PlanDebugStats is not None:
        newer["debug_stats"] = PlanDebugStats(
            planner_type=planner_type, timeout_seconds=timeout_seconds
        )
    for each in stats:
        known = inspect.signature(each.log).parameters
        takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.values())
        each.log(
            **facts,
            **{name: value for name, value in newer.items() if takes_all or name in known},
        )
