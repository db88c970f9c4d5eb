"""The task that a plan is of, as a hash that is the same in every process."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from torchrec.distributed.planner.types import (
    ParameterConstraints,
    ShardingOption,
    StorageReservation,
    Topology,
)

#: Memory counts in multiples of this, as in TorchRec's own hash: a driver's or a kernel's part of it
#: differs from machine to machine.
_BYTES = 100 * 1024**3


def context_hash(
    topology: Topology,
    reserved: Topology,
    batch_size: int,
    options: Iterable[ShardingOption],
    constraints: Mapping[str, ParameterConstraints],
    reservation: StorageReservation,
) -> str:
    """SHA-256 of the topology, what its reservation leaves, the batch size, the options' tables and
    the constraints. Neither the order of tables nor of constraints counts, nor how plans are made:
    sharders and their fused parameters, statistics, models."""
    tables = {
        option.fqn: [*option.tensor.shape, str(option.tensor.dtype), option.module_type_key]
        for option in options
    }
    content = {
        "topology": _of_topology(topology),
        "reserved": _of_topology(reserved),
        "reservation": type(reservation).__name__,
        "batch_size": batch_size,
        "tables": tables,
        "constraints": {name: _plain(value) for name, value in constraints.items()},
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _of_topology(topology: Topology) -> dict[str, Any]:
    memory = [
        [
            round(getattr(device.storage, kind, 0) / _BYTES)
            for kind in ("hbm", "ddr", "ssd")
        ]
        for device in topology.devices
    ]
    rates = {
        name: _plain(getattr(topology, name, None))
        for name in (
            "world_size",
            "local_world_size",
            "intra_group_size",
            "compute_device",
            "hbm_mem_bw",
            "ddr_mem_bw",
            "hbm_to_ddr_mem_bw",
            "intra_host_bw",
            "inter_host_bw",
            "bwd_compute_multiplier",
        )
    }
    return {"memory": memory, **rates}


def _plain(value: Any) -> Any:
    """The value without what differs from process to process, such as addresses."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value.name if isinstance(value, Enum) else value
    if isinstance(value, Enum):
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        return _plain(value.tolist())
    return type(value).__name__
