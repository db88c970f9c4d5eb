"""Tasks as dataclasses, with the fields of the documented format (docs/formats.md)."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from . import _core
from .arguments import (
    MOST_COUNT,
    bytes_of,
    flag_of,
    integer_of,
    items_of,
    list_of,
    number_of,
    one_of,
    path_of,
    paths_among,
    shown,
    text_of,
    to_text,
    type_of,
)
from .errors import InputError
from .short_form import counted, devices_of, never_failing

#: Bins of a reuse histogram: rows hit once, twice, 3-4, 5-8, ..., above 32,768 times by a batch.
REUSE_BINS = 17

#: Difference of shares of rows and of accesses from which on a table's ids are not hashes.
_UNEVEN = 0.01

#: Ways to place a table other than whole on one device: pieces of its columns, slices of its rows,
#: and whole on every device.
CUTS = ("columns", "rows", "replicas")


@dataclass
class Table:
    """One embedding table. The use of its rows is described by `reuse_histogram` (17 shares, for
    the task's batch size) or by `index_distribution` (for any batch size), or is uniform if both
    are missing."""

    name: str
    num_embeddings: int
    embedding_dim: int
    pooling_factor: float
    data_type: str = "fp32"
    reuse_histogram: Sequence[float] | None = None
    #: {"zipf_exponent": 1.1} or {"access_classes": [[rows, share of the lookups], ...]}
    index_distribution: Mapping[str, Any] | None = None
    #: Where the hot rows are: "hashed", anywhere, or "by_frequency", the hottest first.
    row_order: str = "hashed"
    #: Instead, measured: [[share of the rows, share of the accesses to these first rows], ...],
    #: rising to [1, 1].
    row_access: Sequence[Sequence[float]] | None = None
    min_shard_columns: int = 0
    min_shard_rows: int = 0
    #: Cuts that the table may have, as far as the task allows them too.
    allow: Sequence[str] = CUTS
    extra_bytes_per_shard: int = 0
    extra_bytes_per_column: int = 0
    #: Features that look up in the table, each with a pooled output; `pooling_factor` is of all.
    num_features: int = 1
    #: Devices on which its pieces may lie; None: any.
    devices: Sequence[int] | None = None
    #: Another table of the task that this one stays with: both whole and on one device.
    same_device_as: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The table as in a task file."""
        optional = (
            "reuse_histogram",
            "index_distribution",
            "row_access",
            "devices",
            "same_device_as",
        )
        content = dict(self.__dict__)
        for name in optional:
            if content[name] is None:
                del content[name]
        if isinstance(self.row_order, str) and self.row_order == "hashed":
            del content["row_order"]
        return content

    @never_failing
    def __repr__(self) -> str:
        shown = []
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name == "reuse_histogram" and value is not None:
                shown.append(f"reuse_histogram=<{counted(value, 'share')}>")
            elif each.name == "row_access" and value is not None:
                shown.append(f"row_access=<{counted(value, 'point')}>")
            elif not _is_default(value, each.default):
                shown.append(f"{each.name}={value!r}")
        return f"Table({', '.join(shown)})"


@dataclass(frozen=True)
class TableStatistics:
    """How one table is used (`neuroshard.statistics` counts it): mean lookups per sample; of the
    distinct rows that one batch touches, the shares by number of hits (1, 2, 3-4, 5-8, ..., above
    32,768); and the accesses to the first rows."""

    pooling_factor: float
    reuse_histogram: Sequence[float]
    #: Samples in the batches that the histogram is of.
    batch_size: int
    #: Batches that were read.
    num_batches: int = 1
    #: The largest row index seen.
    max_index: int = 0
    #: (rows, share of the accesses that hit the rows before that): rows that rise from 1 on, shares
    #: that do not fall, the last one 1.0. No points: as of hashed ids.
    accesses: Sequence[tuple[int, float]] = ()

    def row_access(self, num_embeddings: int) -> list[list[float]] | None:
        """`Table.row_access` of the table with this many rows. None where the accesses are too evenly
        spread over the rows, or too few, to tell them from those of hashed ids: no range of rows
        from 0 on has 1 % of the accesses more or less than of the rows, or 1.36 / sqrt(lookups),
        which chance alone exceeds once in twenty times (Kolmogorov and Smirnov).

        >>> used = TableStatistics(50.0, [1.0] + [0.0] * 16, 4096, accesses=[(10, 0.75), (40, 1.0)])
        >>> used.row_access(100)
        [[0.1, 0.75], [0.4, 1.0], [1.0, 1.0]]
        """
        num_embeddings = integer_of(num_embeddings, "num_embeddings", 1, MOST_COUNT)
        max_index = integer_of(self.max_index, "max_index", 0, MOST_COUNT)
        if num_embeddings <= max_index:
            raise InputError(
                f"num_embeddings: expected more than the largest row seen, {max_index}, "
                f"got {num_embeddings}"
            )
        points = [
            [rows / num_embeddings, share]
            for rows, share in self._accesses()
            if rows < num_embeddings
        ]
        lookups = (
            number_of(self.pooling_factor, "pooling_factor")
            * integer_of(self.batch_size, "batch_size", 1, MOST_COUNT)
            * integer_of(self.num_batches, "num_batches", 0, MOST_COUNT)
        )
        least = max(_UNEVEN, 1.36 / math.sqrt(max(lookups, 1.0)))
        if all(abs(share - rows) <= least for rows, share in points):
            return None
        return [*points, [1.0, 1.0]]

    def _accesses(self) -> list[tuple[int, float]]:
        points: list[tuple[int, float]] = []
        for number, point in enumerate(items_of(self.accesses, "accesses", "a list of points")):
            place = f"accesses[{number}]"
            pair = items_of(point, place, "rows and a share")
            if len(pair) != 2:
                raise InputError(f"{place}: expected rows and a share, got {len(pair)} numbers")
            rows = integer_of(pair[0], f"{place}[0]", 0, MOST_COUNT)
            share = number_of(pair[1], f"{place}[1]")
            before = points[-1] if points else (0, 0)
            if rows <= before[0]:
                raise InputError(f"{place}[0]: expected more than {before[0]} rows, got {rows}")
            if not before[1] <= share <= 1.0:
                raise InputError(
                    f"{place}[1]: expected a share from {before[1]!r} to 1, got {share!r}"
                )
            points.append((rows, share))
        if points and points[-1][1] != 1.0:
            raise InputError(f"accesses: expected 1 as the last share, got {points[-1][1]!r}")
        return points


@dataclass
class Topology:
    """The devices; those of one host are consecutive.

    >>> Topology(world_size=16, local_world_size=8, memory_bytes="80GiB").to_dict()
    {'world_size': 16, 'memory_bytes': 85899345920, 'local_world_size': 8}
    """

    world_size: int
    #: Room for tables and optimizer state, of every device or one size per device: in bytes, or as
    #: text such as "80GiB".
    memory_bytes: int | str | Sequence[int | str]
    #: Devices per host; None: all.
    local_world_size: int | None = None
    #: One that a communication model knows; "": the default of the planner.
    interconnect: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The topology as in a task file."""
        content = dict(self.__dict__)
        content["memory_bytes"] = bytes_of(self.memory_bytes, "memory_bytes")
        if self.local_world_size is None:
            del content["local_world_size"]
        if self.interconnect is None or (
            isinstance(self.interconnect, str) and not self.interconnect
        ):
            del content["interconnect"]
        return content


@dataclass
class Task:
    """Which tables are to be placed on which devices.

    >>> task = Task(
    ...     tables=[Table("user", 4_000_000, 128, 3.0), Table("item", 9_000_000, 64, 20.0)],
    ...     topology=Topology(world_size=4, local_world_size=1, memory_bytes="2GiB"),
    ...     batch_size=4096,
    ...     optimizer="rowwise_adagrad",
    ... )
    >>> task
    <Task: 2 tables, 4 devices, batch size 4096, rowwise_adagrad>
    >>> Task.from_dict(task.to_dict()).topology.memory_bytes
    2147483648

    Functions take a dict of the same fields, or the path of a task file, as well. Errors are found
    when the task is used, and name their place:

    >>> Task.from_dict({**task.to_dict(), "batch_size": 0})
    Traceback (most recent call last):
    ...
    neuroshard.errors.InputError: task: batch_size: expected ...
    """

    tables: Sequence[Table | Mapping[str, Any]]
    topology: Topology | Mapping[str, Any]
    #: Samples over all devices.
    batch_size: int
    #: "sgd" or "rowwise_adagrad"
    optimizer: str = "sgd"
    #: Cuts that tables may have.
    allow: Sequence[str] = CUTS
    #: The file that the task was read from, if any. `write` may replace it; what is made from the
    #: task does not. No field of a task.
    file = ""

    def to_dict(self) -> dict[str, Any]:
        """The task as in a task file."""
        return _checked(
            {
                "format": "neuroshard/task/1",
                "batch_size": self.batch_size,
                "optimizer": self.optimizer,
                "tables": self.tables,
                "topology": self.topology,
                "allow": self.allow,
            }
        )

    @never_failing
    def __repr__(self) -> str:
        return (
            f"<Task: {counted(self.tables, 'table')}, {devices_of(self)}, "
            f"batch size {self.batch_size}, {self.optimizer}>"
        )

    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> Task:
        """The task of a checked task file's content; InputError names the fault of any other."""
        return task_of_fields(json.loads(_core.check_task(task_text(fields))))

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Task:
        """Reads a task file; InputError names the place of a fault."""
        name = path_of(path, "path")
        task = task_of_fields(json.loads(_core.read_task(name)))
        [task.file] = paths_among(name)
        return task

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Writes a task file, whole or not at all; over measured data, a journal or a model only by
        `force`."""
        _core.write_task(task_text(self), path_of(path, "path"), flag_of(force, "force"))


#: The forms of a task as an argument: a Task, a dict with its fields, or the path of a task file.
TaskLike: TypeAlias = Task | Mapping[str, Any] | str | os.PathLike[str]


def _is_default(value: Any, default: Any) -> bool:
    """Arrays have no equality that is true or false."""
    return type(value) is type(default) and bool(value == default)


def task_of_fields(content: Mapping[str, Any]) -> Task:
    return Task(
        tables=[Table(**table) for table in content["tables"]],
        topology=Topology(**content["topology"]),
        batch_size=content["batch_size"],
        optimizer=content["optimizer"],
        allow=content.get("allow", CUTS),
    )


def _checked(content: dict[str, Any]) -> dict[str, Any]:
    """The content of a task file whose tables and topology are of the right kinds; the library
    checks the rest."""
    if "tables" in content:
        content["tables"] = list_of(Table, content["tables"], "tables")
    if "topology" in content:
        topology = one_of(Topology, content["topology"], "topology")
        if isinstance(topology, Mapping) and "memory_bytes" in topology:
            memory = bytes_of(topology["memory_bytes"], "topology.memory_bytes")
            content["topology"] = {**topology, "memory_bytes": memory}
    return content


def task_text(task: TaskLike, place: str = "task") -> str:
    """A task, given in whichever form, as the text of a task file; errors call it `place`."""
    if isinstance(task, Task):
        return to_text(task, place)
    if isinstance(task, (str, os.PathLike)):
        return _core.read_task(path_of(task, place))
    if not isinstance(task, Mapping):
        raise InputError(
            f"{place}: expected a Task, a dict or the path of a task file, got {type_of(task)}"
        )
    try:
        content = _checked({"format": "neuroshard/task/1", **task})
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
    return to_text(content, place)


def tasks_of(tasks: Mapping[str, TaskLike] | Iterable[TaskLike] | TaskLike) -> dict[str, str]:
    """Several tasks, or one, as texts of task files, each under its name: the key in a dict, the
    path of a file, or else the number of the task. InputError for two of one name."""
    is_one = isinstance(tasks, (Task, str, os.PathLike)) or _is_task(tasks)
    given: Any = [tasks] if is_one else tasks
    named: list[tuple[Any, Any]]
    if isinstance(given, Mapping):
        named = list(given.items())
    else:
        named = [
            (path_of(task, "tasks") if isinstance(task, (str, os.PathLike)) else number, task)
            for number, task in enumerate(items_of(given, "tasks", "a list or a dict of tasks"))
        ]
    texts = {}
    for key, task in named:
        if not isinstance(key, (str, int)):
            raise InputError(f"tasks: expected names, got {type_of(key)}")
        name = text_of(key, "tasks") if isinstance(key, str) else shown(key)
        if name in texts:
            raise InputError(f"tasks: expected each task once, got {name} again")
        texts[name] = task_text(task, name)
    return texts


def _is_task(fields: Any) -> bool:
    """Whether a dict has the fields of one task; those of several are named by its keys."""
    return isinstance(fields, Mapping) and "tables" in fields and "topology" in fields
