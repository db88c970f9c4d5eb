"""How much work the steps had that the runtime's costs were learned from, and what of a plan is more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from ..types import Table
from .operators import OPERATOR_WORK, OperatorWork, kind_of_operator, table_work, used_evenly
from .samples import RuntimeSample, measured_operators_ms
from .work import BYTES, OPERATORS, WORK, Setup, ShardedModule, bytes_of, units, work_of

#: Computation models know what they were trained on by themselves.
_OF_THE_MODEL = "model"

_UNITS = {**dict.fromkeys(BYTES, " MiB"), OPERATORS: " ms"}
_OPERATOR_UNITS = {
    **dict.fromkeys(("lookups", "distinct_rows", "crowded", "far"), " million"),
    **dict.fromkeys(("gathered", "distinct", "put_out", "whole"), " MiB"),
}

#: Kinds of work that a warning names; the others are counted.
_MOST_NAMED = 5

#: Sums of one and the same parts in another order are no more work.
_ROUNDING = 1.0 + 1e-9


@dataclass(frozen=True)
class TrainedWork:
    """The most of each kind of work that a step had, in the unit of its cost. What is small is no
    limit: costs are at least 0 for each unit of work, so that a plan of less costs less, down to
    nothing."""

    #: Of `WORK`; empty where nothing is known.
    work: Mapping[str, float] = field(default_factory=dict)
    #: By kind of operator, of `OPERATOR_WORK` but for the model's own time: on one process.
    operators: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def content(self) -> dict[str, Any]:
        """The fields of a file; none where nothing is known."""
        fields = {"most_work": self.work, "most_operator_work": self.operators}
        return {name: value for name, value in fields.items() if value}

    def reason_outside(
        self,
        modules: Sequence[ShardedModule],
        setup: Setup,
        found: Sequence[OperatorWork],
        operators_ms: Sequence[float],
        names: Sequence[Sequence[str]],
        tables: Sequence[Sequence[Table]] = (),
    ) -> str:
        """What of a plan is more than was measured, each kind of work with the table that has most of
        it; empty if nothing is. `found` and `operators_ms` are what its operators do on each process
        and how long they take [ms], `names` those of each module's tables, `tables` as of
        `operator_work`."""
        reasons = [
            *self._of_the_runtime(modules, setup, operators_ms, names),
            *self._of_operators(modules, setup, found, names, tables),
        ]
        if not reasons:
            return ""
        reasons.sort(key=lambda reason: -reason[0])
        shown = [text for _, text in reasons[:_MOST_NAMED]]
        more = len(reasons) - _MOST_NAMED
        if more > 0:
            shown.append(f"and {more} {'kind' if more == 1 else 'kinds'} more")
        return "more work than trained on: " + ", ".join(shown)

    def _of_the_runtime(
        self,
        modules: Sequence[ShardedModule],
        setup: Setup,
        operators_ms: Sequence[float],
        names: Sequence[Sequence[str]],
    ) -> Iterator[tuple[float, str]]:
        work = {**work_of(modules, setup), OPERATORS: fmean(operators_ms)}
        for name, most in self.work.items():
            got = units(name, work)
            if got > most * _ROUNDING:
                parts = {
                    table_name: sum(bytes_of(table, module.kind, setup).get(name, [0.0]))
                    for module, of_module in zip(modules, names, strict=True)
                    for table, table_name in zip(module.tables, of_module, strict=True)
                }
                yield _reason(name, most, got, _UNITS.get(name, ""), parts)

    def _of_operators(
        self,
        modules: Sequence[ShardedModule],
        setup: Setup,
        found: Sequence[OperatorWork],
        names: Sequence[Sequence[str]],
        tables: Sequence[Sequence[Table]],
    ) -> Iterator[tuple[float, str]]:
        for kind, of_kind in self.operators.items():
            for name, most in of_kind.items():
                rank = max(range(len(found)), key=lambda each: found[each][kind][name])
                got = found[rank][kind][name]
                if got > most * _ROUNDING:
                    what = f"{name} of {kind} operators"
                    work = _work_by_table(kind, rank, modules, setup, names, tables)
                    parts = {table: of_table[name] for table, of_table in work.items()}
                    yield _reason(what, most, got, _OPERATOR_UNITS.get(name, ""), parts)


def _work_by_table(
    kind: str,
    rank: int,
    modules: Sequence[ShardedModule],
    setup: Setup,
    names: Sequence[Sequence[str]],
    tables: Sequence[Sequence[Table]],
) -> dict[str, Counter[str]]:
    """What each table is to the operators of a kind on a process, as far as a table is by itself."""
    found: dict[str, Counter[str]] = {}
    for number, (module, of_module) in enumerate(zip(modules, names, strict=True)):
        used = tables[number] if tables else [used_evenly(table) for table in module.tables]
        for table, how, name in zip(module.tables, used, of_module, strict=True):
            if kind_of_operator(table.sharding_type, module.kind) == kind:
                work = found[name] = Counter()
                for at, part in table_work(table, how, setup):
                    if at == rank:
                        work.update(part)
    return found


def _reason(
    what: str, most: float, got: float, unit: str, parts: Mapping[str, float]
) -> tuple[float, str]:
    """How many times as much as was measured, and a line of it."""
    largest = max(parts, key=lambda name: parts[name], default=None)
    shown = f', largest: "{largest}"' if largest is not None and parts[largest] > 0 else ""
    text = f"{what} {got:.4g}{unit} (at most {most:.4g}{shown})"
    return (got / most if most > 0 else float("inf")), text


def trained_work_of(
    samples: Sequence[RuntimeSample], found: Mapping[int, Sequence[OperatorWork]]
) -> TrainedWork:
    """Of measured steps; `found` has by a sample's index what its operators do."""
    work = dict.fromkeys(WORK, 0.0)
    operators = {
        kind: {name: 0.0 for name in names if name != _OF_THE_MODEL}
        for kind, names in OPERATOR_WORK.items()
    }
    for sample in samples:
        of_sample = work_of(sample.modules, sample.setup)
        of_sample[OPERATORS] = fmean(measured_operators_ms(sample))
        for name in work:
            work[name] = max(work[name], units(name, of_sample))
        for of_rank in found[sample.index]:
            for kind, most in operators.items():
                for name in most:
                    most[name] = max(most[name], of_rank[kind][name])
    return TrainedWork(work, operators)
