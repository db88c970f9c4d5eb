"""Our costs for other planners: a perf estimator in the place of TorchRec's
`EmbeddingPerfEstimator`."""

from __future__ import annotations

import logging
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from torchrec.distributed.planner.shard_estimators import EmbeddingPerfEstimator
from torchrec.distributed.planner.types import (
    ParameterConstraints,
    Perf,
    Shard,
    ShardEstimator,
    ShardingOption,
    Topology,
)

from .. import _core
from ..arguments import names_of, to_text
from ..errors import ExtrapolationWarning, InputError
from ..statistics import TableStatistics
from ..types import Table, Task
from .checks import check_constraints, check_options, check_statistics, without_none
from .inputs import PlanningInputs
from .measured import MeasuredSettings, say_of_hosts, say_what_is_estimated, task_of
from .prediction import ANY_MEMORY, is_replicated, reason_not_priced
from .tables import COLUMN_WISE, PlannedTable, counted, feature_counts

logger = logging.getLogger(__name__)

#: A piece as `_core.cost_shares` takes it: table, columns, first row, rows, slices; the last is 0
#: for a table that is copied to every device.
_Piece = tuple[int, int, int, int, int]

_NOTHING = Perf(fwd_compute=0.0, fwd_comms=0.0, bwd_compute=0.0, bwd_comms=0.0)


class NeuroShardPerfEstimator(ShardEstimator):
    """Prices sharding options by our models, for planners that are not ours:

        estimators = [
            NeuroShardPerfEstimator(topology, constraints),
            EmbeddingStorageEstimator(topology, constraints),
        ]
        enumerator = EmbeddingEnumerator(topology, 512, constraints, estimator=estimators)
        planner = EmbeddingShardingPlanner(topology, 512, enumerator, constraints=constraints)

    Planners add up the costs of a device's shards, and what our models predict is no sum: shards
    share an operator and its all-to-alls. So a shard is given its share of a typical device: what
    it adds to a device that has an even part of all the tables (docs/torchrec.md says how near the
    sums are). The typical device is of the tables of the first call that knows them; later calls
    for some of them, as proposers make, change nothing.

    The predicted computation is forward and backward in one, and divided as TorchRec divides its
    own (`topology.bwd_compute_multiplier`). Tables of other modules than `EmbeddingBagCollection`,
    and options with other kernels than `fused` and `dense`, keep TorchRec's estimate; the log says
    so once. `input_dist_comms` and `prefetch_compute` are 0 where our models price.

    Beyond TorchRec's arguments: `models`, `statistics`, `optimizer` and `interconnect` are those of
    `NeuroShardPlanner`.
    """

    def __init__(
        self,
        topology: Topology,
        constraints: Mapping[str, ParameterConstraints] | None = None,
        is_inference: bool = False,
        *,
        models: Sequence[str] | None = None,
        statistics: Mapping[str, TableStatistics] | None = None,
        optimizer: str | None = None,
        interconnect: str = "",
    ) -> None:
        if is_inference:
            raise InputError(
                "is_inference: expected False, as our models are of training, got True"
            )
        constraints = without_none(constraints)
        check_constraints(constraints or {})
        check_options({"optimizer": optimizer, "statistics": statistics})
        self._topology = topology
        self._constraints = dict(constraints or {})
        self._settings = MeasuredSettings(models, dict(statistics or {}), optimizer, interconnect)
        self._models = names_of(self._settings.required_models(topology.compute_device), "models")
        self._estimate_of_torchrec = EmbeddingPerfEstimator(topology, constraints)
        #: The typical device: its tables, by what tells one from another.
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._task: Task | None = None
        self._said: set[str] = set()

    def estimate(self, sharding_options: list[ShardingOption], *args: Any, **kwargs: Any) -> None:
        """Gives each shard of the options its `perf` [ms]. What else there is, is passed on to
        TorchRec's estimator: the sharders' data, under the name that its release has for them."""
        ours: list[ShardingOption] = []
        others: list[ShardingOption] = []
        tables_of: dict[str, dict[str, None]] = defaultdict(dict)
        for option in sharding_options:
            reason = self._reason_not_priced(option)
            (others if reason else ours).append(option)
            if reason:
                tables_of[reason][option.fqn] = None
        for reason, tables in tables_of.items():
            self._say_what_is_left(reason, list(tables))
        if others:
            self._estimate_of_torchrec.estimate(others, *args, **kwargs)
        if ours:
            sharders = next((x for x in (*args, *kwargs.values()) if isinstance(x, Mapping)), {})
            self._price(ours, list(sharders.values()))

    def _reason_not_priced(self, option: ShardingOption) -> str:
        return reason_not_priced(option)

    def _price(self, options: Sequence[ShardingOption], sharders: Sequence[Any]) -> None:
        keys = [_key(option) for option in options]
        if self._task is None or not self._numbers.keys() >= set(keys):
            self._know(options, keys, sharders)
        assert self._task is not None
        numbers: dict[_Piece, int] = {}
        pieces_of = []
        for option, key in zip(options, keys, strict=True):
            pieces = _pieces(option, self._numbers[key], self._has_row_order(key))
            pieces_of.append([numbers.setdefault(piece, len(numbers)) for piece in pieces])
        shares, reasons, _ = _core.cost_shares(
            to_text(self._task, "estimate"), list(numbers), self._models
        )
        for text in reasons:
            if text not in self._said:
                self._said.add(text)
                warnings.warn(text, ExtrapolationWarning, stacklevel=3)
        for option, places in zip(options, pieces_of, strict=True):
            for shard, place in zip(_filled(option), places, strict=True):
                shard.perf = self._perf(*shares[place])
            for shard in option.shards:
                if 0 in shard.size:
                    shard.perf = replace(_NOTHING)

    def _perf(self, compute_ms: float, forward_ms: float, backward_ms: float) -> Perf:
        forward_part = 1.0 / (1.0 + self._topology.bwd_compute_multiplier)
        return Perf(
            fwd_compute=forward_part * compute_ms,
            fwd_comms=forward_ms,
            bwd_compute=(1.0 - forward_part) * compute_ms,
            bwd_comms=backward_ms,
        )

    def _know(
        self,
        options: Sequence[ShardingOption],
        keys: Sequence[tuple[Any, ...]],
        sharders: Sequence[Any],
    ) -> None:
        """Takes the options' tables as those of which devices have even parts."""
        if "estimates" not in self._said:
            self._said.add("estimates")
            say_what_is_estimated(self._models)
            say_of_hosts(self._topology)
        check_statistics(
            self._settings.statistics,
            set(self._settings.statistics),  # of tables of other modules, too
            options[0].batch_size,
            self._topology.world_size,
        )
        self._numbers = {}
        planned: list[PlannedTable] = []
        counts: dict[int, dict[str, int]] = {}  # by collection
        for option, key in zip(options, keys, strict=True):
            if key in self._numbers:
                continue
            collection = option.module[1]
            if id(collection) not in counts:
                counts[id(collection)] = feature_counts(collection)
            num_features = counts[id(collection)].get(option.name, 1)
            self._numbers[key] = len(planned)
            planned.append(PlannedTable(option, [COLUMN_WISE], num_features))
        inputs = PlanningInputs(
            topology=self._topology,
            reserved=self._topology,
            batch_size=options[0].batch_size,
            constraints=self._constraints,
            enumerator=None,
            seed=0,
            num_threads=0,
        )
        task = task_of(
            planned,
            [ANY_MEMORY] * self._topology.world_size,
            sharders,
            inputs,
            self._settings,
            lambda option: [0] * len(option.shards),
        )
        # Only the use of the tables counts here, not what a plan may do with them; and modules may
        # have tables of one name.
        tables: list[Table | Mapping[str, Any]] = []
        for number, table in enumerate(task.tables):
            assert isinstance(table, Table)
            tables.append(replace(table, name=str(number), min_shard_columns=0))
        self._task = replace(task, tables=tables)

    def _has_row_order(self, key: tuple[Any, ...]) -> bool:
        assert self._task is not None
        table = self._task.tables[self._numbers[key]]
        assert isinstance(table, Table)
        return table.row_access is not None

    def _say_what_is_left(self, reason: str, tables: Sequence[str]) -> None:
        if reason in self._said:
            return
        self._said.add(reason)
        logger.warning("priced by TorchRec's estimate: options of %s: %s", counted(tables), reason)


def _key(option: ShardingOption) -> tuple[Any, ...]:
    """What tells a table from any other, and from itself under other assumptions."""
    tensor = option.tensor
    return (
        option.fqn,
        tuple(tensor.shape),
        str(tensor.dtype),
        tuple(option.input_lengths),
        option.batch_size,
    )


def _filled(option: ShardingOption) -> list[Shard]:
    """Shards that have some of the table: rows may be in fewer slices than there are devices."""
    return [shard for shard in option.shards if 0 not in shard.size]


def _pieces(option: ShardingOption, table: int, has_row_order: bool) -> list[_Piece]:
    """The shards that are not empty. Options may come without shards that are equal to others, so
    how many slices the rows are in follows from their size."""
    rows, columns = option.tensor.shape
    shards = _filled(option)
    if is_replicated(option):
        return [(table, columns, 0, 0, 0)] * len(shards)
    slices = -(-rows // max(shard.size[0] for shard in shards)) if shards else 1
    return [
        (
            table,
            shard.size[1],
            shard.offset[0] if has_row_order else 0,
            shard.size[0],
            slices,
        )
        for shard in shards
    ]
