"""Plans from elsewhere in the place of a search: checked against the module, its constraints and the
devices' memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from torch import nn
from torchrec.distributed.planner.types import (
    PlannerError,
    PlannerErrorType,
    Shard,
    ShardingOption,
    Topology,
)
from torchrec.distributed.types import ModuleSharder, ShardingType

from ...errors import InputError
from ..enumeration import CutsEnumerator, OptionEnumerator
from ..inputs import PlanningInputs
from ..tables import with_shards
from .plan_files import coverage_fault

_MEMORIES = ("hbm", "ddr", "ssd")

#: Types with rows in one slice for each device of a whole host, or of all. TorchRec's runtime takes
#: that for granted: it goes through the devices and takes the slice of each by its number.
_SLICES_BY_DEVICE = {
    ShardingType.ROW_WISE.value,
    ShardingType.TABLE_ROW_WISE.value,
    ShardingType.GRID_SHARD.value,
}

#: Of a table, as training has them. A plan has them from the constraints that it was made with.
_SETTINGS = ("bounds_check_mode", "stochastic_rounding", "enforce_hbm", "output_dtype")


def check_loader(loader: Any) -> None:
    """Raises InputError for what loads no plans."""
    if loader is None or all(hasattr(loader, name) for name in ("load", "plan_context_hash")):
        return
    raise InputError(f"plan_loader: expected a PlanLoader, got {type(loader).__name__}")


def loaded_options(
    loader: Any,
    context: str,
    module: nn.Module,
    sharders: list[ModuleSharder[nn.Module]],
    listed: Sequence[ShardingOption],
    inputs: PlanningInputs,
) -> list[ShardingOption] | None:
    """The options that the loader's plan has chosen, of those that the module's sharders and the
    constraints permit, with its shards, devices and their estimates; None without a loader, or if
    it has no plan. `context` is the planner's own hash. Raises PlannerError, which names the
    table, unless the plan is one of the module and fits into memory."""
    if loader is None:
        return None
    _check_context(loader, context)
    saved = loader.load()
    if saved is None:
        return None
    if isinstance(inputs.enumerator, CutsEnumerator):  # which lists some of the options alone
        listed = OptionEnumerator(
            topology=inputs.topology,
            batch_size=inputs.batch_size,
            constraints=dict(inputs.constraints),
        ).enumerate(module, sharders)
    options = _chosen(loader, saved.values(), listed, inputs.topology.world_size)
    inputs.enumerator.populate_estimates(options)
    _check_memory(loader, options, inputs.reserved)
    return options


def _check_context(loader: Any, context: str) -> None:
    """Raises PlannerError if the loader's plan was made in another context than this."""
    expected = loader.plan_context_hash()
    if expected is not None and expected != context:
        raise PlannerError(
            error_type=PlannerErrorType.PLANNER_INPUT_CONTEXT_MISMATCH,
            message=f"{_name_of(loader)}: expected the plan's topology, batch size, tables and "
            f"constraints, of hash {expected[:16]}, got others, of hash {context[:16]}",
        )


def _chosen(
    loader: Any,
    saved: Iterable[ShardingOption],
    listed: Iterable[ShardingOption],
    world_size: int,
) -> list[ShardingOption]:
    """Of each table."""
    by_table: dict[str, list[ShardingOption]] = defaultdict(list)
    for option in listed:
        by_table[option.fqn].append(option)
    chosen: dict[str, ShardingOption] = {}
    for option in saved:
        if option.fqn not in by_table:
            raise _failed(loader, f"expected tables of the module, got {option.fqn!r}")
        chosen[option.fqn] = _as_listed(loader, option, by_table[option.fqn], world_size)
    missing = [fqn for fqn in by_table if fqn not in chosen]
    if missing:
        raise _failed(loader, f"expected all tables of the module, got none of {missing[0]!r}")
    return [chosen[fqn] for fqn in by_table]


def _as_listed(
    loader: Any, saved: ShardingOption, listed: Sequence[ShardingOption], world_size: int
) -> ShardingOption:
    expected, actual = tuple(listed[0].tensor.shape), tuple(saved.tensor.shape)
    if actual != expected:
        raise _failed(
            loader,
            f"{saved.fqn}: expected {expected[0]} x {expected[1]} as in the module, "
            f"got {actual[0]} x {actual[1]}",
        )
    kind = (saved.sharding_type, saved.compute_kernel)
    same = [o for o in listed if (o.sharding_type, o.compute_kernel) == kind]
    if not same:
        known = sorted({f"{o.sharding_type}/{o.compute_kernel}" for o in listed})
        raise _failed(
            loader,
            f"{saved.fqn}: expected one of {', '.join(known)}, as its sharder and constraints "
            f"permit, got {'/'.join(kind)}",
        )
    option = with_shards(
        same[0],
        [
            Shard(size=list(shard.size), offset=list(shard.offset), rank=shard.rank)
            for shard in saved.shards
        ],
    )
    _take_settings(loader, saved, option)
    fault = coverage_fault(option, world_size) or _slices_fault(option, same[0])
    if fault:
        raise _failed(loader, f"{saved.fqn}: {fault}")
    return option


def _slices_fault(option: ShardingOption, listed: ShardingOption) -> str:
    """Why an option with slices of rows, one for each device, does not have them as these ranks and
    hosts ask for, which is how the `listed` option has them; empty if it does, and for other types.
    A grid's ranges of columns may have any width."""
    kind = option.sharding_type
    if kind not in _SLICES_BY_DEVICE:
        return ""
    slices = [(shard.offset[0], shard.size[0]) for shard in listed.shards if not shard.offset[1]]
    number = len(slices)
    shards = option.shards
    is_grid = kind == ShardingType.GRID_SHARD.value
    if len(shards) % number if is_grid else len(shards) != number:
        expected = f"a multiple of {number}" if is_grid else str(number)
        return f"shards: expected {expected}, as {kind} has on these ranks, got {len(shards)}"
    for place, shard in enumerate(shards):
        first = shards[place - place % number]
        row, rows = slices[place % number]
        columns = (first.offset[1], first.size[1])
        if (shard.offset[0], shard.size[0]) != (row, rows):
            return (
                f"shards[{place}]: expected {rows} rows from {row} on, as {kind} has on these "
                f"ranks, got {shard.size[0]} from {shard.offset[0]} on"
            )
        if (shard.offset[1], shard.size[1]) != columns:
            return (
                f"shards[{place}]: expected {columns[1]} columns from {columns[0]} on, as those "
                f"before it have, got {shard.size[1]} from {shard.offset[1]} on"
            )
        rank = first.rank - first.rank % number + place % number
        if shard.rank != rank:
            return (
                f"shards[{place}].device: expected {rank}, as the slices of rows are on whole "
                f"hosts' devices in order, got {shard.rank}"
            )
    return ""


def _take_settings(loader: Any, saved: ShardingOption, option: ShardingOption) -> None:
    """Gives the option, which has the constraints' settings, those of the plan that these leave
    open; caches' statistics, which only planning uses, stay the constraints'. Raises PlannerError
    where both say something, and not the same."""

    def agreed(place: str, expected: Any, found: Any) -> Any:
        if expected is None or found is None:
            return found if expected is None else expected
        if expected != found:
            raise _failed(
                loader,
                f"{saved.fqn}: {place}: expected {_shown(expected)}, as its constraint says, "
                f"got {_shown(found)}",
            )
        return expected

    for name in _SETTINGS:
        setattr(option, name, agreed(name, getattr(option, name, None), getattr(saved, name, None)))
    cache = option.cache_params
    if cache is None or saved.cache_params is None:
        option.cache_params = cache or saved.cache_params
        return
    settings = {
        name: agreed(f"cache_params.{name}", value, getattr(saved.cache_params, name))
        for name, value in vars(cache).items()
        if name != "stats" or value is None
    }
    option.cache_params = replace(cache, **settings)


def _shown(setting: Any) -> str:
    return str(getattr(setting, "name", setting))


def _check_memory(loader: Any, options: Iterable[ShardingOption], reserved: Topology) -> None:
    """Raises PlannerError unless the options, with their estimates, fit into what is left of the
    devices' memory."""
    used = {memory: [0] * reserved.world_size for memory in _MEMORIES}
    for option in options:
        for shard in option.shards:
            for memory in _MEMORIES:
                used[memory][shard.rank] += getattr(shard.storage, memory, 0)
    for memory, of_devices in used.items():
        for device, bytes_ in zip(reserved.devices, of_devices, strict=True):
            room = int(getattr(device.storage, memory, 0))
            if bytes_ > room:
                raise PlannerError(
                    error_type=PlannerErrorType.INSUFFICIENT_STORAGE,
                    message=f"{_name_of(loader)}: device {device.rank}: expected at most {room} "
                    f"bytes of {memory}, got {bytes_}",
                )


def _name_of(loader: Any) -> str:
    """What errors call the loader's plan."""
    name = getattr(loader, "get_plan_id", None)
    return str(name()) if name else "plan_loader"


def _failed(loader: Any, reason: str) -> PlannerError:
    return PlannerError(
        error_type=PlannerErrorType.PLAN_LOADING_FAILED, message=f"{_name_of(loader)}: {reason}"
    )
