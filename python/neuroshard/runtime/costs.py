"""The learned costs of TorchRec's runtime: `neuroshard/runtime-model/1` (docs/formats.md), and the
price of a plan by them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from ..arguments import path_of
from ..documents import Fields, read_document, write_text
from ..errors import InputError
from ..types import Table
from .operators import OPERATOR_WORK, OperatorWork, operator_work, signed, unmeasured_operators
from .trained_work import TrainedWork
from .work import (
    KINDS,
    OPERATORS,
    SHARDING_TYPES,
    WORK,
    Setup,
    ShardedModule,
    units,
    work_of,
)

FORMAT = "neuroshard/runtime-model/1"

_SHIPPED = Path(__file__).parent / "models"


@dataclass(frozen=True)
class Price:
    """What a step of the embeddings takes, forward and backward [ms]."""

    #: In the operators of the process where they take longest.
    operators_ms: float
    #: All the rest: sending, sorting, adding up, and what each operator and module costs by itself.
    runtime_ms: float

    @property
    def step_ms(self) -> float:
        """Both."""
        return self.operators_ms + self.runtime_ms


@dataclass(frozen=True)
class LayoutCosts:
    """Costs on one number of processes: milliseconds of each kind of `WORK`, for one that is counted,
    for a MiB of bytes and for a millisecond in operators."""

    world_size: int
    local_world_size: int
    forward: Mapping[str, float]
    backward: Mapping[str, float]
    #: By kind of operator, the milliseconds of each kind of `OPERATOR_WORK`.
    operators: Mapping[str, Mapping[str, float]]
    #: By kind of module, the sharding types that were measured: others have no price.
    types: Mapping[str, Sequence[str]]
    #: What is known of the fit: numbers of samples and errors.
    errors: Mapping[str, Any] = field(default_factory=dict)
    #: The most work that was measured; of older files nothing is known.
    trained: TrainedWork = field(default_factory=TrainedWork)

    def forward_ms(self, work: Mapping[str, float]) -> float:
        """Of the forward pass, beyond its operators."""
        return weighed(self.forward, work)

    def backward_ms(self, work: Mapping[str, float]) -> float:
        """Of the backward pass, likewise."""
        return weighed(self.backward, work)

    def runtime_ms(self, work: Mapping[str, float]) -> float:
        """Of both."""
        return self.forward_ms(work) + self.backward_ms(work)

    def price(
        self,
        modules: Sequence[ShardedModule],
        setup: Setup,
        models: Sequence[str],
        optimizer: str = "sgd",
        tables: Sequence[Sequence[Table]] = (),
    ) -> Price:
        """The price of a plan; arguments as of `operator_work`."""
        found = operator_work(modules, setup, models, optimizer, tables)
        return self.price_of(work_of(modules, setup), self.operators_ms(found))

    def price_of(self, work: Mapping[str, float], operators_ms: Sequence[float]) -> Price:
        """The price of work, with the time in operators of each process [ms]."""
        return Price(
            max(operators_ms), self.runtime_ms({**work, OPERATORS: fmean(operators_ms)})
        )

    def operators_ms(self, work: Sequence[OperatorWork]) -> list[float]:
        """The time in operators of each process [ms], from the work of each."""
        return [
            sum(self.operator_ms(kind, of_kind) for kind, of_kind in of_rank.items())
            for of_rank in work
        ]

    def operator_ms(self, kind: str, work: Mapping[str, float]) -> float:
        """The time of operators of a kind that do this."""
        costs = self.operators[kind]
        return max(0.0, sum(signed(name) * costs[name] * work[name] for name in costs))


@dataclass(frozen=True)
class RuntimeCosts:
    """What was learned on one machine."""

    #: The computation model that `LayoutCosts.operators` begin with.
    operator_model: str
    layouts: tuple[LayoutCosts, ...]
    hardware: Mapping[str, Any] = field(default_factory=dict)
    software: Mapping[str, Any] = field(default_factory=dict)
    #: What warnings call them: that of the file, without its ending. No part of the costs.
    name: str = field(default="", compare=False)

    def layout(self, world_size: int, local_world_size: int) -> LayoutCosts | None:
        """The costs on these processes; None where none were measured."""
        for layout in self.layouts:
            if (layout.world_size, layout.local_world_size) == (world_size, local_world_size):
                return layout
        return None

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        force: bool = False,
        inputs: Sequence[str] = (),
    ) -> None:
        """Writes the file, whole or not at all; over an older one, other models and measured data
        only by `force`, and never over the `inputs` that it was learned from."""
        content = {
            "format": FORMAT,
            "operator_model": self.operator_model,
            "hardware": self.hardware,
            "software": self.software,
            "layouts": [
                {
                    "world_size": layout.world_size,
                    "local_world_size": layout.local_world_size,
                    "types": {kind: list(types) for kind, types in layout.types.items()},
                    "operators": {
                        kind: _without_zeros(costs) for kind, costs in layout.operators.items()
                    },
                    "forward": _without_zeros(layout.forward),
                    "backward": _without_zeros(layout.backward),
                    "errors": layout.errors,
                    **layout.trained.content(),
                }
                for layout in self.layouts
            ],
        }
        text = json.dumps(content, indent=1, allow_nan=False) + "\n"
        write_text(path, text, inputs=inputs, models=[self.operator_model], force=force)


def weighed(costs: Mapping[str, float], work: Mapping[str, float]) -> float:
    """The sum of costs times work."""
    return sum(cost * units(name, work) for name, cost in costs.items())


def shipped_runtime_costs() -> list[str]:
    """The names of the costs that come with the package."""
    return sorted(path.stem for path in _SHIPPED.glob("*.json"))


def read_runtime_costs(name: str | os.PathLike[str]) -> RuntimeCosts:
    """Those of a file, or shipped ones by name. InputError names the place of a fault."""
    path = path_of(name, "runtime")
    if path in shipped_runtime_costs():
        path = str(_SHIPPED / f"{path}.json")
    elif os.sep not in path and not os.path.exists(path):
        raise InputError(
            f"runtime: expected a file or one of {', '.join(shipped_runtime_costs())}, got {path!r}"
        )
    fields = Fields(read_document(path, FORMAT), path)
    costs = RuntimeCosts(
        operator_model=fields.text("operator_model"),
        hardware=fields.free("hardware"),
        software=fields.free("software"),
        layouts=tuple(_layout_of(layout) for layout in fields.parts("layouts")),
        name=Path(path).stem,
    )
    fields.end()
    return costs


def _layout_of(fields: Fields) -> LayoutCosts:
    layout = LayoutCosts(
        world_size=fields.integer("world_size", least=1, most=65536),
        local_world_size=fields.integer("local_world_size", least=1, most=65536),
        types=_types(fields.part("types")),
        operators=_operators(fields.part("operators")),
        forward=_numbers(fields.part("forward"), WORK),
        backward=_numbers(fields.part("backward"), WORK),
        errors=fields.free("errors"),
        trained=_trained(fields.part("most_work"), fields.part("most_operator_work")),
    )
    fields.end()
    return layout


def _trained(work: Fields, operators: Fields) -> TrainedWork:
    of_operators = {
        kind: _known_numbers(operators.part(kind), names)
        for kind, names in OPERATOR_WORK.items()
        if operators.has(kind)
    }
    operators.end()
    return TrainedWork(_known_numbers(work, WORK), of_operators)


def _known_numbers(fields: Fields, names: Sequence[str]) -> dict[str, float]:
    """Those of the names that are there; no others may be."""
    numbers = {name: fields.number(name) for name in names if fields.has(name)}
    fields.end()
    return numbers


def _types(fields: Fields) -> dict[str, list[str]]:
    types = {kind: fields.choices(kind, SHARDING_TYPES) for kind in KINDS if fields.has(kind)}
    fields.end()
    return types


def _operators(fields: Fields) -> dict[str, dict[str, float]]:
    costs = {
        kind: _numbers(fields.part(kind), names)
        if fields.has(kind)
        else unmeasured_operators(kind)
        for kind, names in OPERATOR_WORK.items()
    }
    fields.end()
    return costs


def _numbers(fields: Fields, names: Sequence[str]) -> dict[str, float]:
    numbers = {name: fields.milliseconds(name, default=0.0) for name in names}
    fields.end()
    return numbers


def _without_zeros(numbers: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in numbers.items() if value > 0}
