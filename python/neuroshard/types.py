"""Tasks and plans as dataclasses, with the fields of the documented formats (docs/formats.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _core
from .errors import InputError

#: Bins of a reuse histogram: rows hit once, twice, 3-4, 5-8, ..., above 32,768 times by a batch.
REUSE_BINS = 17


def to_text(value: Any) -> str:
    """JSON of a value; NumPy's scalars and arrays, and whatever else has `tolist`, are welcome."""

    def plain(other: Any) -> Any:
        if hasattr(other, "to_dict"):
            return other.to_dict()
        if hasattr(other, "tolist"):
            return other.tolist()
        raise InputError(f"task: expected numbers, text, lists and dicts, got {type(other)}")

    return json.dumps(value, default=plain)


@dataclass
class Table:
    """One embedding table. How its rows are used is said by `reuse_histogram` (17 shares, for the
    task's batch size) or by `index_distribution` (for any batch size), or by neither: uniformly."""

    name: str
    num_embeddings: int
    embedding_dim: int
    pooling_factor: float
    data_type: str = "fp32"
    reuse_histogram: Sequence[float] | None = None
    #: {"zipf_exponent": 1.1} or {"access_classes": [[rows, share of the lookups], ...]}
    index_distribution: Mapping[str, Any] | None = None
    min_shard_columns: int = 0
    extra_bytes_per_shard: int = 0
    extra_bytes_per_column: int = 0
    #: Features that look up in the table, each with a pooled output; `pooling_factor` is of all.
    num_features: int = 1

    def to_dict(self) -> dict[str, Any]:
        """The table as it stands in a task file."""
        fields = dict(self.__dict__)
        for name in ("reuse_histogram", "index_distribution"):
            if fields[name] is None:
                del fields[name]
        return fields


@dataclass
class Topology:
    """The devices; those of one host are consecutive."""

    world_size: int
    #: Room for tables and optimizer state: of every device, or one number per device.
    memory_bytes: int | Sequence[int]
    #: Devices per host; None: all.
    local_world_size: int | None = None
    #: One that a communication model knows; "": the default of the planner.
    interconnect: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The topology as it stands in a task file."""
        fields = dict(self.__dict__)
        if self.local_world_size is None:
            del fields["local_world_size"]
        if not self.interconnect:
            del fields["interconnect"]
        return fields


@dataclass
class Task:
    """Which tables are to be placed on which devices."""

    tables: Sequence[Table | Mapping[str, Any]]
    topology: Topology | Mapping[str, Any]
    #: Samples over all devices.
    batch_size: int
    #: "sgd" or "rowwise_adagrad"
    optimizer: str = "sgd"

    def to_dict(self) -> dict[str, Any]:
        """The task as it stands in a task file."""
        return {
            "format": "neuroshard/task/1",
            "batch_size": self.batch_size,
            "optimizer": self.optimizer,
            "tables": list(self.tables),
            "topology": self.topology,
        }

    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> Task:
        """The task of a checked task file's content; InputError says what is wrong with another."""
        return _task(json.loads(_core.check_task(task_text(fields))))

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Task:
        """Reads a task file; InputError says where it is none."""
        return _task(json.loads(_core.read_task(os.fspath(path))))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes a task file, whole or not at all."""
        _core.write_task(task_text(self), os.fspath(path))


def _task(fields: Mapping[str, Any]) -> Task:
    return Task(
        tables=[Table(**table) for table in fields["tables"]],
        topology=Topology(**fields["topology"]),
        batch_size=fields["batch_size"],
        optimizer=fields["optimizer"],
    )


def task_text(task: Task | Mapping[str, Any]) -> str:
    """A task, given in whichever form, as the text of a task file."""
    if isinstance(task, Task):
        return to_text(task)
    if not isinstance(task, Mapping):
        raise InputError(f"task: expected a Task or a dict, got {type(task).__name__}")
    return to_text({"format": "neuroshard/task/1", **task})


@dataclass(frozen=True)
class Shard:
    """A range of a table's columns on a device."""

    table: str
    column_offset: int
    num_columns: int
    device: int


@dataclass(frozen=True)
class DeviceCost:
    """What one device's part of an iteration costs, and what it holds."""

    compute_ms: float
    forward_comm_ms: float
    backward_comm_ms: float
    memory_bytes: int
    num_columns: int

    @property
    def total_ms(self) -> float:
        """Computation and both all-to-alls."""
        return self.compute_ms + self.forward_comm_ms + self.backward_comm_ms


@dataclass(frozen=True)
class PlanCost:
    """The cost of a plan: that of its slowest device."""

    cost_ms: float
    devices: Sequence[DeviceCost]

    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> PlanCost:
        """From the `predicted` of a plan file."""
        return PlanCost(fields["cost_ms"], [DeviceCost(**device) for device in fields["devices"]])


@dataclass
class Plan:
    """A sharding plan with everything needed to trust it."""

    task: Task
    shards: Sequence[Shard]
    predicted: PlanCost | None = None
    #: The models that predicted: {"compute": {"name": ..., "sha256": ...}, "communication": ...}
    model: Mapping[str, Any] = field(default_factory=dict)
    #: How the plan was found: algorithm, seed, statistics, lower bound.
    search: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The plan as it stands in a plan file."""
        fields: dict[str, Any] = {
            "format": "neuroshard/plan/1",
            "task": self.task,
            "shards": [dict(shard.__dict__) for shard in self.shards],
        }
        if self.predicted is not None:
            fields["predicted"] = {
                "cost_ms": self.predicted.cost_ms,
                "devices": [dict(device.__dict__) for device in self.predicted.devices],
            }
        return {**fields, "model": dict(self.model), "search": dict(self.search)}

    @staticmethod
    def from_text(text: str) -> Plan:
        """From the text of a plan file that was checked."""
        fields = json.loads(text)
        predicted = fields.get("predicted")
        return Plan(
            task=_task(fields["task"]),
            shards=[Shard(**shard) for shard in fields["shards"]],
            predicted=None if predicted is None else PlanCost.from_dict(predicted),
            model=fields.get("model", {}),
            search=fields.get("search", {}),
        )

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Plan:
        """Reads a plan file; InputError says where it is none."""
        return Plan.from_text(_core.read_plan(os.fspath(path)))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes a plan file, whole or not at all."""
        _core.write_plan(to_text(self), os.fspath(path))

    def violations(self) -> list[str]:
        """Why the plan is not valid for its task, a line each; none if it is."""
        return _core.plan_violations(to_text(self))
