"""What users give the planner, checked before anything is planned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torchrec.distributed.embedding_types import EmbeddingComputeKernel
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.distributed.types import ShardingType

from ..arguments import MOST_SEED, MOST_THREADS, integer_of, text_of, type_of
from ..errors import InputError
from ..statistics import TableStatistics
from .pins import check_pins_are_pins

_CHOICES = {
    "objective": ("torchrec", "measured"),
    "compare_with_torchrec": ("auto", "always", "never"),
    "optimizer": ("sgd", "rowwise_adagrad"),
}


def check_options(options: Mapping[str, Any]) -> None:
    """Raises InputError for options of ours that make no sense, of those that are given."""
    for name, known in _CHOICES.items():
        if name not in options:
            continue
        value = options[name]
        if value not in known and (value is not None or name == "compare_with_torchrec"):
            raise InputError(f"{name}: expected {' or '.join(known)}, got {value!r}")
    for name, most in (("seed", MOST_SEED), ("num_threads", MOST_THREADS)):
        if name in options:
            integer_of(options[name], name, 0, most)
    if "interconnect" in options:
        text_of(options["interconnect"], "interconnect")
    check_pins_are_pins(options.get("devices"), options.get("same_device_as"))
    statistics = options.get("statistics")
    if statistics is None:
        return
    if not isinstance(statistics, Mapping):
        raise InputError(
            "statistics: expected TableStatistics by table name, "
            f"got {type_of(statistics)}"
        )
    for name, of_table in statistics.items():
        if not isinstance(of_table, TableStatistics):
            raise InputError(
                f"statistics[{name!r}]: expected TableStatistics, got {type_of(of_table)}"
            )


def require_measured(objective: str, **given: Any) -> None:
    """Raises InputError for options that only the objective "measured" keeps to."""
    for name, value in given.items():
        if value is not None and objective != "measured":
            raise InputError(
                f"{name}: expected objective='measured', which alone keeps to it, got {objective!r}"
            )


def require_none(given: Mapping[str, Any], beside: str) -> None:
    """Raises InputError for options that cannot be next to another."""
    for name, value in given.items():
        if value is not None:
            raise InputError(f"{name}: expected none next to {beside}, got {type_of(value)}")


def without_none(
    constraints: Mapping[str, ParameterConstraints | None] | None,
) -> dict[str, ParameterConstraints] | None:
    """Those that there are: to TorchRec, a table whose constraint is None has none."""
    if constraints is None:
        return None
    return {name: given for name, given in constraints.items() if given is not None}


def check_constraints(constraints: Mapping[str, ParameterConstraints]) -> None:
    """Raises InputError for constraints that make no sense."""
    known = {sharding_type.value for sharding_type in ShardingType}
    kernels = {kernel.value for kernel in EmbeddingComputeKernel}
    for name, constraint in constraints.items():
        place = f"constraints[{name!r}]"
        least = constraint.min_partition
        if least is not None and least < 1:
            raise InputError(f"{place}.min_partition: expected at least 1 column, got {least}")
        for given, all_names, field in (
            (constraint.sharding_types, known, "sharding_types"),
            (constraint.compute_kernels, kernels, "compute_kernels"),
        ):
            for value in given or []:
                if value not in all_names:
                    raise InputError(
                        f"{place}.{field}: expected some of {', '.join(sorted(all_names))}, "
                        f"got {value!r}"
                    )
        factors = constraint.pooling_factors
        if any(not math.isfinite(factor) or factor < 0 for factor in factors):
            raise InputError(
                f"{place}.pooling_factors: expected numbers of at least 0, got {factors}"
            )
        for field in ("num_poolings", "batch_sizes"):
            values = getattr(constraint, field)
            if values and len(values) != len(factors):
                raise InputError(
                    f"{place}.{field}: expected {len(factors)} of them, as many as "
                    f"pooling_factors, got {len(values)}"
                )


def check_statistics(
    statistics: Mapping[str, TableStatistics], names: set[str], batch_size: int, ranks: int
) -> None:
    """Raises InputError for statistics of tables that are not among these, or of another batch size
    than that of all ranks; `batch_size` is of one."""
    samples = batch_size * ranks
    for name, of_table in statistics.items():
        if name not in names:
            raise InputError(f"statistics: expected tables of the module, got {name!r}")
        if of_table.batch_size != samples:
            raise InputError(
                f"statistics[{name!r}].batch_size: expected {samples} "
                f"({batch_size} x {ranks} ranks), got {of_table.batch_size}"
            )
