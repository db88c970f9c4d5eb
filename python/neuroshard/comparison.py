"""Algorithms compared on many tasks, by predicted and by measured cost."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from . import _core
from .arguments import (
    bytes_of,
    flag_of,
    integer_of,
    items_of,
    names_of,
    path_of,
    text_of,
    to_text,
)
from .errors import InputError
from .executable_answer import Answer, answer_of, of_files, of_models, of_platform, with_names
from .messages import tell
from .search_options import SearchOptions, options_arguments, options_json
from .types import TaskLike, tasks_of


@dataclass(frozen=True)
class ComparisonEntry:
    """One algorithm's result on one task."""

    task: str
    algorithm: str
    found: bool
    wall_ms: float
    reason: str = ""
    #: That its plan may have; None in journals of versions that knew columns alone.
    cuts: Sequence[str] | None = None
    predicted_ms: float | None = None
    measured_ms: float | None = None
    measured_compute_ms: float | None = None
    #: Mean relative error of the predicted computation; 0.05 is 5 %.
    compute_mape: float | None = None
    #: With controls: their cost now over their cost then, the median; with reference sets: what
    #: they took over what they take at the speed that the model's costs are of.
    drift: float | None = None
    #: As `measured_ms`, the measured computation without the drift.
    less_drift_ms: float | None = None
    device_columns: Sequence[int] = ()
    device_compute_ms: Sequence[float] = ()
    #: If measured: bytes of the all-reduce of replicated tables on each device, and the predicted
    #: time of adding up partial sums of slices of rows.
    all_reduce_bytes: int = 0
    partial_sums_ms: float = 0.0
    #: As `device_compute_ms`, without the drift.
    device_less_drift_ms: Sequence[float] = ()
    #: What the plan is expected to cost when it runs, as devices that are planned alike differ; None
    #: where the model does not know by how much, or one device alone computes.
    expected_ms: float | None = None
    #: About its plan's prediction, beyond what is said of the task.
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class ComparisonSummary:
    """One algorithm over all tasks; mean costs are over those that every algorithm solved."""

    algorithm: str
    tasks: int
    solved: int
    common: int
    wins: int
    #: None where no task was solved by all.
    mean_predicted_ms: float | None
    mean_wall_ms: float
    #: That its plans may have, on any of the tasks.
    cuts: Sequence[str] | None = None
    mean_measured_ms: float | None = None
    mean_measured_compute_ms: float | None = None
    measured_wins: int | None = None
    #: Mean of |predicted / measured - 1|.
    mean_gap: float | None = None
    #: The same with the measured cost without the machine's drift, over tasks measured with
    #: controls.
    mean_gap_less_drift: float | None = None
    #: Both of the expected cost in place of the predicted one, over tasks that have it.
    mean_expected_gap: float | None = None
    mean_expected_gap_less_drift: float | None = None
    #: Cost over that of the reference's plan, over the tasks that both solved.
    mean_ratio: float | None = None
    worst_ratio: float | None = None


@dataclass(frozen=True)
class Comparison:
    """Every algorithm on every task."""

    entries: Sequence[ComparisonEntry]
    summary: Sequence[ComparisonSummary]
    #: What of the tasks lies outside of what the models were trained on, a sentence each.
    warnings: Sequence[str] = ()
    #: The name of the model of the all-to-alls (of the first task).
    communication_model: str = ""
    #: True if that was learned from a simulation: "pre-trained (simulated)".
    communication_is_simulated: bool = False


def compare(
    tasks: Mapping[str, TaskLike] | Sequence[TaskLike] | TaskLike,
    *,
    models: str | Sequence[str] = (),
    algorithms: str | Sequence[str] = (),
    reference: str = "",
    measure: bool = False,
    arena_bytes: int | str = 4 << 30,
    controls: Sequence[str | os.PathLike[str]] = (),
    reference_sets: bool = False,
    journal: str | os.PathLike[str] | None = None,
    platform: str | os.PathLike[str] | None = None,
    backend: str = "cpu",
    **options: Unpack[SearchOptions],
) -> Comparison:
    """Runs the algorithms (all, if none is named) on the tasks; ratios are to the algorithm
    `reference`. The search's options are those of `plan`; "neuroshard:columns+rows" is an algorithm
    with cuts of its own.

    With `measure`, the computation of every plan is measured on this machine, the tables lying in
    `arena_bytes` of memory, a number or a size such as "1GiB". `controls` are files of costs
    measured earlier, some samples of which are measured again with the plans, to show how the
    machine's speed has changed; `reference_sets` shows it by the sixteen sets that the model's
    samples were measured next to, with the `arena_bytes` of these. `journal` is a file of results task by task (.jsonl), with which a
    run that was stopped goes on.

    `platform` simulates the all-to-alls of measured plans on a cluster, as of `evaluate`; `backend`
    "cuda" measures on GPUs. Either, and `reference_sets`, is done by the package's executable, to
    which a journal then belongs.

    >>> from neuroshard import Table, Task, Topology, compare
    >>> task = Task([Table("user", 1000, 64, 3.0)], Topology(2, "1GiB"), batch_size=65536)
    >>> found = compare(
    ...     {"tiny": task},
    ...     algorithms=["neuroshard", "greedy-size"],
    ...     models=["analytic-a100-40gb", "analytic-a100-nvswitch"],
    ... )
    >>> [(entry.task, entry.algorithm, entry.found) for entry in found.entries]
    [('tiny', 'neuroshard', True), ('tiny', 'greedy-size', True)]
    >>> found.summary[0].mean_predicted_ms <= found.summary[1].mean_predicted_ms
    True
    """
    measure = flag_of(measure, "measure")
    reference_sets = flag_of(reference_sets, "reference_sets")
    arena = integer_of(bytes_of(arena_bytes, "arena_bytes"), "arena_bytes", 1 << 20, 1 << 60)
    reference = text_of(reference, "reference")
    backend = text_of(backend, "backend")
    journal = None if journal is None else path_of(journal, "journal")
    files = [
        path_of(file, f"controls[{number}]")
        for number, file in enumerate(items_of(controls, "controls", "a list of files"))
    ]
    texts = tasks_of(tasks)
    if platform is not None or backend != "cpu" or reference_sets:
        if not measure:
            raise InputError(
                "compare: platform, backend and reference_sets need measure=True"
            )
        arguments = [*options_arguments(options, "compare"), "--measure"]
        arguments += [f"--arena={arena}", f"--backend={backend}"]
        arguments += [f"--relative-to={reference}"] if reference else []
        if names := names_of(algorithms, "algorithms"):
            arguments += [f"--algorithms={','.join(names)}"]
        arguments += of_models(names_of(models, "models"))
        arguments += of_files("--controls", files)
        arguments += ["--reference-sets"] if reference_sets else []
        arguments += of_files("--journal", [] if journal is None else [journal])
        if platform is not None:
            arguments.append(of_platform(path_of(platform, "platform")))
        found, reasons, notes = _run_compare(texts, arguments)
        tell(reasons, notes)
        return _comparison(found)
    text = _core.compare(
        list(texts.items()),
        names_of(models, "models"),
        names_of(algorithms, "algorithms"),
        to_text(options_json(options, "compare"), "compare"),
        arena if measure else 0,
        reference,
        journal or "",
        files,
    )
    found = json.loads(text)
    tell(found["warnings"], [])
    return _comparison(found)


def _run_compare(texts: Mapping[str, str], arguments: Sequence[str]) -> Answer:
    # The files' names and places are the same in each run, as a journal refers to them.
    names = {f"task-{number:06}.json": name for number, name in enumerate(texts)}
    with tempfile.TemporaryDirectory() as folder:
        for file, text in zip(names, texts.values()):
            Path(folder, file).write_text(text, encoding="utf-8")
        answer = answer_of(["compare", *names, *arguments], folder, names)
    for entry in answer.found["entries"]:
        entry["task"] = names[entry["task"]]
    answer.found["warnings"] = [with_names(line, names) for line in answer.found["warnings"]]
    return answer


def _comparison(found: Mapping[str, Any]) -> Comparison:
    return Comparison(
        entries=[ComparisonEntry(**entry) for entry in found["entries"]],
        summary=[ComparisonSummary(**line) for line in found["summary"]],
        warnings=found["warnings"],
        communication_model=found["communication_model"],
        communication_is_simulated=found["communication_is_simulated"],
    )
