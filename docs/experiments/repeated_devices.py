#!/usr/bin/env python3
"""How much of what the devices of plans differ from their prediction comes back when they are measured again.

    docs/experiments/repeated_devices.py FOLDER PLAN... --neuroshard build/release/cli/neuroshard

evaluates each plan `--runs` times, next to the reference sets of its computation model, with other
seeds for the batches and the places of the tables, all plans once before any twice. FOLDER keeps the
evaluations, so that a run that was stopped goes on. Of the logarithms of measured over predicted
computation, at the model's speed and less their mean over the devices of a run, printed are: the
standard deviation in one run, the part of it that comes back in every run (the root of the mean
product of two runs; of zero mean if nothing does), and what is left, which is the measurement's or
the machine's. Then how far predicted costs are from those of one run, where the slowest of the
devices as they came out decides, and from those of the medians over the runs.
"""

import argparse
import itertools
import json
import math
import statistics
import subprocess
from pathlib import Path


def deviations(evaluation: dict) -> list[float]:
    """Of each device that computes, less the mean."""
    logs = [
        math.log(device["less_drift_compute_ms"] / device["predicted_compute_ms"])
        for device in evaluation["devices"]
        if device["predicted_compute_ms"] > 0
    ]
    mean = statistics.mean(logs)
    return [log - mean for log in logs]


def gap(runs: list[dict]) -> float:
    """Predicted over measured cost, less 1, by each device's median computation in these runs.

    What the devices do not compute is taken as predicted for the one that computes longest."""
    devices = range(len(runs[0]["devices"]))
    measured = max(
        statistics.median(run["devices"][d]["less_drift_compute_ms"] for run in runs)
        for d in devices
    )
    longest = max(device["predicted_compute_ms"] for device in runs[0]["devices"])
    predicted = runs[0]["predicted_ms"]
    return predicted / (measured + predicted - longest) - 1


def mean_device(runs: list[dict]) -> float:
    """Predicted over measured computation of the mean device, less 1."""
    return statistics.mean(
        sum(device["predicted_compute_ms"] for device in run["devices"])
        / sum(device["less_drift_compute_ms"] for device in run["devices"])
        for run in runs
    ) - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("plans", nargs="+", type=Path)
    parser.add_argument("--neuroshard", default="neuroshard")
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--arena", default="4GiB")
    options = parser.parse_args()
    if options.runs < 2:
        parser.error(f"--runs: expected at least 2, got {options.runs}")
    options.folder.mkdir(parents=True, exist_ok=True)
    runs: dict[Path, list[dict]] = {plan: [] for plan in options.plans}
    for seed in range(1, options.runs + 1):
        for plan in options.plans:
            output = options.folder / f"{plan.stem}-{seed}.json"
            if not output.exists():
                command = [options.neuroshard, "evaluate", plan, "--reference-sets", "--quiet"]
                command += ["--arena", options.arena, "--seed", seed, "-o", output]
                subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
            runs[plan].append(json.loads(output.read_text()))

    total, again = [], []
    for of_plan in runs.values():
        of_runs = [deviations(run) for run in of_plan]
        free = len(of_runs[0]) - 1  # the mean is taken from them
        if free == 0:
            continue
        total += [sum(x * x for x in run) / free for run in of_runs]
        again += [
            sum(x * y for x, y in zip(one, other)) / free
            for one, other in itertools.combinations(of_runs, 2)
        ]
    variance, repeated = statistics.mean(total), statistics.mean(again)
    left = math.sqrt(max(variance - repeated, 0.0))
    print(f"{len(runs)} plans, {options.runs} runs each")
    print(f"devices of a plan in one run: standard deviation {math.sqrt(variance):.1%}")
    print(f"  comes back in every run {math.sqrt(max(repeated, 0.0)):.1%}, does not {left:.1%}")
    one = [gap([run]) for of_plan in runs.values() for run in of_plan]
    medians = [gap(of_plan) for of_plan in runs.values()]
    for name, gaps in (("one run", one), ("medians", medians)):
        size = statistics.mean(map(abs, gaps))
        print(f"predicted against {name}: {statistics.mean(gaps):+.1%}, of its size {size:.1%}")
    mean = statistics.mean(map(mean_device, runs.values()))
    print(f"predicted against measured computation of the mean device: {mean:+.1%}")


if __name__ == "__main__":
    main()
