"""Tables that users pin to ranks, and tables that stay on one rank together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..arguments import type_of
from ..errors import InputError
from ..types import Table
from .tables import PlannedTable


def check_pins_are_pins(devices: Any, same_device_as: Any) -> None:
    """Raises InputError unless they are ranks and names by table name."""
    for place, pins in (("devices", devices), ("same_device_as", same_device_as)):
        if pins is not None and not isinstance(pins, Mapping):
            raise InputError(
                f"{place}: expected {'ranks' if place == 'devices' else 'tables'} by table name, "
                f"got {type_of(pins)}"
            )
    for name, ranks in (devices or {}).items():
        is_list = isinstance(ranks, Sequence) and not isinstance(ranks, (str, bytes))
        if not is_list or not ranks or not all(type(rank) is int for rank in ranks):
            raise InputError(f"devices[{name!r}]: expected a list of ranks, got {ranks!r}")
    for name, other in (same_device_as or {}).items():
        if not isinstance(other, str):
            raise InputError(
                f"same_device_as[{name!r}]: expected the name of a table, got {type_of(other)}"
            )


def check_pins(
    devices: Mapping[str, Sequence[int]],
    same_device_as: Mapping[str, str],
    names: set[str],
    left: Mapping[str, str],
    world_size: int,
) -> None:
    """Raises InputError for pins of tables that our models do not place (`left` says why, by their
    names in the module), and for ranks that there are not."""
    reasons = {fqn.rsplit(".", 1)[-1]: reason for fqn, reason in left.items()}
    pinned_names = [("devices", name) for name in devices]
    for name, other in same_device_as.items():
        pinned_names += [("same_device_as", name), (f"same_device_as[{name!r}]", other)]
    for place, name in pinned_names:
        if name in names:
            continue
        if name in reasons:
            raise InputError(
                f"{place}: expected tables that our models place, got {name!r}, which is left to "
                f"TorchRec's planner: {reasons[name]}"
            )
        raise InputError(f"{place}: expected tables of the module, got {name!r}")
    for name, ranks in devices.items():
        for rank in ranks:
            if not 0 <= rank < world_size:
                raise InputError(
                    f"devices[{name!r}]: expected ranks from 0 to {world_size - 1}, got {rank}"
                )


def pinned(
    planned: Sequence[PlannedTable],
    tables: Sequence[Table],
    devices: Mapping[str, Sequence[int]],
    same_device_as: Mapping[str, str],
) -> list[Table]:
    """The tables of the task with their pins. A table that stays with another stays with the one of
    its own module, if several modules have one of that name."""
    paths: dict[str, list[str]] = {}
    for each in planned:
        paths.setdefault(each.option.name, []).append(str(each.option.path))
    result = []
    for each, table in zip(planned, tables, strict=True):
        name = each.option.name
        if name in devices:
            table = replace(table, devices=sorted(set(devices[name])))
        other = same_device_as.get(name)
        if other is not None:
            own = str(each.option.path)
            path = own if own in paths[other] else paths[other][0]
            table = replace(table, same_device_as=f"{path}.{other}")
        result.append(table)
    return result
