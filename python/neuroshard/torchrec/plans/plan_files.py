"""Plans of TorchRec in files: what a planner found is saved, and given to planners and to training
again."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn
from torchrec.distributed.embedding_types import EmbeddingComputeKernel
from torchrec.distributed.planner.enumerators import get_partition_by_type
from torchrec.distributed.planner.planners import EmbeddingShardingPlanner, to_sharding_plan
from torchrec.distributed.planner.types import (
    Perf,
    Shard,
    ShardingOption,
    Storage,
)
from torchrec.distributed.types import (
    BoundsCheckMode,
    CacheAlgorithm,
    CacheParams,
    ShardingPlan,
    ShardingType,
)
from torchrec.modules.embedding_configs import DataType

from ...arguments import path_of, to_text, type_of
from ...documents import Fields, described, read_document, write_text
from ...errors import InputError

try:
    from torchrec.distributed.planner.types import PlanLoader
except ImportError:  # an earlier release
    PlanLoader = object

_FORMAT = "neuroshard/torchrec-plan/1"

_TYPES = tuple(kind.value for kind in ShardingType)
_KERNELS = tuple(kernel.value for kernel in EmbeddingComputeKernel)

#: Devices that TorchRec's `Topology` has.
_DEVICES = ("cpu", "cuda", "mtia")

#: As of tasks (docs/formats.md). PyTorch has no tensors of 2^63 elements.
_MOST_DEVICES = 65536
_MOST_ROWS = 1 << 42
_MOST_COLUMNS = 65536

#: Of a table, what is not of every table: its name and the kind of its values.
_CHOICES: dict[str, type[Enum]] = {"bounds_check_mode": BoundsCheckMode, "output_dtype": DataType}
_FLAGS = ("enforce_hbm", "stochastic_rounding")
_CACHE_CHOICES: dict[str, type[Enum]] = {"algorithm": CacheAlgorithm, "precision": DataType}
_CACHE_NUMBERS = ("load_factor", "reserved_memory")

#: Settings of a table or of its cache that have no place in a file; caches' statistics, which only
#: planning uses, are left out.
_NOT_IN_FILES = ("key_value_params",)
_NOT_IN_FILES_OF_CACHES = ("multipass_prefetch_config",)


def save_plan(
    planner: EmbeddingShardingPlanner, path: str | os.PathLike[str], *, force: bool = False
) -> None:
    """Writes the planner's last plan, whole or not at all: with `collective_plan`, on rank 0, where
    the plan is made. The planner may be TorchRec's own. InputError if it has no plan, or one with
    settings that files do not have, and for the path of a file that the planner was given: an older
    plan, costs, a model. Measured data, a journal or another model is replaced only by `force`."""
    options = getattr(planner, "_best_plan", None)
    if not options:
        raise InputError(
            "save_plan: expected a planner that has planned, as rank 0's has after "
            f"collective_plan, got {type_of(planner)} without a plan"
        )
    topology = planner._topology
    content: dict[str, Any] = {
        "format": _FORMAT,
        "compute_device": topology.compute_device,
        "world_size": topology.world_size,
        "local_world_size": topology.local_world_size,
        "batch_size": planner._batch_size,
    }
    context = getattr(planner, "context_hash", None)
    if context is not None:
        content["context"] = context
    content["tables"] = [_table_of(option) for option in options]
    loader = getattr(planner, "plan_loader", None)
    write_text(
        path,
        to_text(content, "save_plan", indent=1) + "\n",
        inputs=[
            *getattr(planner, "files_read", ()),
            *([loader.path] if isinstance(loader, SavedPlan) else []),
        ],
        models=getattr(planner, "models_read", ()),
        force=force,
    )


def load_plan(path: str | os.PathLike[str]) -> ShardingPlan:
    """The plan of a file, as `DistributedModelParallel` takes it. InputError names the place of a
    fault."""
    return SavedPlan(path).sharding_plan()


class SavedPlan(PlanLoader):
    """A plan of a file in the form in which planners load it:

        planner = NeuroShardPlanner(topology, 512, plan_loader=SavedPlan("plan.json"))

    The planner then checks that the plan is one of its module, that its constraints allow it and
    that it fits into memory, and returns it. TorchRec's own planner takes it too, where each
    table's shards are as many as one of the options has that TorchRec lists.

    With `same_context`, planners refuse the plan unless topology, batch size, tables and
    constraints are those that it was made with; sharders, statistics and models may be others. For
    NeuroShardPlanner alone, as TorchRec's own hash of these is another in each process.
    """

    def __init__(self, path: str | os.PathLike[str], *, same_context: bool = False) -> None:
        self.path = path_of(path, "path")
        document = Fields(read_document(self.path, _FORMAT), self.path)
        self.compute_device = document.choice("compute_device", _DEVICES)
        self.world_size = document.integer("world_size", least=1, most=_MOST_DEVICES)
        self.local_world_size = document.integer("local_world_size", least=1, most=_MOST_DEVICES)
        self.batch_size = document.integer("batch_size", least=1)
        self.context = document.text("context", optional=True)
        self._options = [
            _option_of(table, self.world_size, self.batch_size) for table in document.parts("tables")
        ]
        document.end()
        seen: set[str] = set()
        for number, option in enumerate(self._options):
            if option.fqn in seen:
                raise InputError(
                    f"{self.path}: tables[{number}]: expected each table once, "
                    f"got {described(option.fqn)} again"
                )
            seen.add(option.fqn)
        if same_context and self.context is None:
            raise InputError(
                f"{self.path}: context: expected one, as of NeuroShardPlanner's plans, got none"
            )
        self._same_context = same_context

    def load(self) -> dict[int, ShardingOption]:
        """The tables' options, by TorchRec's hashes of them."""
        return {option.storage_hash(): option for option in self._options}

    def plan_context_hash(self) -> str | None:
        """What planners compare with their own; None: nothing."""
        return self.context if self._same_context else None

    def get_plan_id(self) -> str:
        """The file: what TorchRec's planner calls the plan in its messages."""
        return self.path

    def sharding_plan(self) -> ShardingPlan:
        """As `DistributedModelParallel` takes it."""
        topology = SimpleNamespace(
            compute_device=self.compute_device, local_world_size=self.local_world_size
        )
        return to_sharding_plan(self._options, topology)


def _table_of(option: ShardingOption) -> dict[str, Any]:
    cache = option.cache_params
    for owner, names in ((option, _NOT_IN_FILES), (cache, _NOT_IN_FILES_OF_CACHES)):
        for name in names:
            if getattr(owner, name, None) is not None:
                raise InputError(
                    f"save_plan: {option.fqn}: expected no {name}, for which files have no place"
                )
    table: dict[str, Any] = {
        "module": option.path,
        "table": option.name,
        "num_embeddings": option.tensor.shape[0],
        "embedding_dim": option.tensor.shape[1],
        "sharding_type": option.sharding_type,
        "compute_kernel": option.compute_kernel,
    }
    table |= _settings_of(option, _CHOICES, _FLAGS)
    if cache is not None:
        table["cache_params"] = _settings_of(
            cache, _CACHE_CHOICES, (*_CACHE_NUMBERS, "prefetch_pipeline")
        )
    table["shards"] = [
        {
            "row_offset": shard.offset[0],
            "num_rows": shard.size[0],
            "column_offset": shard.offset[1],
            "num_columns": shard.size[1],
            "device": shard.rank,
            "storage_bytes": {
                field.name: getattr(shard.storage, field.name) for field in fields(Storage)
            },
            "perf_ms": {field.name: getattr(shard.perf, field.name) for field in fields(Perf)},
        }
        for shard in option.shards
    ]
    return table


def _settings_of(
    owner: Any, choices: Mapping[str, type[Enum]], others: Sequence[str]
) -> dict[str, Any]:
    """Those that are set: of choices, their names."""
    found = {name: getattr(owner, name, None) for name in (*choices, *others)}
    return {
        name: value.name if name in choices else value
        for name, value in found.items()
        if value is not None
    }


def _option_of(table: Fields, world_size: int, batch_size: int) -> ShardingOption:
    rows = table.integer("num_embeddings", least=1, most=_MOST_ROWS)
    columns = table.integer("embedding_dim", least=1, most=_MOST_COLUMNS)
    sharding_type = table.choice("sharding_type", _TYPES)
    option = ShardingOption(
        name=table.text("table"),
        tensor=torch.empty((rows, columns), device="meta"),
        module=(table.text("module"), nn.Module()),
        input_lengths=[],
        batch_size=batch_size,
        sharding_type=sharding_type,
        partition_by=get_partition_by_type(sharding_type),
        compute_kernel=table.choice("compute_kernel", _KERNELS),
        shards=[],
        is_pooled=True,
    )
    for name, kind in _CHOICES.items():
        setattr(option, name, _chosen(table, name, kind))
    for name in _FLAGS:
        setattr(option, name, table.flag(name, optional=True))
    if table.has("cache_params"):
        cache = table.part("cache_params")
        settings = {name: _chosen(cache, name, kind) for name, kind in _CACHE_CHOICES.items()}
        settings |= {name: cache.number(name, optional=True) for name in _CACHE_NUMBERS}
        settings["prefetch_pipeline"] = cache.flag("prefetch_pipeline", optional=True)
        option.cache_params = CacheParams(**settings)
        cache.end()
    place = table.place
    option.shards = [_shard_of(shard, world_size) for shard in table.parts("shards")]
    table.end()
    fault = coverage_fault(option, world_size)
    if fault:
        raise InputError(f"{place}: {fault}")
    return option


def _chosen(owner: Fields, name: str, kind: type[Enum]) -> Enum | None:
    chosen = owner.choice(name, tuple(kind.__members__), optional=True)
    return None if chosen is None else kind[chosen]


def _shard_of(shard: Fields, world_size: int) -> Shard:
    storage = shard.part("storage_bytes")
    perf = shard.part("perf_ms")
    result = Shard(
        size=[shard.integer("num_rows", least=0), shard.integer("num_columns", least=0)],
        offset=[shard.integer("row_offset", least=0), shard.integer("column_offset", least=0)],
        storage=Storage(
            **{
                field.name: storage.integer(field.name, least=0, default=0)
                for field in fields(Storage)
            }
        ),
        perf=Perf(**{field.name: perf.milliseconds(field.name, default=0.0) for field in fields(Perf)}),
        rank=shard.integer("device", least=0, most=world_size - 1),
    )
    for part in (storage, perf, shard):
        part.end()
    return result


def coverage_fault(option: ShardingOption, world_size: int) -> str:
    """Why the option's shards are not the whole table, or not on the devices; empty if they are."""
    rows, columns = option.tensor.shape
    for number, shard in enumerate(option.shards):
        if shard.rank is None or not 0 <= shard.rank < world_size:
            return (
                f"shards[{number}].device: expected an integer from 0 to {world_size - 1}, "
                f"got {shard.rank}"
            )
        if any(
            offset + size > whole
            for offset, size, whole in zip(shard.offset, shard.size, (rows, columns), strict=True)
        ):
            return (
                f"shards[{number}]: expected a part of {rows} rows and {columns} columns, "
                f"got {shard.size} from {shard.offset} on"
            )
    if option.sharding_type == ShardingType.DATA_PARALLEL.value:
        devices = sorted(shard.rank for shard in option.shards)
        whole = all(list(shard.size) == [rows, columns] for shard in option.shards)
        if whole and devices == list(range(world_size)):
            return ""
        return f"shards: expected the whole table on each of {world_size} devices"
    filled = [shard for shard in option.shards if 0 not in shard.size]
    if _overlap(filled):
        return "shards: expected each part of the table once, got some twice"
    covered = sum(shard.size[0] * shard.size[1] for shard in filled)
    if covered != rows * columns:
        return f"shards: expected all {rows * columns} elements of the table, got {covered}"
    return ""


def _overlap(shards: Sequence[Shard]) -> bool:
    """Whether two shards, none of them empty, have an element in common. Goes through the rows from
    first to last, with the columns of the shards that have them, as files may have many shards."""
    # At the same row, shards that end come before those that begin.
    events = sorted(
        event
        for shard in shards
        for first, columns in ((shard.offset[1], shard.size[1]),)
        for event in (
            (shard.offset[0], True, first, first + columns),
            (shard.offset[0] + shard.size[0], False, first, first + columns),
        )
    )
    there: list[tuple[int, int]] = []
    for _, begins, first, last in events:
        place = bisect_left(there, (first, last))
        if not begins:
            del there[place]
            continue
        if (place > 0 and there[place - 1][1] > first) or (
            place < len(there) and there[place][0] < last
        ):
            return True
        there.insert(place, (first, last))
    return False
