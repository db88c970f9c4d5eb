#!/usr/bin/env python3
"""Plans of all algorithms on fresh tasks, with measured computation and simulated all-to-alls.

    docs/experiments/fresh_tasks.py FOLDER --neuroshard build/release/cli/neuroshard --model MODEL

makes `--count` tasks of each of six kinds (bound by computation, by communication, and with tables
that fill 90 to 98 % of the memory, on 4 and 8 devices), has `neuroshard compare --measure` plan and
measure them, and measures a random tenth of all tasks again, three times, with other seeds for the
plans, the batches and the places of the tables. Which tasks that are follows from the seed alone,
before anything is measured. Everything is kept in FOLDER, so that a run that was stopped goes on
where it was; a folder that was made with other options is refused. Printed, as tables: ratios of
costs to the paper's search (`beam-search`), raw gaps between predicted and measured, how the measured
computation of `neuroshard`'s devices scatters, and the tasks that were measured again. With
`--reference-sets`, for a model of samples with reference sets, the gap at the speed of its samples
too, `less drift`.
"""

import argparse
import json
import random
import shutil
import statistics
import subprocess
from pathlib import Path

from kept_options import keep_options, model_of

REFERENCE = "beam-search"
SEARCHES = ["neuroshard", "neuroshard:columns", REFERENCE, "torchrec-like"]
GREEDY = ["greedy-size", "greedy-dim", "greedy-lookup", "greedy-lookup-size", "random"]
# What makes tasks of a kind, the cluster that is simulated, and the algorithms.
KINDS = {
    "computation": (["--interconnect", "pcie4"], "pcie4", SEARCHES + GREEDY),
    "communication": (
        ["--interconnect", "ethernet-10g", "--local-devices", 1, "--max-pooling-factor", 5],
        "ethernet-10g",
        SEARCHES,
    ),
    "memory": (["--interconnect", "pcie4", "--fill", "0.90:0.98"], "pcie4", SEARCHES),
}
TABLES = {4: "10:60", 8: "20:120"}


def run(options: argparse.Namespace, *words: object) -> None:
    command = [str(word) for word in (options.neuroshard, *words)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def compared(
    options: argparse.Namespace, kind: str, output: Path, tasks: list[Path], seed: int
) -> list[dict]:
    """The entries of a comparison, one for each task and algorithm; from `output` if it is there."""
    _, platform, algorithms = KINDS[kind]
    if not output.exists():
        models = [word for model in options.model for word in ("--model", model)]
        run(
            options, "compare", *tasks, "--algorithms", ",".join(algorithms), *models,
            "--measure", "--arena", options.arena, "--platform", platform,
            "--relative-to", REFERENCE, "--seed", seed, "--quiet",
            *(["--reference-sets"] if options.reference_sets else []),
            "--journal", output.with_suffix(".journal.jsonl"), "-o", output,
        )  # fmt: skip
    return json.loads(output.read_text())["entries"]


def costs(entries: list[dict], tasks: int) -> dict[str, list[dict | None]]:
    """Of each algorithm, its entry of each task, or None where it has no plan."""
    of = {}
    for entry in entries:
        of.setdefault(entry["algorithm"], []).append(entry if entry["found"] else None)
    assert all(len(found) == tasks for found in of.values())
    return of


def ratios(
    of: dict[str, list[dict | None]], algorithm: str, to: str = REFERENCE
) -> list[float | None]:
    return [
        entry["measured_ms"] / reference["measured_ms"] if entry and reference else None
        for entry, reference in zip(of[algorithm], of[to])
    ]


def known(values: list[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def print_head(of: dict[str, list[dict | None]], less_drift: bool) -> None:
    """Expected costs are there by a model that knows how far devices differ."""
    has_expected = any(entry and "expected_ms" in entry for entry in of[SEARCHES[0]])
    gaps = ["gap", "expected gap"] if has_expected else ["gap"]
    titles = ["tasks", "algorithm", "solved", "ratio", "least", "most", "above 1.02"]
    for gap in gaps:
        titles.append(gap)
        if less_drift:
            titles.append("less drift" if gap == "gap" else "expected, less drift")
    print("| " + " | ".join(titles) + " |")
    print("|---" * len(titles) + "|")


def print_kind(name: str, of: dict[str, list[dict | None]]) -> None:
    for algorithm, entries in of.items():
        found = [entry for entry in entries if entry]
        to_reference = known(ratios(of, algorithm))
        gaps = [
            [abs(entry[cost] / entry[field] - 1) for entry in found]
            for cost in ("predicted_ms", "expected_ms")
            for field in ("measured_ms", "less_drift_ms")
            if all(cost in entry and field in entry for entry in found)
        ]
        print(
            f"| {name} | {algorithm} | {len(found)} of {len(entries)} "
            f"| {statistics.mean(to_reference):.3f} | {min(to_reference):.3f} "
            f"| {max(to_reference):.3f} | {sum(ratio > 1.02 for ratio in to_reference)} "
            + " ".join(f"| {statistics.mean(each):.1%}" for each in gaps)
            + " |",
            flush=True,
        )


def print_devices(name: str, entries: list[dict | None]) -> None:
    """Measured computation over that predicted for the slowest device: of the mean and of the slowest.

    What is left of the predicted cost without the measured cost's all-to-alls is that prediction."""
    mean, slowest, spread = [], [], []
    for entry in filter(None, entries):
        devices = entry["device_compute_ms"]
        all_to_alls_ms = entry["measured_ms"] - entry["measured_compute_ms"]
        predicted_ms = entry["predicted_ms"] - all_to_alls_ms
        mean.append(statistics.mean(devices) / predicted_ms)
        slowest.append(entry["measured_compute_ms"] / predicted_ms)
        spread.append(statistics.pstdev(devices) / statistics.mean(devices))
    print(
        f"| {name} | {statistics.mean(mean):.3f} | {statistics.mean(slowest):.3f} "
        f"| {statistics.mean(spread):.1%} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--neuroshard", default="neuroshard")
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--workload", default="dlrm-2022")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--batch-size", type=int, default=4096)
    parser.add_argument("--arena", default="4GiB")
    parser.add_argument("--seed", type=int, default=300)
    parser.add_argument("--reference-sets", action="store_true")
    options = parser.parse_args()
    keep_options(
        options.folder,
        {
            "script": "fresh_tasks.py",
            "workload": options.workload,
            "model": [model_of(model) for model in options.model],
            "count": options.count,
            "batch_size": options.batch_size,
            "arena": options.arena,
            "seed": options.seed,
            **({"reference_sets": True} if options.reference_sets else {}),
        },
    )

    cases = {f"{kind}-{devices}": (kind, devices) for kind in KINDS for devices in TABLES}
    files = {}
    for number, (name, (kind, devices)) in enumerate(cases.items()):
        tasks = options.folder / name
        if not tasks.exists():
            new = options.folder / f"{name}.new"
            shutil.rmtree(new, ignore_errors=True)  # of a run that was killed
            run(
                options, "workload", "tasks", options.workload, "--count", options.count,
                "--tables", TABLES[devices], "--devices", devices, "--memory", "8GiB",
                "--batch-size", options.batch_size, "--seed", options.seed + number,
                *KINDS[kind][0], "--quiet", "-o", new,
            )  # fmt: skip
            new.rename(tasks)
        files[name] = sorted(tasks.glob("*.json"))
    everything = [(name, task) for name in cases for task in range(options.count)]
    again = random.Random(options.seed).sample(everything, len(everything) // 10)

    first = {}
    for name, (kind, _) in cases.items():
        output = options.folder / f"{name}.json"
        first[name] = costs(compared(options, kind, output, files[name], 0), options.count)
        if len(first) == 1:
            print_head(first[name], options.reference_sets)
        print_kind(name, first[name])

    print(f"\n| tasks | {SEARCHES[0]} to | ratio | most | above 1.02 |")
    print("|---|---|---|---|---|")
    for name, of in first.items():
        for other in of:
            if other not in (SEARCHES[0], REFERENCE):
                values = known(ratios(of, SEARCHES[0], other))
                print(
                    f"| {name} | {other} | {statistics.mean(values):.3f} | {max(values):.3f} "
                    f"| {sum(value > 1.02 for value in values)} |"
                )

    print(f"\n| tasks, {SEARCHES[0]} | mean device | slowest device | spread |")
    print("|---|---|---|---|")
    for name, (kind, _) in cases.items():
        if kind != "communication":  # there computation is not what plans even out
            print_devices(name, first[name][SEARCHES[0]])

    print("\n| task, of a random tenth | algorithm | ratio | again: median of three |")
    print("|---|---|---|---|")
    changes = []
    for name, (kind, _) in cases.items():
        chosen = sorted(task for of, task in again if of == name)
        if not chosen:
            continue
        repeated = [
            costs(
                compared(
                    options, kind, options.folder / f"{name}-again-{seed}.json",
                    [files[name][task] for task in chosen], seed,
                ),
                len(chosen),
            )
            for seed in (1, 2, 3)
        ]  # fmt: skip
        for algorithm in SEARCHES[:2]:
            before = ratios(first[name], algorithm)
            for place, task in enumerate(chosen):
                values = known([ratios(of, algorithm)[place] for of in repeated])
                if before[task] is None or not values:
                    continue
                changes.append(statistics.median(values) / before[task] - 1)
                print(
                    f"| {name}/{files[name][task].stem} | {algorithm} | {before[task]:.3f} "
                    f"| {statistics.median(values):.3f} |",
                    flush=True,
                )
    print(f"\nmean change of a ratio: {statistics.mean(changes):+.1%}, of its size "
          f"{statistics.mean(map(abs, changes)):.1%}")  # fmt: skip


if __name__ == "__main__":
    main()
