"""Plans measured on this machine or simulated on a cluster, with their predictions."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from . import _core
from .arguments import (
    MOST_SEED,
    MOST_THREADS,
    bytes_of,
    flag_of,
    integer_of,
    names_of,
    path_of,
    text_of,
    to_text,
)
from .errors import InputError
from .executable_answer import Answer, answer_of, of_models, of_platform
from .messages import tell
from .plans import PlanCost, PlanLike, files_behind, plan_text


@dataclass(frozen=True)
class Evaluation:
    """A plan's computation measured on this machine, with its prediction."""

    predicted: PlanCost
    #: Computation measured, communication as the model predicts it for the measured computation.
    measured: PlanCost
    #: Per device: half-width of the 95 % interval, relative.
    interval: Sequence[float]
    #: Mean relative error of the predicted computation, over the devices that have pieces.
    compute_mape: float
    #: Kendall's rank correlation of predicted and measured computation; None where all devices are
    #: predicted, or measured, to be equal.
    compute_tau: float | None
    #: As `neuroshard evaluate -o` writes it.
    document: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    #: The files that the plan was read or made from; `write` does not replace them.
    read_from: Sequence[str] = field(default=(), repr=False, compare=False)
    #: With reference sets: what they took over what they take at the speed that the model's costs
    #: are of (median over the plan's devices), and the plan's measured cost at that speed.
    drift: float | None = None
    less_drift_ms: float | None = None
    #: What the plan is expected to cost when it runs, as devices that are planned alike differ; None
    #: where the model does not know by how much, or one device alone computes.
    expected_ms: float | None = None

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Writes it as a file that `Plan.report` and `neuroshard report --evaluation` take; over
        measured data, a journal or a model only by `force`, and never over the plan or what it was
        made from."""
        _write(self.document, path, self.read_from, force)


def _write(
    document: Mapping[str, Any],
    path: str | os.PathLike[str],
    read_from: Sequence[str],
    force: bool,
) -> None:
    text = to_text(document, "evaluation")
    _core.write_evaluation(
        text, path_of(path, "path"), list(read_from), flag_of(force, "force")
    )


@overload
def evaluate(
    plan: PlanLike,
    *,
    models: str | Sequence[str] = (),
    arena_bytes: int | str = 4 << 30,
    num_threads: int = 0,
    seed: int = 0,
    backend: str = "cpu",
    reference_sets: bool = False,
    platform: None = None,
) -> Evaluation: ...


@overload
def evaluate(
    plan: PlanLike, *, models: str | Sequence[str] = (), platform: str | os.PathLike[str]
) -> SimulatedIteration: ...


def evaluate(
    plan: PlanLike,
    *,
    models: str | Sequence[str] = (),
    arena_bytes: int | str = 4 << 30,
    num_threads: int = 0,
    seed: int = 0,
    backend: str = "cpu",
    reference_sets: bool = False,
    platform: str | os.PathLike[str] | None = None,
) -> Evaluation | SimulatedIteration:
    """Runs every device's pieces through the library's own operator on this machine or, with
    `backend` "cuda", on its GPUs. With `platform`, `evaluate_on_cluster`: nothing is measured.

    `models` default to those that the plan was made with. The tables lie in `arena_bytes` of
    memory, a number or a size such as "1GiB". With `reference_sets`, the sixteen sets that the
    model's samples were measured next to run all along, in the `arena_bytes` of these samples, and
    `less_drift_ms` is the plan's cost at the speed that the model's costs are of; the package's
    executable does it.

    >>> import warnings
    >>> from neuroshard import Plan, Shard, Table, Task, Topology, evaluate
    >>> task = Task([Table("user", 1000, 64, 3.0)], Topology(1, "1GiB"), batch_size=1024)
    >>> with warnings.catch_warnings(action="ignore"):  # this machine is not the models'
    ...     found = evaluate(
    ...         Plan(task, [Shard("user", 0, 64, device=0)]),
    ...         models=["analytic-a100-40gb", "analytic-a100-nvswitch"],
    ...         arena_bytes=64 << 20,
    ...     )
    >>> found.measured
    <PlanCost: ... ms, device 0 of 1 is the slowest>
    >>> found.measured.devices[0].compute_ms > 0
    True
    """
    arena = integer_of(bytes_of(arena_bytes, "arena_bytes"), "arena_bytes", 1 << 20, 1 << 60)
    num_threads = integer_of(num_threads, "num_threads", 0, MOST_THREADS)
    seed = integer_of(seed, "seed", 0, MOST_SEED)
    backend = text_of(backend, "backend")
    reference_sets = flag_of(reference_sets, "reference_sets")
    if platform is not None:
        if backend != "cpu":
            raise InputError("evaluate: platform simulates, backend measures: expected one of them")
        if reference_sets:
            raise InputError("evaluate: platform measures nothing, reference_sets need what does")
        where = path_of(platform, "platform")
        found, reasons, notes = _run_evaluate(plan, models, [of_platform(where)])
        tell(reasons, notes)
        return _simulated_iteration(found, files_behind(plan, platform))
    if backend != "cpu" or reference_sets:
        arguments = [f"--backend={backend}", "--arena", str(arena), "--seed", str(seed)]
        arguments += ["--threads", str(num_threads)] if num_threads != 0 else []
        arguments += ["--reference-sets"] if reference_sets else []
        found, reasons, notes = _run_evaluate(plan, models, arguments)
    else:
        text, reasons, notes = _core.evaluate(
            plan_text(plan), names_of(models, "models"), arena, num_threads, seed
        )
        found = json.loads(text)
    tell(reasons, notes)
    return Evaluation(
        predicted=_cost(found, "predicted"),
        measured=_cost(found, "measured"),
        interval=[device["interval"] for device in found["devices"]],
        compute_mape=found["compute_mape"],
        compute_tau=found["compute_tau"],
        document=found,
        read_from=files_behind(plan),
        drift=found.get("drift"),
        less_drift_ms=found.get("less_drift_ms"),
        expected_ms=found.get("expected_ms"),
    )


def _cost(evaluation: Mapping[str, Any], prefix: str) -> PlanCost:
    """The predicted or the measured cost of an evaluation's devices."""
    devices = [
        {
            "compute_ms": device[f"{prefix}_compute_ms"],
            "forward_comm_ms": device[f"{prefix}_forward_comm_ms"],
            "backward_comm_ms": device[f"{prefix}_backward_comm_ms"],
            "all_reduce_ms": device.get(f"{prefix}_all_reduce_ms", 0.0),
            "memory_bytes": device["memory_bytes"],
            "num_columns": device["num_columns"],
        }
        for device in evaluation["devices"]
    ]
    return PlanCost.from_dict({"cost_ms": evaluation[f"{prefix}_ms"], "devices": devices})


@dataclass(frozen=True)
class SimulatedDevice:
    """A device's part of a simulated iteration [ms]; its computation is as predicted."""

    compute_ms: float
    forward_comm_ms: float
    backward_comm_ms: float
    total_ms: float
    #: Of the gradients of replicated tables.
    all_reduce_ms: float = 0.0


@dataclass(frozen=True)
class SimulatedIteration:
    """One iteration of a plan: computation predicted, all-to-alls and all-reduces simulated."""

    predicted_ms: float
    simulated_ms: float
    devices: Sequence[SimulatedDevice]
    #: The device that enters the forward all-to-all last, `entered_ms` after the start.
    last_to_enter: int
    entered_ms: float
    #: The device that ends last.
    last_to_end: int
    #: As `neuroshard evaluate -o` writes it.
    document: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    #: The files that the plan was read or made from; `write` does not replace them.
    read_from: Sequence[str] = field(default=(), repr=False, compare=False)

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Writes it as a file that `Plan.report` and `neuroshard report --evaluation` take; over
        measured data, a journal or a model only by `force`, and never over the plan or what it was
        made from."""
        _write(self.document, path, self.read_from, force)


def _simulated_iteration(
    found: Mapping[str, Any], read_from: Sequence[str]
) -> SimulatedIteration:
    return SimulatedIteration(
        predicted_ms=found["predicted_ms"],
        simulated_ms=found["simulated_ms"],
        devices=[
            SimulatedDevice(
                compute_ms=device["predicted_compute_ms"],
                forward_comm_ms=device["simulated_forward_comm_ms"],
                backward_comm_ms=device["simulated_backward_comm_ms"],
                total_ms=device["simulated_total_ms"],
                all_reduce_ms=device.get("simulated_all_reduce_ms", 0.0),
            )
            for device in found["devices"]
        ],
        last_to_enter=found["last_to_enter"],
        entered_ms=found["entered_ms"],
        last_to_end=found["last_to_end"],
        document=found,
        read_from=read_from,
    )


def _run_evaluate(
    plan: PlanLike, models: str | Sequence[str], arguments: Sequence[str]
) -> Answer:
    text = plan_text(plan)
    with tempfile.TemporaryDirectory() as folder:
        _core.write_plan(text, os.path.join(folder, "plan.json"), [], False)
        command = ["evaluate", "plan.json", *arguments]
        command += of_models(names_of(models, "models"))
        return answer_of(command, folder, {"plan.json": "plan"})


def evaluate_on_cluster(
    plan: PlanLike, platform: str | os.PathLike[str], *, models: str | Sequence[str] = ()
) -> SimulatedIteration:
    """Simulates the plan's all-to-alls on a cluster: a preset (`ethernet-25g`, ...) or a SimGrid
    platform file (.xml).

    `models` default to those that the plan was made with. Runs the package's executable, as SimGrid
    simulates once per process.

    >>> from neuroshard import Plan, Shard, Table, Task, Topology, evaluate_on_cluster
    >>> task = Task([Table("user", 1000, 64, 3.0)], Topology(2, "1GiB", 1), batch_size=65536)
    >>> halves = Plan(task, [Shard("user", 0, 32, device=0), Shard("user", 32, 32, device=1)])
    >>> models = ["analytic-a100-40gb", "analytic-ethernet-25g"]
    >>> found = evaluate_on_cluster(halves, "ethernet-25g", models=models)
    >>> len(found.devices), found.simulated_ms > 0
    (2, True)
    """
    # Without one, `evaluate` would measure.
    return evaluate(plan, models=models, platform=path_of(platform, "platform"))
