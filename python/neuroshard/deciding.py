"""What follows from plans: what limits one, and what other clusters would cost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Unpack

from . import _core
from .arguments import (
    MOST_THREADS,
    bytes_of,
    integer_of,
    items_of,
    names_of,
    seconds_of,
    text_of,
    to_text,
)
from .errors import InputError
from .messages import tell
from .short_form import never_failing, part_of
from .search_options import SearchOptions, options_json
from .plans import PlanLike, plan_text
from .types import TaskLike, task_text

#: The most for each plan that is made for comparison, unless another time is given.
_SECONDS = 5.0


@dataclass(frozen=True)
class Explanation:
    """An explanation in words, which `print` shows, and its figures."""

    text: str
    #: The fields of `neuroshard/explanation/1`, `neuroshard/table-explanation/1` or
    #: `neuroshard/why-not/1` (docs/formats.md).
    content: Mapping[str, Any]

    def __str__(self) -> str:
        return self.text

    @never_failing
    def __repr__(self) -> str:
        return f"<Explanation: {part_of(self.content, 'format')}>"


def explain(
    plan: PlanLike,
    *,
    table: str | None = None,
    why_not: str | None = None,
    models: str | Sequence[str] = (),
    num_threads: int = 0,
    time_limit_seconds: float | str = _SECONDS,
) -> Explanation:
    """What limits the plan, which tables make its slowest device slow, and what would help most; or
    one `table` alone; or what the best plan with a forced choice costs: `why_not` is
    "TABLE:rows=R", "TABLE:columns=C", "TABLE:replicated" or "TABLE:device=D", and the table is what
    stands before the last colon.

    Each plan that is made for comparison takes `time_limit_seconds` at the most, and several are
    made on `num_threads`. InputError for either next to `table`, for which none is made, and for
    threads next to `why_not`, for which one is. InfeasibleError if the task does not allow the
    choice, or no plan with it was found.

    >>> from neuroshard import Table, Task, Topology, explain, plan
    >>> task = Task([Table("user", 1000, 64, 3.0)], Topology(2, "1GiB"), batch_size=65536)
    >>> found = plan(task, models=["analytic-a100-40gb", "analytic-a100-nvswitch"])
    >>> print(explain(found, table="user"))
    Table "user" has 1000 rows of 64 columns ...
    >>> explain(found, why_not="user:device=1").content["choice"]
    'device'
    """
    if table is not None and why_not is not None:
        raise InputError("explain: expected table or why_not, got both")
    for place, value in (("table", table), ("why_not", why_not)):
        if value is not None and not text_of(value, place):
            raise InputError(f"{place}: expected text, got {value!r}")
    threads = integer_of(num_threads, "num_threads", 0, MOST_THREADS)
    seconds = seconds_of(time_limit_seconds, "time_limit_seconds")
    for place, value in (("table", table), ("why_not", why_not)):
        if value is not None and threads > 0:
            raise InputError(f"explain: expected {place} or num_threads, got both")
    if table is not None and seconds != _SECONDS:
        raise InputError("explain: expected table or time_limit_seconds, got both")
    answer, words, reasons, notes = _core.explain(
        plan_text(plan),
        table or "",
        why_not or "",
        names_of(models, "models"),
        threads,
        seconds,
    )
    tell(reasons, notes)
    return Explanation(words, json.loads(answer))


@dataclass(frozen=True)
class CapacityPoint:
    """One size of cluster."""

    devices: int
    #: Of each device.
    memory_bytes: int
    #: Of the best plan found; None: there is none.
    cost_ms: float | None = None
    #: By that plan, on its fullest device.
    used_bytes: int | None = None
    #: Why there is no plan.
    reason: str = ""


@dataclass(frozen=True)
class Capacity:
    """The cost of a task over numbers of devices and sizes of memory; `print` shows it as a table."""

    text: str
    #: By devices, then by memory.
    points: Sequence[CapacityPoint]
    #: Of fewest devices, and of these of least memory, that fits; None: none does.
    smallest: CapacityPoint | None
    #: Of lowest cost.
    cheapest: CapacityPoint | None

    def __str__(self) -> str:
        return self.text

    @never_failing
    def __repr__(self) -> str:
        number = len(self.points)
        return f"<Capacity: {number} {'size' if number == 1 else 'sizes'} of clusters>"


def capacity(
    task: TaskLike,
    *,
    devices: str | int | Sequence[int],
    memory: str | int | Sequence[str | int],
    models: str | Sequence[str] = (),
    **options: Unpack[SearchOptions],
) -> Capacity:
    """What the task costs on other numbers of devices, with other memory: `devices` are "4:64",
    which doubles, "4,12", or a list; `memory` is a size such as "40GiB", or several. Hosts have as
    many devices as the task's. Points are planned by `steps`, 5000 of the brief `improvement`
    unless others are given, not by time: `time_limit_seconds` is refused.

    >>> from neuroshard import Table, Task, Topology, capacity
    >>> tables = [Table(f"t{i}", 100_000, 64, 3.0) for i in range(8)]
    >>> task = Task(tables, Topology(4, "1GiB"), batch_size=4096)
    >>> models = ["analytic-a100-40gb", "analytic-a100-nvswitch"]
    >>> found = capacity(task, devices="1:4", memory=["40MiB", "1GiB"], models=models)
    >>> found.smallest.devices
    1
    """
    if isinstance(devices, str):
        numbers = list(_core.parse_device_numbers(text_of(devices, "devices"), "devices"))
    else:
        numbers = [
            integer_of(number, f"devices[{place}]", 1, 65536)
            for place, number in enumerate(_one_or_several(devices, "devices", "numbers"))
        ]
    sizes = [
        integer_of(size, f"memory[{place}]", 1, 1 << 60)
        for place, size in enumerate(
            bytes_of(_one_or_several(memory, "memory", "sizes"), "memory")
        )
    ]
    answer, words, reasons, notes = _core.capacity(
        task_text(task),
        numbers,
        sizes,
        names_of(models, "models"),
        to_text(options_json(options, "capacity"), "capacity"),
    )
    tell(reasons, notes)
    content = json.loads(answer)
    return Capacity(
        words,
        [_point(point) for point in content["points"]],
        _point(content["smallest"]),
        _point(content["cheapest"]),
    )


def _one_or_several(value: Any, place: str, what: str) -> list[Any]:
    if isinstance(value, (str, Integral)):
        return [value]
    return items_of(value, place, f"one or a list of {what}")


def _point(fields: Mapping[str, Any] | None) -> Any:
    if fields is None:
        return None
    return CapacityPoint(**{name: value for name, value in fields.items() if name != "found"})
