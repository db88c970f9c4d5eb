"""Plans as dataclasses, with the fields of the documented format (docs/formats.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

from . import _core
from .arguments import (
    flag_of,
    items_of,
    list_of,
    names_of,
    one_of,
    path_of,
    paths_among,
    to_text,
    type_of,
)
from .errors import InputError, NeuroShardError
from .moves import PlanMoves
from .reporting import EvaluationLike, write_report
from .short_form import content_of, counted, devices_of, milliseconds, never_failing, part_of
from .types import Task, task_of_fields


@dataclass(frozen=True)
class Shard:
    """A range of a table's columns on a device, of all its rows or of a range of them."""

    table: str
    column_offset: int
    num_columns: int
    device: int
    #: Both or neither: without them, all rows.
    row_offset: int | None = None
    num_rows: int | None = None

    @never_failing
    def __repr__(self) -> str:
        shown = [f"{name}={value!r}" for name, value in content_of(self).items()]
        return f"Shard({', '.join(shown)})"


@dataclass(frozen=True)
class DeviceCost:
    """The cost of one device's part of an iteration, and the memory and columns on the device."""

    compute_ms: float
    forward_comm_ms: float
    backward_comm_ms: float
    memory_bytes: int
    num_columns: int
    #: Of the gradients of replicated tables.
    all_reduce_ms: float = 0.0

    @property
    def total_ms(self) -> float:
        """Computation, the all-reduce and both all-to-alls."""
        before_forward_ms = float(self.compute_ms) + float(self.all_reduce_ms)
        return before_forward_ms + float(self.forward_comm_ms) + float(self.backward_comm_ms)


def slowest_devices(devices: Sequence[DeviceCost]) -> list[int]:
    """Of the devices that end last, those that enter the forward all-to-all last, by number; times
    that differ by rounding alone count as equal. As the library's reports have it."""
    last = _largest([device.total_ms for device in devices])
    entered = [device.total_ms - float(device.forward_comm_ms) for device in devices]
    among = _largest([entered[number] for number in last])
    return [last[place] for place in among]


def _largest(times: Sequence[float]) -> list[int]:
    most = max(times, default=0.0)
    return [number for number, ms in enumerate(times) if ms >= most * (1 - 1e-9)]


@dataclass(frozen=True)
class PlanCost:
    """The cost of a plan: that of its slowest device.

    >>> PlanCost(3.5, [DeviceCost(1.0, 0.5, 0.5, 1 << 20, 64), DeviceCost(2.5, 0.5, 0.5, 0, 32)])
    <PlanCost: 3.500 ms, device 1 of 2 is the slowest>
    """

    cost_ms: float
    devices: Sequence[DeviceCost]

    @never_failing
    def __repr__(self) -> str:
        text = f"<PlanCost: {milliseconds(self.cost_ms)}"
        if slowest := slowest_devices(self.devices):
            which, number = slowest[0], len(self.devices)
            if 1 < len(slowest) == number:
                text += f" on each of {number} devices"
            else:
                text += f", device {which} of {number} is the slowest"
        return text + ">"

    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> PlanCost:
        """From the `predicted` of a plan file."""
        return PlanCost(fields["cost_ms"], [DeviceCost(**device) for device in fields["devices"]])


@dataclass
class Plan:
    """A sharding plan with everything needed to trust it.

    >>> from neuroshard import Table, Task, Topology
    >>> task = Task([Table("user", 1000, 64, 3.0)], Topology(2, "1GiB"), batch_size=4096)
    >>> plan = Plan(task, [Shard("user", 0, 32, device=0), Shard("user", 32, 16, device=1)])
    >>> plan
    <Plan: 1 table in 2 shards on 2 devices, batch size 4096>
    >>> plan.violations()
    ['table "user": columns 48 to 63 are on no device']
    """

    task: Task
    shards: Sequence[Shard]
    predicted: PlanCost | None = None
    #: The models that predicted: {"compute": {"name": ..., "sha256": ...}, "communication": ...}
    model: Mapping[str, Any] = field(default_factory=dict)
    #: How the plan was found: algorithm, seed, statistics, lower bound.
    search: Mapping[str, Any] = field(default_factory=dict)
    #: Reasons to trust the prediction less, a sentence each.
    warnings: Sequence[str] = ()
    #: Names of the tables that are whole on every device and have no shard.
    replicated_tables: Sequence[str] = ()
    #: Of a plan that was made from an older one (`replan`): what moves.
    moves: PlanMoves | None = None
    #: The files that the plan was made from, which `write` and `report` do not replace.
    read_from: Sequence[str] = field(default=(), init=False, repr=False, compare=False)
    #: The file that the plan itself was read from, if any. `write` may replace it; neither `report`
    #: nor what is made from the plan does.
    file: str = field(default="", init=False, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The plan as in a plan file."""
        content: dict[str, Any] = {
            "format": "neuroshard/plan/1",
            "task": one_of(Task, self.task, "task"),
            "shards": [content_of(shard) for shard in list_of(Shard, self.shards, "shards")],
        }
        if replicated := _texts(self.replicated_tables, "replicated_tables"):
            content["replicated_tables"] = replicated
        predicted: Any = self.predicted
        if isinstance(predicted, PlanCost):
            devices = list_of(DeviceCost, predicted.devices, "predicted.devices")
            content["predicted"] = {
                "cost_ms": predicted.cost_ms,
                "devices": [content_of(device) for device in devices],
            }
        elif predicted is not None:
            content["predicted"] = one_of(PlanCost, predicted, "predicted")
        content |= {"model": self.model, "search": self.search}
        if warnings := _texts(self.warnings, "warnings"):
            content["warnings"] = warnings
        if self.moves is not None:
            moves: Any = one_of(PlanMoves, self.moves, "moves")
            content["moves"] = moves.to_dict() if isinstance(moves, PlanMoves) else moves
        return content

    @never_failing
    def __repr__(self) -> str:
        tables = counted(part_of(self.task, "tables"), "table")
        text = (
            f"<Plan: {tables} in {counted(self.shards, 'shard')} on {devices_of(self.task)}, "
            f"batch size {part_of(self.task, 'batch_size')}"
        )
        if isinstance(self.predicted, PlanCost):
            text += f", predicted cost {milliseconds(self.predicted.cost_ms)}"
        return text + ">"

    @staticmethod
    def from_text(text: str, read_from: Sequence[str] = ()) -> Plan:
        """From the text of a plan file that was checked, made from the files `read_from`."""
        content = json.loads(text)
        predicted = content.get("predicted")
        moves = content.get("moves")
        plan = Plan(
            task=task_of_fields(content["task"]),
            shards=[Shard(**shard) for shard in content["shards"]],
            predicted=None if predicted is None else PlanCost.from_dict(predicted),
            model=content.get("model", {}),
            search=content.get("search", {}),
            warnings=content.get("warnings", []),
            replicated_tables=content.get("replicated_tables", []),
            moves=None if moves is None else PlanMoves.from_dict(moves),
        )
        plan.read_from = read_from
        return plan

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Plan:
        """Reads a plan file; InputError names the place of a fault."""
        name = path_of(path, "path")
        plan = Plan.from_text(_core.read_plan(name))
        [plan.file] = paths_among(name)
        return plan

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Writes a plan file, whole or not at all; never over a task, a plan or a model that the
        plan was made from, and over measured data, a journal or another model only by `force`."""
        _core.write_plan(
            plan_text(self),
            path_of(path, "path"),
            names_of(self.read_from, "read_from"),
            flag_of(force, "force"),
        )

    def violations(self) -> list[str]:
        """Why the plan is not valid for its task, a line each; none if it is."""
        return _core.plan_violations(plan_text(self))

    def report(
        self,
        path: str | os.PathLike[str],
        others: PlanLike | Iterable[PlanLike] | Mapping[str, PlanLike] = (),
        *,
        evaluations: EvaluationLike | Iterable[EvaluationLike] = (),
        force: bool = False,
    ) -> None:
        """Writes the plan as a page (.html) that opens without a network: which device is slowest
        and why, memory, where every table went, how the search got there.

        Next to it are `others`, plans of the same task, one or several or by name, and
        `evaluations`, what `evaluate` returned or wrote. InputError for a plan that does not fit
        its task, plans of different tasks, an evaluation of another plan, and the path of a file
        that any of them was read or made from. Measured data, a journal or a model at `path` is
        replaced only by `force`.

        >>> import os, tempfile
        >>> from neuroshard import Table, Task, Topology
        >>> task = Task([Table("user", 1000, 64, 3.0)], Topology(2, "1GiB"), batch_size=4096)
        >>> halves = Plan(task, [Shard("user", 0, 32, device=0), Shard("user", 32, 32, device=1)])
        >>> whole = Plan(task, [Shard("user", 0, 64, device=0)])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     halves.report(os.path.join(folder, "report.html"), {"whole": whole})
        """
        write_report(self, path, others, evaluations, force)

    def _repr_html_(self) -> str | None:
        """In a notebook: the plan in words, and its devices. None, so that the notebook shows the
        text, where the plan does not fit its task."""
        try:
            return _core.plan_summary_html(plan_text(self))
        except NeuroShardError:
            return None


def _texts(value: Any, place: str) -> list[Any]:
    """The library checks what the list has."""
    return [] if value is None else items_of(value, place, "a list of texts")


#: The forms of a plan as an argument: a Plan, a dict with its fields, or the path of a plan file.
PlanLike: TypeAlias = Plan | Mapping[str, Any] | str | os.PathLike[str]


def plan_text(plan: PlanLike) -> str:
    """A plan, given in whichever form, as the text of a plan file."""
    if isinstance(plan, (str, os.PathLike)):
        return _core.read_plan(path_of(plan, "plan"))
    if not isinstance(plan, (Plan, Mapping)):
        raise InputError(
            f"plan: expected a Plan, a dict or the path of a plan file, got {type_of(plan)}"
        )
    return to_text(plan, "plan")


def files_behind(*arguments: Any) -> tuple[str, ...]:
    """The files that arguments were read or made from: of a path itself, of a task or a plan what it knows.
    What is made from the arguments does not replace them."""
    files: list[str] = []
    for argument in arguments:
        if isinstance(argument, Plan):
            files += names_of(argument.read_from, "read_from")
            files += names_of(argument.file, "file")
        elif isinstance(argument, Task):
            files += names_of(argument.file, "file")
        else:
            files += paths_among(argument)
    return tuple(dict.fromkeys(filter(None, files)))
