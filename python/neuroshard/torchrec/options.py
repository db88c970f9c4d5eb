"""Properties of all of TorchRec's options and sharders together: groups, room on devices, the
optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn
from torchrec.distributed.planner.types import ShardingOption, Topology
from torchrec.distributed.types import ModuleSharder

from .tables import COLUMN_WISE, PlannedTable


def unite_groups(ours: Sequence[PlannedTable], options: Sequence[ShardingOption]) -> None:
    """Where tables of a module are column-wise, being cut or because they may be nothing else, the
    whole ones count as column-wise too, if they may.

    TorchRec runs a module's tables of each sharding type by themselves: another operator, other
    all-to-alls. A table in one piece is the same either way.
    """
    by_columns = {option.module[0] for option in options if option.sharding_type == COLUMN_WISE}
    for planned, option in zip(ours, options):
        if option.module[0] in by_columns and COLUMN_WISE in planned.sharding_types:
            option.sharding_type = COLUMN_WISE


def bytes_on(storage: Any, compute_device: str) -> int:
    """The part of a storage on the device itself: memory of the host if that is a CPU."""
    return int(storage.ddr if compute_device == "cpu" else storage.hbm)


def free_storage(options: Sequence[ShardingOption], topology: Topology) -> list[int]:
    """Bytes that the options leave on each device."""
    device = topology.compute_device
    room = [bytes_on(hardware.storage, device) for hardware in topology.devices]
    for option in options:
        for shard in option.shards:
            room[shard.rank] -= bytes_on(shard.storage, device)
    return room


def optimizer_of(
    ours: Sequence[PlannedTable], sharders: Sequence[ModuleSharder[nn.Module]]
) -> str:
    """ "rowwise_adagrad" if any table keeps optimizer state, else "sgd": the closest of the
    measured optimizers."""
    names = {
        getattr(kind, "__name__", "")
        for planned in ours
        for kind in getattr(planned.option.tensor, "_optimizer_classes", [])[:1]
    }
    for sharder in sharders:
        fused = getattr(sharder, "fused_params", None) or {}
        if "optimizer" in fused:
            names.add(str(getattr(fused["optimizer"], "name", fused["optimizer"])))
    stateless = {"SGD", "EXACT_SGD", "SGD_", "NONE", ""}
    return "rowwise_adagrad" if names - stateless else "sgd"
