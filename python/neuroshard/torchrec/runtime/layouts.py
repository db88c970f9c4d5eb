"""The runtime's costs on a topology."""

from __future__ import annotations

import json
import logging
import os

from torchrec.distributed.planner.types import Topology

from ... import _core
from ...errors import InputError
from ...runtime.costs import LayoutCosts, RuntimeCosts, read_runtime_costs, shipped_runtime_costs

logger = logging.getLogger(__name__)

#: What costs files know of a processor; two of one name may differ in the others.
_OF_A_PROCESSOR = ("name", "num_cores", "l2_bytes", "l3_bytes")


def known_runtime(topology: Topology) -> str | None:
    """The name of costs that come with the package and were measured on as many processes."""
    if topology.compute_device != "cpu":
        return None
    for name in shipped_runtime_costs():
        if read_runtime_costs(name).layout(topology.world_size, topology.local_world_size):
            return name
    return None


def runtime_costs(
    name: str | os.PathLike[str], topology: Topology
) -> tuple[RuntimeCosts, LayoutCosts]:
    """Those of a file or of a shipped name, and of them the ones on these devices. InputError where
    none were measured."""
    if not isinstance(name, (str, os.PathLike)):
        raise InputError(f"runtime: expected a name or a path, got {type(name).__name__}")
    if topology.compute_device != "cpu":
        raise InputError(
            "runtime: expected the compute device 'cpu', on which the costs were measured, "
            f"got {topology.compute_device!r}"
        )
    costs = read_runtime_costs(name)
    layout = costs.layout(topology.world_size, topology.local_world_size)
    if layout is None:
        known = ", ".join(
            f"{each.world_size} ({each.local_world_size} a host)" for each in costs.layouts
        )
        raise InputError(
            f"runtime: expected {known} processes, of which {os.fsdecode(name)} has costs, "
            f"got {topology.world_size} ({topology.local_world_size} a host)"
        )
    _say_of_other_hardware(costs)
    return costs, layout


def _say_of_other_hardware(costs: RuntimeCosts) -> None:
    """Logs in what the processor that the costs were measured on is another than this one."""
    here = json.loads(_core.cpu_hardware())
    differing = [
        f"{name} {costs.hardware[name]} ({here.get(name)} here)"
        for name in _OF_A_PROCESSOR
        if name in costs.hardware and costs.hardware[name] != here.get(name)
    ]
    if differing:
        logger.warning(
            "the runtime's costs were measured on another processor: %s: "
            "python -m neuroshard.collect --communication measures yours",
            ", ".join(differing),
        )
