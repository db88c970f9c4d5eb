#!/usr/bin/env python3
"""Measured against predicted computation of plans of the published workloads.

    docs/experiments/stock_workloads.py NEUROSHARD --model MODEL [--model MODEL] [WORKLOAD ...]

Each workload is planned for 1, 2, 4, 8 and 16 devices of enough memory, at its own batch size or,
where the passes of all its tables together would move more than --most-gigabytes, at the largest
power of two below at which they do not. `neuroshard evaluate` then measures every device's tables
on this machine. Printed are sums over the devices of a plan, and the slowest device; with
--reference-sets, for a model of samples with reference sets, also at the speed of these samples.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

WORKLOADS = [
    "mlperf-dlrm-dcnv2",
    "hugectr-7table-470b-hotness20",
    "hugectr-180table-70b-hotness80",
    "hugectr-200table-100b-hotness20",
    "hugectr-510table-110b-hotness5",
    "criteo-kaggle",
    "criteo-terabyte-40m",
    "criteo-terabyte",
    "dlrm-2021",
    "dlrm-2022",
]


def run(*arguments):
    """Standard output; the program's own message where it fails."""
    done = subprocess.run([str(each) for each in arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    return done.stdout


def bytes_of_sample(tables):
    """What a sample's lookups read and its pooled outputs write."""
    return sum(
        4 * table["embedding_dim"] * (table["pooling_factor"] + 1) + 8 * table["pooling_factor"]
        for table in tables
    )


def feasible_batch(task, most_bytes):
    """The task's batch size, or the largest power of two that moves no more than `most_bytes`."""
    batch = task["batch_size"]
    if batch * bytes_of_sample(task["tables"]) <= most_bytes:
        return batch
    power = 1
    while 2 * power <= batch and 2 * power * bytes_of_sample(task["tables"]) <= most_bytes:
        power *= 2
    return power


def evaluated(options, task, devices, folder):
    """The plan's devices as `neuroshard evaluate --json` prints them."""
    task["topology"] = {
        "world_size": devices,
        "local_world_size": min(devices, 8),
        "memory_bytes": 1 << 46,
        "interconnect": "a100-nvswitch",
    }
    task_file, plan_file = folder / "task.json", folder / "plan.json"
    task_file.write_text(json.dumps(task))
    models = [word for model in options.model for word in ("--model", model)]
    run(options.neuroshard, "plan", task_file, "-o", plan_file, *models)
    more = ["--reference-sets"] if options.reference_sets else []
    return json.loads(run(options.neuroshard, "evaluate", plan_file, "--json", *more))["devices"]


def errors(predicted, measured):
    """Cells: of the sums, of the slowest devices."""
    return (
        f"{100 * (sum(predicted) / sum(measured) - 1):+.1f} % "
        f"| {100 * (max(predicted) / max(measured) - 1):+.1f} %"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("neuroshard", help="executable")
    parser.add_argument("workloads", nargs="*", default=WORKLOADS)
    parser.add_argument("--model", action="append", required=True)
    parser.add_argument("--devices", default="1,2,4,8,16")
    parser.add_argument("--most-gigabytes", type=float, default=10.0)
    parser.add_argument("--reference-sets", action="store_true")
    options = parser.parse_intermixed_args()
    titles = ["workload", "batch", "devices", "predicted ms", "measured ms", "error"]
    titles += ["slowest device"]
    if options.reference_sets:
        titles += ["less drift: error", "slowest device"]
    print(f"| {' | '.join(titles)} |")
    print("|---" * len(titles) + "|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for workload in options.workloads:
            exported = folder / "workload.json"
            run(options.neuroshard, "workload", "export", workload, "-o", exported)
            task = json.loads(exported.read_text())
            own_batch = task["batch_size"]
            task["batch_size"] = feasible_batch(task, 1e9 * options.most_gigabytes)
            for devices in map(int, options.devices.split(",")):
                rows = evaluated(options, task, devices, folder)
                predicted = [row["predicted_compute_ms"] for row in rows]
                measured = [row["measured_compute_ms"] for row in rows]
                batch = task["batch_size"]
                less_drift = ""
                if options.reference_sets:
                    usual = [row["less_drift_compute_ms"] for row in rows]
                    less_drift = f" {errors(predicted, usual)} |"
                print(
                    f"| {workload} | {batch:,}{'' if batch == own_batch else f' of {own_batch:,}'} "
                    f"| {devices} | {sum(predicted):.1f} | {sum(measured):.1f} "
                    f"| {errors(predicted, measured)} |{less_drift}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
