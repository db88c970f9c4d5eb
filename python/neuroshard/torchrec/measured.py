"""The objective "measured": our models price pieces, our search cuts and places the tables."""

from __future__ import annotations

import logging
import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import nn
from torchrec.distributed.embedding_types import EmbeddingComputeKernel
from torchrec.distributed.planner.constants import (
    CROSS_NODE_BANDWIDTH,
    DDR_MEM_BW,
    HBM_MEM_BW,
    INTRA_NODE_BANDWIDTH,
)
from torchrec.distributed.planner.shard_estimators import EmbeddingStorageEstimator
from torchrec.distributed.planner.types import (
    PlannerError,
    PlannerErrorType,
    ShardingOption,
    Topology,
)
from torchrec.distributed.types import ModuleSharder
from torchrec.modules.embedding_modules import EmbeddingBagCollection

from .. import catalog, planning
from ..errors import ExtrapolationWarning, InfeasibleError, InputError
from ..plans import Plan
from ..statistics import TableStatistics
from ..types import Task
from ..types import Topology as Devices
from .inputs import PlanningInputs
from .options import bytes_on, free_storage, optimizer_of, unite_groups
from .pieces import as_whole, cost_ms, joined
from .pins import check_pins, pinned
from .plans.previous import PreviousPlan, older_plan
from .tables import (
    COLUMN_WISE,
    TABLE_WISE,
    PlannedTable,
    feature_counts,
    reason_to_leave,
    to_table,
)

logger = logging.getLogger(__name__)

#: Cost models by compute device; those of GPUs are estimates from data sheets, but for Hopper's.
DEFAULT_MODELS = {
    "cpu": ("fbgemm-cpu-epyc",),
    "cuda": ("analytic-a100-80gb", "a100-nvswitch"),
}

#: The model of Hopper's GPUs, learned from the times of FBGEMM's operator on one H100.
HOPPER_MODEL = "fbgemm-h100"
#: Models of our own CUDA operator, and the GPU.
OPERATOR_MODELS = {"h100": "H100", "h200": "H200"}
_HOPPER_INTERCONNECT = "h100-nvswitch"  # an H200's host has the same


def is_for_hopper(interconnect: str) -> bool:
    """Whether plans are for H100s or H200s: by the name of their interconnect or, without one, by
    this process's first GPU."""
    if interconnect:
        return interconnect.startswith(("h100", "h200"))
    return "H100" in first_gpu() or "H200" in first_gpu()


def first_gpu() -> str:
    """The name of this process's first GPU; empty without one."""
    return torch.cuda.get_device_name(0) if torch.cuda.is_available() else ""


def default_models(compute_device: str, interconnect: str) -> Sequence[str]:
    """Of a task that names none."""
    if compute_device == "cuda" and is_for_hopper(interconnect):
        return (HOPPER_MODEL, _HOPPER_INTERCONNECT)
    return DEFAULT_MODELS.get(compute_device, ())


#: Neighbours that the improvement tries: a number, not a time, so that no clock can make plans
#: of the same inputs differ.
_STEPS = 30_000

#: Narrower pieces leave threads of the narrowest of FBGEMM's kernels without work.
_LEAST_COLUMNS = {"cuda": 32}

#: Of a device, in tasks (docs/formats.md). TorchRec's topologies may have more: no limit.
_MOST_MEMORY = 1 << 60

#: Cut tables must be predicted to be cheaper than whole ones by this share. The cost of a cut
#: beyond the operator is in no model: the outputs' columns are put in order again, forward and
#: backward.
_LEAST_GAIN_OF_CUTS = 0.02


@dataclass
class MeasuredSettings:
    """The planner's arguments that only this objective uses."""

    models: Sequence[str] | None = None
    statistics: Mapping[str, TableStatistics] = field(default_factory=dict)
    optimizer: str | None = None
    interconnect: str = ""
    #: By table name: ranks that the table may lie on, and a table on whose rank it is.
    devices: Mapping[str, Sequence[int]] = field(default_factory=dict)
    same_device_as: Mapping[str, str] = field(default_factory=dict)
    previous: PreviousPlan | None = None

    @property
    def has_pins(self) -> bool:
        """Whether it is restricted where tables may lie, which only a search by columns keeps to."""
        return bool(self.devices or self.same_device_as) or self.previous is not None

    def model_names(self, compute_device: str) -> Sequence[str]:
        """Those given, or the default ones of the device; of these, with an interconnect, that of
        computation, as the interconnect says which model is that of communication."""
        if self.models is not None:
            return self.models
        names = default_models(compute_device, self.interconnect)
        return names[:1] if self.interconnect else names

    def required_models(self, compute_device: str) -> Sequence[str]:
        """The same. Raises InputError where there are none."""
        names = self.model_names(compute_device)
        if not names:
            raise InputError(
                "models: expected cost models, as none are known of the compute device "
                f"{compute_device!r}, got none"
            )
        return names


@dataclass
class MeasuredPlan:
    """What the search found."""

    options: list[ShardingOption]
    #: As a plan of the library.
    plan: Plan
    plans_priced: int


def divided(
    options: Sequence[ShardingOption],
) -> tuple[list[PlannedTable], list[ShardingOption], dict[str, str]]:
    """Tables that are placed here; the options of those that TorchRec's planner places, and why."""
    by_table: dict[str, list[ShardingOption]] = defaultdict(list)
    for option in options:
        by_table[option.fqn].append(option)
    ours: list[PlannedTable] = []
    others: list[ShardingOption] = []
    left: dict[str, str] = {}
    counts: dict[int, dict[str, int]] = {}  # by collection
    for fqn, choices in by_table.items():
        column_like = [
            option
            for option in choices
            if option.sharding_type in (TABLE_WISE, COLUMN_WISE)
            and option.compute_kernel == EmbeddingComputeKernel.FUSED.value
        ]
        reason = (
            reason_to_leave(
                column_like[0], isinstance(choices[0].module[1], EmbeddingBagCollection)
            )
            if column_like
            else "may be neither table-wise nor column-wise with the fused kernel"
        )
        if reason:
            others += choices
            left[fqn] = reason
            continue
        types = {option.sharding_type for option in column_like}
        collection = column_like[0].module[1]
        if id(collection) not in counts:
            counts[id(collection)] = feature_counts(collection)
        num_features = counts[id(collection)].get(column_like[0].name, 1)
        ours.append(PlannedTable(column_like[0], sorted(types), num_features))
    return ours, others, left


def task_of(
    planned_tables: Sequence[PlannedTable],
    memory_bytes: list[int],
    sharders: Sequence[ModuleSharder[nn.Module]],
    inputs: PlanningInputs,
    settings: MeasuredSettings,
    storage_bytes: Callable[[ShardingOption], list[int]],
) -> Task:
    """The tables as a task of the library; `storage_bytes` gives those of an option's shards."""
    optimizer = settings.optimizer or optimizer_of(planned_tables, sharders)
    tables = [
        to_table(
            planned,
            inputs.constraints.get(planned.option.name),
            settings.statistics.get(planned.option.name),
            inputs.batch_size,
            storage_bytes,
            optimizer == "rowwise_adagrad",
            _LEAST_COLUMNS.get(inputs.topology.compute_device, 0),
        )
        for planned in planned_tables
    ]
    tables = pinned(planned_tables, tables, settings.devices, settings.same_device_as)
    world_size = inputs.topology.world_size
    return Task(
        tables=tables,
        topology=Devices(
            world_size=world_size,
            local_world_size=devices_of_a_host(inputs.topology),
            memory_bytes=[min(bytes_, _MOST_MEMORY) for bytes_ in memory_bytes],
            interconnect=settings.interconnect,
        ),
        batch_size=inputs.batch_size * world_size,
        optimizer=optimizer,
    )


def devices_of_a_host(topology: Topology) -> int:
    """Of tasks, whose hosts are equal: where the topology's are not, of parts of them that are."""
    return math.gcd(topology.world_size, topology.local_world_size)


def say_what_is_estimated(models: Sequence[str]) -> None:
    """Logs which of the models for computation are not of TorchRec's operator on this hardware."""
    names = set(models)
    for name, gpu in OPERATOR_MODELS.items():
        if name in names:
            logger.warning(
                "costs (%s) are those of NeuroShard's CUDA operator on one %s, not of FBGEMM's: "
                "python -m neuroshard.collect measures yours",
                name,
                gpu,
            )
    if HOPPER_MODEL in names and "H200" in first_gpu():
        logger.warning(
            "costs (%s) are those of FBGEMM's operator on an H100, not on an H200, which takes "
            "less time: python -m neuroshard.collect measures yours",
            HOPPER_MODEL,
        )
    for model in catalog.list_models():
        if model.name in names and model.kind == "compute" and model.is_estimate:
            logger.warning(
                "costs are an estimate from data sheets (%s), not measured: "
                "python -m neuroshard.collect measures your hardware",
                model.name,
            )


def say_what_is_not_used(topology: Topology) -> None:
    """Logs what of a topology our models, which were measured, do not ask for."""
    rates = {
        "hbm_mem_bw": HBM_MEM_BW,
        "ddr_mem_bw": DDR_MEM_BW,
        "intra_host_bw": INTRA_NODE_BANDWIDTH,
        "inter_host_bw": CROSS_NODE_BANDWIDTH,
    }
    given = [name for name, usual in rates.items() if getattr(topology, name, usual) != usual]
    if given:
        logger.warning(
            "the topology's %s: not used by objective='measured', whose models were measured; "
            "`interconnect` names the network, objective='torchrec' keeps to them",
            ", ".join(given),
        )
    say_of_hosts(topology)


def say_of_hosts(topology: Topology) -> None:
    """Logs which hosts our models price where not all of the topology's have as many devices."""
    local = devices_of_a_host(topology)
    if local != min(topology.local_world_size, topology.world_size):
        logger.warning(
            "the topology's %d devices are no whole hosts of %d: our models count hosts of %d",
            topology.world_size,
            topology.local_world_size,
            local,
        )


class MeasuredSearch:
    """Plans tables of `EmbeddingBagCollection`s by columns."""

    def __init__(self, inputs: PlanningInputs, settings: MeasuredSettings) -> None:
        self._inputs = inputs
        self._settings = settings
        self._models = settings.required_models(inputs.topology.compute_device)
        self._plans_priced = 0

    def check_names(self, names: set[str], left: Mapping[str, str]) -> None:
        """Raises InputError for pins of tables that are not placed here: `names` are. `left` are
        the others of the module, and why."""
        check_pins(
            self._settings.devices,
            self._settings.same_device_as,
            names,
            left,
            self._inputs.topology.world_size,
        )

    def place(
        self,
        ours: Sequence[PlannedTable],
        taken_by: Sequence[ShardingOption],
        sharders: Sequence[ModuleSharder[nn.Module]],
        left: Mapping[str, str],
    ) -> MeasuredPlan:
        """Places the tables next to those that are placed already; `left` says why those are not
        placed here. Raises PlannerError if they do not fit into memory."""
        say_what_is_estimated(self._models)
        found = self._found(self._task(ours, taken_by, sharders), left)
        pieces = defaultdict(list)
        for shard in found.shards:
            pieces[shard.table].append((shard.column_offset, shard.num_columns, shard.device))
        options = [planned.with_shards(pieces[planned.fqn]) for planned in ours]
        unite_groups(ours, options)
        self._inputs.enumerator.populate_estimates(options)
        room = free_storage([*taken_by, *options], self._inputs.reserved)
        for rank, bytes_ in enumerate(room):
            if bytes_ < 0:
                raise PlannerError(
                    error_type=PlannerErrorType.INSUFFICIENT_STORAGE,
                    message=f"device {rank}: its tables exceed its memory by {-bytes_} bytes",
                )
        return MeasuredPlan(options, found, self._plans_priced)

    def _found(self, task: Task, left: Mapping[str, str]) -> Plan:
        """The plan, whose warnings are given once, however often the search ran."""
        previous = self._settings.previous
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)
            if previous is None:
                found = self._cheapest(task)
            else:
                found = self._with_little_moved(task, previous, left)
        for reason in found.warnings:
            warnings.warn(reason, ExtrapolationWarning, stacklevel=2)
        return found

    def _cheapest(self, task: Task) -> Plan:
        """The plan of the search; whole tables are preferred where cuts promise almost no gain."""
        try:
            found = self._search(task)
        except InfeasibleError as error:
            raise PlannerError(
                error_type=PlannerErrorType.INSUFFICIENT_STORAGE, message=str(error)
            ) from error
        if len(found.shards) > len(task.tables):
            whole = replace(task, tables=[as_whole(table) for table in task.tables])
            try:
                uncut = self._search(whole)
            except InfeasibleError:
                return self._with_pieces_joined(found)
            if cost_ms(uncut) <= (1.0 + _LEAST_GAIN_OF_CUTS) * cost_ms(found):
                return replace(uncut, task=task)
        return self._with_pieces_joined(found)

    def _with_little_moved(
        self, task: Task, previous: PreviousPlan, left: Mapping[str, str]
    ) -> Plan:
        """The plan of lowest cost that moves no more of the previous one than may be."""
        try:
            found = planning.replan(
                task,
                older_plan(previous.plan, task, left),
                max_move=previous.max_move,
                models=self._models,
                seed=self._inputs.seed,
                num_threads=self._inputs.num_threads,
                steps=_STEPS,
                improvement="brief",
                cuts="columns",
                lower_bound=False,
            )
        except InfeasibleError as error:
            raise PlannerError(
                error_type=PlannerErrorType.STRICT_CONSTRAINTS, message=str(error)
            ) from error
        self._plans_priced += found.search["plans_priced"]
        return found

    def _search(self, task: Task) -> Plan:
        found = planning.plan(
            task,
            models=self._models,
            seed=self._inputs.seed,
            num_threads=self._inputs.num_threads,
            steps=_STEPS,
            improvement="brief",
            cuts="columns",
            lower_bound=False,
        )
        self._plans_priced += found.search["plans_priced"]
        return found

    def _with_pieces_joined(self, found: Plan) -> Plan:
        """The plan, one piece of a table per device at most: FBGEMM looks up every piece anew."""
        shards = joined(found.shards)
        if len(shards) == len(found.shards):
            return found
        priced = planning.price(
            replace(found, shards=shards), models=self._models, lower_bound=False
        )
        return replace(
            found, shards=shards, predicted=priced.predicted, warnings=priced.warnings
        )

    def _task(
        self,
        ours: Sequence[PlannedTable],
        taken_by: Sequence[ShardingOption],
        sharders: Sequence[ModuleSharder[nn.Module]],
    ) -> Task:
        inputs = self._inputs
        room = free_storage(taken_by, inputs.reserved)
        for rank, bytes_ in enumerate(room):
            if bytes_ < 1:
                raise PlannerError(
                    error_type=PlannerErrorType.INSUFFICIENT_STORAGE,
                    message=f"device {rank}: the reservation and what is left to TorchRec's "
                    f"planner leave no memory: {bytes_} bytes",
                )
        return task_of(ours, room, sharders, inputs, self._settings, self._storage_bytes)

    def _storage_bytes(self, option: ShardingOption) -> list[int]:
        """Bytes of each shard by TorchRec's storage estimator."""
        enumerator = self._inputs.enumerator
        estimators = [
            estimator
            for estimator in getattr(enumerator, "_estimators", [])
            if isinstance(estimator, EmbeddingStorageEstimator)
        ]
        if estimators:
            estimators[-1].estimate([option], self._inputs.sharder_data)
        else:
            enumerator.populate_estimates([option])
        device = self._inputs.topology.compute_device
        return [bytes_on(shard.storage, device) for shard in option.shards]
