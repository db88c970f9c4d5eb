"""What would do where no plan fits: found by trying it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from torch import nn
from torchrec.distributed.planner.types import ParameterConstraints, ShardingOption
from torchrec.distributed.types import ModuleSharder

from ..errors import InfeasibleError
from .choice import OptionSearch
from .enumeration import OptionEnumerator
from .estimates import shard_estimates
from .inputs import PlanningInputs
from .tables import some

Relaxation = Callable[[ParameterConstraints], ParameterConstraints]

_BOTH = "all kernels and sharding types for"

#: What users may have ruled out by their constraints, and the words for it.
_RELAXATIONS: tuple[tuple[str, Relaxation], ...] = (
    (
        "kernels that keep tables in the host's memory (fused_uvm, fused_uvm_caching) for",
        lambda constraint: replace(constraint, compute_kernels=None),
    ),
    (
        "all sharding types (row_wise among them) for",
        lambda constraint: replace(constraint, sharding_types=None),
    ),
    (
        _BOTH,
        lambda constraint: replace(constraint, compute_kernels=None, sharding_types=None),
    ),
)


def what_would_do(
    module: nn.Module,
    sharders: list[ModuleSharder[nn.Module]],
    options: Sequence[ShardingOption],
    inputs: PlanningInputs,
) -> list[str]:
    """Ways in which a plan was found or would have room, each a part of a sentence."""
    ways: list[str] = []
    if isinstance(inputs.enumerator, OptionEnumerator):
        for words, relax in _RELAXATIONS:
            if ways and words == _BOTH:
                break
            relaxed = {name: relax(given) for name, given in inputs.constraints.items()}
            changed = [name for name in relaxed if relaxed[name] != inputs.constraints[name]]
            if changed and _is_feasible(module, sharders, relaxed, inputs):
                ways.append(f"allowing {words} {some(changed)}")
    devices = _least_devices(options, inputs)
    if devices > inputs.topology.world_size:
        ways.append(f"at least {devices} devices of this memory")
    return ways


def _is_feasible(
    module: nn.Module,
    sharders: list[ModuleSharder[nn.Module]],
    constraints: dict[str, ParameterConstraints],
    inputs: PlanningInputs,
) -> bool:
    enumerator = OptionEnumerator(
        topology=inputs.topology, batch_size=inputs.batch_size, constraints=constraints
    )
    tried = replace(inputs, enumerator=enumerator, constraints=constraints)
    try:
        OptionSearch(tried, prices_known=False).choose(enumerator.enumerate(module, sharders), [])
    except (InfeasibleError, RuntimeError):
        return False
    return True


def _least_devices(options: Iterable[ShardingOption], inputs: PlanningInputs) -> int:
    """Of the kinds of memory, the one that asks for the most devices: bytes of the tables' smallest
    options over a device's."""
    listed = list(options)
    least: dict[str, dict[str, int]] = {"hbm": defaultdict(int), "ddr": defaultdict(int)}
    for option, estimates in zip(listed, shard_estimates(listed, inputs.enumerator)):
        for memory, of_tables in least.items():
            bytes_ = sum(equal.number * getattr(equal.storage, memory) for equal in estimates)
            of_tables[option.fqn] = min(bytes_, of_tables.get(option.fqn, bytes_))
    devices = 0
    for memory, of_tables in least.items():
        room = max(getattr(device.storage, memory) for device in inputs.reserved.devices)
        if room > 0:
            devices = max(devices, math.ceil(sum(of_tables.values()) / room))
    return devices
