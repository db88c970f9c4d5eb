#!/usr/bin/env python3
"""Plans of several algorithms, with the computation of FBGEMM's operator measured on one GPU.

    docs/experiments/fbgemm_gpu_plans.py plan FOLDER --neuroshard build/release/cli/neuroshard
    docs/experiments/fbgemm_gpu_plans.py measure FOLDER       where PyTorch, FBGEMM and the GPU are
    docs/experiments/fbgemm_gpu_plans.py report FOLDER [--others FOLDER]
    docs/experiments/fbgemm_gpu_plans.py widest FOLDER --neuroshard ... --models MODEL h100

`plan` makes tasks of `dlrm-2021` for 4 and for 8 devices and has each algorithm plan them, by the
model of FBGEMM's costs and, to compare, by that of our operator's. `measure` runs the set of pieces of
each device of each plan, device by device, on the one GPU; sets that several plans share run once.
`widest` prints how wrong a model (`--models`, the first) is about the shipped sets of plans, by their
widest piece. `report` prints costs: the slowest device's measured computation, and the all-to-alls as the plan's
prediction has them for its slowest device. It also takes what is in data/compute/fbgemm-h100, which
was measured of plans by an earlier model (fbgemm_gpu.md); with `--others`, what plans of the same
tasks in another folder are predicted at, relative to those that were measured.
"""

import argparse
import gzip
import json
import math
import shutil
import statistics
import subprocess
from pathlib import Path

SHIPPED = Path(__file__).parents[2] / "data" / "compute" / "fbgemm-h100"

#: Devices, tables of a task, seed: those of scripts/gpu/first_run.sh.
KINDS = [(4, "10:60", 1), (8, "20:120", 2)]
#: Name, number of the model, algorithm and cuts.
PLANS = [
    ("neuroshard", 0, ["--algorithm", "neuroshard"]),
    ("columns", 0, ["--algorithm", "neuroshard", "--cuts", "columns"]),
    ("beam-search", 0, ["--algorithm", "beam-search"]),
    ("torchrec-like", 0, ["--algorithm", "torchrec-like"]),
    ("greedy-lookup-size", 0, ["--algorithm", "greedy-lookup-size"]),
    ("neuroshard by ours", 1, ["--algorithm", "neuroshard"]),
]


def make_plans(options):
    def run(*words):
        command = [options.neuroshard, *map(str, words)]
        done = subprocess.run(command, stdout=subprocess.DEVNULL)
        if done.returncode not in (0, 1):  # 1: this algorithm finds no plan
            done.check_returncode()

    for devices, tables, seed in KINDS:
        tasks = options.folder / f"tasks-{devices}"
        if not tasks.exists():
            new = options.folder / f"tasks-{devices}.new"
            shutil.rmtree(new, ignore_errors=True)  # of a run that was killed
            run(
                "workload", "tasks", "dlrm-2021", "--count", options.count, "--tables", tables,
                "--devices", devices, "--memory", "16GiB", "--batch-size", options.batch_size,
                "--interconnect", "h100-nvswitch", "--seed", seed, "-o", new,
            )  # fmt: skip
            new.rename(tasks)
        for task in sorted(tasks.glob("*.json")):
            for name, model, words in PLANS:
                output = options.folder / f"plans-{devices}" / task.stem / f"{name}.json"
                output.parent.mkdir(parents=True, exist_ok=True)
                if not output.exists():
                    run(
                        "plan", task, *words, "--model", options.models[model], "--model", "h100-nvswitch",
                        "--quiet", "-o", output,
                    )  # fmt: skip


def read_plans(folder):
    """For each kind and task, the plans by name: the file's content, and the sets of pieces of each
    device with the batch size that they see: its shards, and replicated tables with their share of
    the batch."""
    for devices, *_ in KINDS:
        for task in sorted((folder / f"plans-{devices}").iterdir()):
            plans = {}
            for name, *_ in PLANS:
                path = task / f"{name}.json"
                if not path.exists():
                    continue
                content = json.loads(path.read_text())
                tables = {table["name"]: i for i, table in enumerate(content["task"]["tables"])}
                sets = [[] for _ in range(devices)]
                for shard in content["shards"]:
                    table = content["task"]["tables"][tables[shard["table"]]]
                    columns = shard.get("num_columns", table["embedding_dim"])
                    share = shard.get("num_rows", table["num_embeddings"]) / table["num_embeddings"]
                    sets[shard["device"]].append((tables[shard["table"]], columns, share))
                batch = content["task"]["batch_size"]
                of = [[(batch, tuple(sorted(pieces)))] if pieces else [] for pieces in sets]
                copies = content.get("replicated_tables", [])
                if copies:
                    every = content["task"]["tables"]
                    numbers = sorted(tables[table] for table in copies)
                    whole = tuple((i, every[i]["embedding_dim"], 1.0) for i in numbers)
                    for each in of:
                        each.append((batch // devices, whole))
                plans[name] = content, of
            yield devices, task.name, plans


def measure(options):
    import torch

    from neuroshard import _core
    from neuroshard import collect as collecting

    given = collecting.parser().parse_args(
        ["--device", options.device, "--memory", options.memory, "--sets", "plans", "--planned-by", "h100",
         "--in-flight", "64", "-o", "-"]
    )  # fmt: skip
    device = collecting.Device(given)
    hardware = json.dumps(collecting.hardware_of(options.device))
    quantile = collecting.quantile_of(given)
    made_by = {
        "name": "fbgemm-split-tbe",
        "version": collecting.installed_versions().get("fbgemm-gpu", "unknown"),
        "num_threads": torch.get_num_threads(),
        "quantile": quantile,
        "in_flight": given.in_flight,
        "arena_bytes": given.memory,
    }
    (options.folder / "costs").mkdir(exist_ok=True)
    for devices, name, plans in read_plans(options.folder):
        sets = {each for _, of in plans.values() for device_sets in of for each in device_sets}
        task = next(iter(plans.values()))[0]["task"]
        for batch in sorted({batch for batch, _ in sets}):
            some = sorted(pieces for of_batch, pieces in sets if of_batch == batch)
            text = json.dumps(task | {"batch_size": batch})
            collection = _core.Collection(text, "dlrm-2021", [], 1, 1, 1 << 40, 0.0, 0)
            collection.give([list(pieces) for pieces in some], "plans", "fbgemm_gpu_plans.py")
            path = options.folder / "costs" / f"{devices}-{name}-b{batch}.jsonl"
            _core.collect(
                [(collection, str(path))], len(some), hardware, json.dumps(made_by),
                quantile, options.device != "cpu", given.in_flight, lambda: device, lambda *_: None,
            )  # fmt: skip
        print(f"{devices} devices, {name}: {len(sets)} sets", flush=True)


def samples_of(path):
    """The measured ones of a file of costs, with its batch size and optimizer."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    header, *lines = map(json.loads, content.decode().splitlines())
    return header, [sample for sample in lines if "forward_ms" in sample]


def widest(options):
    options.folder.mkdir(parents=True, exist_ok=True)
    errors_of = options.folder / "samples.jsonl"
    files = sorted(SHIPPED.glob("tasks-*-b65536.jsonl.gz"))
    subprocess.run(
        [options.neuroshard, "model", "test", options.models[0], *files, "--samples", errors_of],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    columns = {
        (path.name, sample["index"]): max(shard[1] for shard in sample["shards"])
        for path in files
        for sample in samples_of(path)[1]
    }
    by_class = {}
    for line in errors_of.read_text().splitlines():
        error = json.loads(line)
        if error["measured_ms"] >= 0.5:
            of = columns[Path(error["file"]).name, error["index"]]
            bound = next(bound for bound in (32, 64, 128, 1024) if of <= bound)
            ratio = error["measured_ms"] / error["predicted_ms"]
            by_class.setdefault(bound, []).append(math.log(ratio))
    print("| widest piece, up to | sets | log of measured over predicted: mean | deviation |")
    print("|---|---|---|---|")
    for bound, logs in sorted(by_class.items()):
        print(
            f"| {bound} | {len(logs)} | {statistics.mean(logs):.2f} | {statistics.pstdev(logs):.2f} |"
        )


def report(options):
    ratios, gaps, errors, others = {}, {}, {}, {}
    elsewhere = {}
    if options.others:
        for devices, name, plans in read_plans(options.others):
            for plan, (content, _) in plans.items():
                elsewhere[devices, name, plan] = content["predicted"]["cost_ms"]
    for devices, name, plans in read_plans(options.folder):
        measured = {}
        files = list((options.folder / "costs").glob(f"{devices}-{name}-b*.jsonl"))
        for path in files or SHIPPED.glob(f"tasks-{devices}-{name}-b*.jsonl.gz"):
            header, samples = samples_of(path)
            for sample in samples:
                pieces = tuple(sorted((*shard, 1.0)[:3] for shard in sample["shards"]))
                key = header["batch_size"], pieces
                measured[key] = sample["forward_ms"] + sample["backward_ms"]
        costs = {}
        for plan, (content, sets) in plans.items():
            if any(each not in measured for of_device in sets for each in of_device):
                continue
            predicted = content["predicted"]
            times = [sum(measured[each] for each in of_device) for of_device in sets]
            slowest = max(predicted["devices"], key=lambda each: each["compute_ms"])
            costs[plan] = max(times) + predicted["cost_ms"] - slowest["compute_ms"]
            gaps.setdefault((devices, plan), []).append(abs(predicted["cost_ms"] / costs[plan] - 1))
            for each, time in zip(predicted["devices"], times):
                if time:
                    errors.setdefault((devices, plan), []).append(abs(each["compute_ms"] / time - 1))
        for plan, cost in costs.items():
            if (devices, name, plan) in elsewhere:
                ratio = elsewhere[devices, name, plan] / cost
                others.setdefault((devices, plan), []).append(ratio)
        if "columns" not in costs:
            continue
        for plan, cost in costs.items():
            ratios.setdefault((devices, plan), []).append(cost / costs["columns"])
            if plan != "neuroshard" and "neuroshard" in costs:
                key = devices, f"neuroshard to {plan}"
                ratios.setdefault(key, []).append(costs["neuroshard"] / cost)
    for (devices, plan), values in others.items():
        print(
            f"{plan}, {devices} devices: predicted elsewhere at {statistics.mean(values):.3f} "
            f"({min(values):.3f} to {max(values):.3f}) of its measured cost"
        )
    print("| devices | tasks | plans | to columns alone: mean, best, worst | gap | error of devices |")
    print("|---|---|---|---|---|---|")
    for (devices, plan), values in ratios.items():
        key = devices, plan
        gap = f"{statistics.mean(gaps[key]):.1%}" if key in gaps else ""
        error = f"{statistics.mean(errors[key]):.1%}" if key in errors else ""
        print(
            f"| {devices} | {len(values)} | {plan} | {statistics.mean(values):.3f}, "
            f"{min(values):.3f}, {max(values):.3f} | {gap} | {error} |"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("verb", choices=["plan", "measure", "report", "widest"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--neuroshard", default="neuroshard")
    parser.add_argument("--count", type=int, default=8, help="tasks for each number of devices")
    parser.add_argument("--batch-size", type=int, default=65536)
    parser.add_argument("--others", type=Path, help="report: a folder of other plans")
    parser.add_argument("--device", default="cuda", help="cuda, or cpu to try it")
    parser.add_argument("--memory", default="20GiB", help="of the tables that are measured")
    parser.add_argument("--models", nargs=2, default=["fbgemm-h100", "h100"], help="of FBGEMM, and ours")
    given = parser.parse_args()
    verbs = {"plan": make_plans, "measure": measure, "report": report, "widest": widest}
    verbs[given.verb](given)
