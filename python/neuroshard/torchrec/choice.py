"""The objective "torchrec": TorchRec's estimators price the options, our search chooses."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from torchrec.distributed.embedding_types import EmbeddingComputeKernel
from torchrec.distributed.planner.types import (
    PartitionByType,
    ShardingOption,
    Topology,
)
from torchrec.distributed.planner.utils import sharder_name
from torchrec.distributed.types import ShardingType

from .. import _core
from ..arguments import to_text
from ..errors import InfeasibleError
from .estimates import (
    EqualShards,
    is_as_estimated,
    known_estimates,
    loads_ms,
    set_estimates,
    shard_estimates,
)
from .inputs import PlanningInputs
from .tables import OUTSIDE_THE_DEVICE, copy_of
from .variants import with_other_caches, with_wider_blocks

_MEMORIES = ("hbm", "ddr", "ssd")

#: Neighbours that a first search tries, which only sees whether memory is short.
_STEPS_TO_LOOK = 4_000


@dataclass
class Choice:
    """What the search found."""

    #: One option of each table, with its devices and TorchRec's estimates.
    options: list[ShardingOption]
    #: Their numbers among those that were searched.
    numbers: list[int]
    #: No choice among the options that fits into memory costs less.
    lower_bound_ms: float
    #: Neighbours tried, and those accepted.
    statistics: dict[str, int]
    estimate_seconds: float = 0.0
    search_seconds: float = 0.0


class OptionSearch:
    """Chooses an option for each table and devices for its shards.

    `prices_known`: the options come with their estimates, from an enumerator of the user's.
    """

    def __init__(self, inputs: PlanningInputs, *, prices_known: bool) -> None:
        self._inputs = inputs
        self._enumerator = inputs.enumerator
        self._prices_known = prices_known
        self._known: dict[int, list[EqualShards]] = {}  # by the options' ids
        self._estimate_seconds = 0.0
        self._search_seconds = 0.0

    def choose(
        self, options: Iterable[ShardingOption], taken: Sequence[ShardingOption]
    ) -> Choice:
        """The choice of least cost found, besides tables that are placed already. Raises
        InfeasibleError if none fits into memory."""
        by_table = self._by_table(options)
        if not self._prices_known and self._is_memory_short(by_table, taken):
            by_table = {
                fqn: [
                    other
                    for option in of_table
                    for other in with_other_caches(option, self._load_factor(option))
                ]
                for fqn, of_table in by_table.items()
            }
        return self._chosen(by_table, taken)

    def _is_memory_short(
        self, by_table: dict[str, list[ShardingOption]], taken: Sequence[ShardingOption]
    ) -> bool:
        """Whether a plan of a short search leaves the devices' memory, or less than half of it on
        some device: then the sizes of caches are worth choosing, and their estimates the time."""
        flat = [option for of_table in by_table.values() for option in of_table]
        if not any(option.compute_kernel in OUTSIDE_THE_DEVICE for option in flat):
            return False
        start = time.perf_counter()
        estimates = self._estimates(flat)
        self._estimate_seconds += time.perf_counter() - start
        try:
            found = self._searched(by_table, estimates, taken, _STEPS_TO_LOOK)
        except InfeasibleError:
            return True
        if any(option.compute_kernel in OUTSIDE_THE_DEVICE for option in found.options):
            return True
        used = [0] * self._inputs.reserved.world_size
        for option in [*taken, *found.options]:
            for shard in option.shards:
                used[shard.rank] += shard.storage.hbm
        return any(
            2 * bytes_ > device.storage.hbm
            for bytes_, device in zip(used, self._inputs.reserved.devices, strict=True)
        )

    def _by_table(self, options: Iterable[ShardingOption]) -> dict[str, list[ShardingOption]]:
        by_table: dict[str, list[ShardingOption]] = defaultdict(list)
        for option in options:
            by_table[option.fqn] += [option] if self._prices_known else with_wider_blocks(option)
        if not self._prices_known:
            by_table = {fqn: without_repetitions(found) for fqn, found in by_table.items()}
        return by_table

    def _load_factor(self, option: ShardingOption) -> float | None:
        """Of the caches of all tables of a sharder, if its user gives one."""
        sharder = self._inputs.sharder_data.get(sharder_name(type(option.module[1])))
        fused = getattr(sharder, "fused_params", None) or {}
        return fused.get("cache_load_factor")

    def _chosen(
        self, by_table: dict[str, list[ShardingOption]], taken: Sequence[ShardingOption]
    ) -> Choice:
        flat = [option for of_table in by_table.values() for option in of_table]
        start = time.perf_counter()
        estimates = self._estimates(flat)
        self._estimate_seconds += time.perf_counter() - start
        found = self._searched(by_table, estimates, taken)
        start = time.perf_counter()
        is_confirmed = self._prices_known or self._confirm(found, estimates)
        if not is_confirmed:
            # An estimator that looks at all shards of an option together: ask for them all.
            whole = [copy_of(option) for option in flat]
            self._enumerator.populate_estimates(whole)
            estimates = known_estimates(whole)
        self._estimate_seconds += time.perf_counter() - start
        if not is_confirmed:
            found = self._searched(by_table, estimates, taken)
        found.estimate_seconds = self._estimate_seconds
        found.search_seconds = self._search_seconds
        return found

    def _estimates(self, flat: Sequence[ShardingOption]) -> list[list[EqualShards]]:
        """Those of the options, of which some may have been asked for before."""
        if self._prices_known:
            return known_estimates(flat)
        new = [option for option in flat if id(option) not in self._known]
        for option, estimates in zip(new, shard_estimates(new, self._enumerator), strict=True):
            self._known[id(option)] = estimates
        return [self._known[id(option)] for option in flat]

    def _confirm(
        self,
        found: Choice,
        estimates: Sequence[list[EqualShards]],
    ) -> bool:
        """Estimates the chosen options whole; whether they cost what was searched with."""
        self._enumerator.populate_estimates(found.options)
        return all(
            is_as_estimated(option, estimates[number])
            for option, number in zip(found.options, found.numbers, strict=True)
        )

    def _searched(
        self,
        by_table: dict[str, list[ShardingOption]],
        estimates: Sequence[list[EqualShards]],
        taken: Sequence[ShardingOption],
        steps: int = 0,
    ) -> Choice:
        start = time.perf_counter()
        task = self._task(by_table, estimates, taken)
        inputs = self._inputs
        text = to_text(task.document, "estimates")  # NumPy's numbers, where constraints have such
        answer = json.loads(_core.choose_options(text, steps, inputs.seed, inputs.num_threads))
        options = []
        numbers = []
        for choice, of_table, listed in zip(
            answer["choices"], by_table.values(), task.listed, strict=True
        ):
            number, option = listed[choice["option"]]
            chosen = copy_of(option)
            set_estimates(chosen, estimates[number])
            for shard, rank in zip(chosen.shards, choice["devices"], strict=True):
                shard.rank = rank
            options.append(chosen)
            numbers.append(number)
        self._search_seconds += time.perf_counter() - start
        return Choice(options, numbers, answer["lower_bound_ms"], answer["statistics"])

    def _task(
        self,
        by_table: dict[str, list[ShardingOption]],
        estimates: Sequence[list[EqualShards]],
        taken: Sequence[ShardingOption],
    ) -> _OptionTask:
        topology = self._inputs.reserved
        room = {
            memory: [int(getattr(device.storage, memory, 0)) for device in topology.devices]
            for memory in _MEMORIES
        }
        for option in taken:
            for shard in option.shards:
                for memory in _MEMORIES:
                    room[memory][shard.rank] -= getattr(shard.storage, memory, 0)
        used = {
            memory
            for memory in _MEMORIES
            if min(room[memory]) < 0
            or any(
                getattr(equal.storage, memory, 0) > 0 for shards in estimates for equal in shards
            )
        }
        memories = [memory for memory in _MEMORIES if memory in used]
        bytes_of = bytes_reader(memories)
        world_size = topology.world_size
        host = min(hosts_devices(topology), world_size)
        tables: list[dict[str, Any]] = []
        listed: list[list[tuple[int, ShardingOption]]] = []
        number = 0
        for fqn, of_table in by_table.items():
            documents = []
            of_documents = []
            for option in of_table:
                placement = placement_of(option, world_size, host)
                if placement:
                    documents.append(
                        {
                            "placement": placement,
                            "shards": [
                                [equal.number, equal.perf.total, *bytes_of(equal.storage)]
                                for equal in estimates[number]
                            ],
                        }
                    )
                    of_documents.append((number, option))
                number += 1
            tables.append({"name": fqn, "options": documents})
            listed.append(of_documents)
        document = {
            "format": "neuroshard/option-task/1",
            "world_size": world_size,
            "local_world_size": host,
            "memories": [{"name": name, "bytes": room[name]} for name in memories],
            "load_ms": loads_ms(taken, world_size),
            "tables": tables,
        }
        return _OptionTask(document, listed)


@dataclass
class _OptionTask:
    document: dict[str, Any]
    #: Of each table, its options in the document: their numbers among all, and they themselves.
    listed: list[list[tuple[int, ShardingOption]]]


def hosts_devices(topology: Topology) -> int:
    """Devices among which tables of a host are cut: of a pod, where the topology has pods."""
    return int(getattr(topology, "intra_group_size", None) or topology.local_world_size)


def without_repetitions(options: list[ShardingOption]) -> list[ShardingOption]:
    """The options of a table, but for pieces of columns that are others by another name: one piece
    is the whole table, and those on one host may as well lie anywhere."""
    kinds = {(option.sharding_type, option.compute_kernel) for option in options}
    columns, table = ShardingType.COLUMN_WISE.value, ShardingType.TABLE_WISE.value
    on_host = ShardingType.TABLE_COLUMN_WISE.value

    def is_repeated(option: ShardingOption) -> bool:
        kernel = option.compute_kernel
        if option.sharding_type == on_host and (columns, kernel) in kinds:
            return True
        is_one = option.sharding_type in (columns, on_host) and len(option.shards) == 1
        return is_one and (table, kernel) in kinds

    return [option for option in options if not is_repeated(option)]


def bytes_reader(memories: Sequence[str]) -> Callable[[Any], tuple[int, ...]]:
    """What gives these kinds of memory of a storage."""
    if len(memories) > 1:
        return attrgetter(*memories)
    if memories:
        return lambda storage: (getattr(storage, memories[0]),)
    return lambda storage: ()


def placement_of(option: ShardingOption, world_size: int, host: int) -> str:
    """Where the option's shards may lie, in the words of the search; empty if nowhere."""
    shards = len(option.shards)
    if option.partition_by == PartitionByType.UNIFORM.value:
        return "all_devices" if shards == world_size else ""
    if option.partition_by == PartitionByType.DEVICE.value:
        # As TorchRec's partitioner does, since no device can have two shards of such a table.
        is_key_value = option.compute_kernel == EmbeddingComputeKernel.KEY_VALUE.value
        if is_key_value and option.sharding_type == ShardingType.COLUMN_WISE.value:
            return "distinct_devices" if shards <= world_size else ""
        return "any_device"
    if option.sharding_type == ShardingType.TABLE_COLUMN_WISE.value:
        return "devices_of_one_host"
    return "whole_hosts" if shards % host == 0 else ""

