"""What both objectives plan with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torchrec.distributed.planner.types import Enumerator, ParameterConstraints, Topology


@dataclass
class PlanningInputs:
    """Of one call of the planner."""

    topology: Topology
    #: The topology with what its reservation leaves of its memory.
    reserved: Topology
    #: Samples of one rank.
    batch_size: int
    constraints: Mapping[str, ParameterConstraints]
    enumerator: Enumerator
    seed: int
    num_threads: int

    @property
    def sharder_data(self) -> Any:
        """What estimators ask for besides options; its name depends on TorchRec's release."""
        enumerator = self.enumerator
        return getattr(enumerator, "_sharder_data_map", None) or getattr(
            enumerator, "_sharder_map", {}
        )
