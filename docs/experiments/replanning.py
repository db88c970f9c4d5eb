#!/usr/bin/env python3
"""Plans again after a tenth of the tables changed: everything, nothing, or little moved.

    docs/experiments/replanning.py FOLDER --neuroshard build/release/cli/neuroshard [--measure]

makes `--tasks` tasks and their plans, changes a tenth of each task's tables (added, dropped, grown,
drifted: as many of each), and plans each changed task three times: `kept`, from the old plan with
nothing moved (`--max-move 0`; the new tables alone are placed), `limited`, from the old plan with
`--max-move`, and `anew`, from nothing. Where grown tables have no room, `kept` moves the least of 1,
2, 5 and 10 % that makes a plan. Prints per task, and over all, which share of the gain of
planning anew the limited plan has, and the bytes that each moves. With `--measure` each plan's
computation is measured on this machine too, `--rounds` times: in each round the three plans one
after another, every round in another order, and the median counts. Everything is kept in FOLDER, so
that a run that was stopped goes on where it was; a folder that was made with other options is
refused.
"""

import argparse
import json
import random
import shutil
import statistics
import subprocess
from pathlib import Path

from kept_options import keep_options, model_of

KINDS = ("added", "dropped", "grown", "drifted")
PLANS = ("kept", "limited", "anew")


def run(*command: object) -> str:
    return subprocess.run(
        [str(word) for word in command], check=True, capture_output=True, text=True
    ).stdout


def make_tasks(options: argparse.Namespace) -> list[Path]:
    """Half of them on 4 devices, half on 8; each list of tables has twice as many as the task, the
    second half to add tables from."""
    for devices in (4, 8):
        folder = options.folder / f"tables-{devices}"
        if folder.exists():
            continue
        new = folder.with_name(f"{folder.name}.new")
        shutil.rmtree(new, ignore_errors=True)  # of a run that was killed
        run(
            options.neuroshard, "workload", "tasks", options.workload,
            "--count", options.tasks // 2, "--tables", "60:120", "--max-dim", 128,
            "--batch-size", options.batch_size, "--devices", devices, "--memory", "64GiB",
            "--seed", options.seed + devices, "-o", new,
        )  # fmt: skip
        new.rename(folder)
    return [
        file
        for devices in (4, 8)
        for file in sorted((options.folder / f"tables-{devices}").glob("*.json"))
    ]


def table_bytes(table: dict, optimizer: str) -> int:
    width = 2 if table.get("data_type") == "fp16" else 4
    state = 4 if optimizer == "rowwise_adagrad" else 0
    return table["num_embeddings"] * (table["embedding_dim"] * width + state)


def grow(table: dict, factor: float) -> None:
    """More rows, used as the others are; rows of a group of the distribution keep their number."""
    table["num_embeddings"] = round(table["num_embeddings"] * factor)
    for group in table.get("index_distribution", {}).get("access_classes", []):
        group[0] = int(group[0] * factor)


def changed(task: dict, spare: list[dict], rng: random.Random) -> dict:
    """The task a week later."""
    task = json.loads(json.dumps(task))
    tables = task["tables"]
    count = max(len(KINDS), round(len(tables) / 10))
    chosen = rng.sample(range(len(tables)), count)
    dropped = []
    for place, number in enumerate(chosen):
        kind = KINDS[place % len(KINDS)]
        if kind == "added":
            tables.append({**spare[place], "name": f"new{place}"})
        elif kind == "dropped":
            dropped.append(number)
        elif kind == "grown":
            grow(tables[number], rng.uniform(1.1, 1.5))
        else:
            tables[number]["pooling_factor"] *= rng.choice([0.4, 0.6, 1.7, 2.5])
    task["tables"] = [table for number, table in enumerate(tables) if number not in dropped]
    return task


def write_tasks(file: Path, folder: Path, rng: random.Random) -> None:
    whole = json.loads(file.read_text())
    tables = whole["tables"]
    before = {**whole, "tables": tables[: len(tables) // 2]}
    after = changed(before, tables[len(tables) // 2 :], rng)
    used = max(
        sum(table_bytes(table, whole["optimizer"]) for table in task["tables"])
        for task in (before, after)
    )
    topology = dict(whole["topology"])
    # Tables fill half to three quarters of the memory.
    topology["memory_bytes"] = round(used / rng.uniform(0.5, 0.75) / topology["world_size"])
    before["topology"] = after["topology"] = topology
    for name, task in (("before", before), ("after", after)):
        new = folder / f"{name}.json.new"
        new.write_text(json.dumps(task) + "\n")
        new.rename(folder / f"{name}.json")


def make_plans(folder: Path, options: argparse.Namespace) -> None:
    models = [word for model in options.model for word in ("--model", model)]
    more = [*models, "--seed", options.seed, "--threads", options.threads]
    after = folder / "after.json"

    def plan(name: str, *words: object) -> None:
        output = folder / f"{name}.json"
        if not output.exists():
            run(options.neuroshard, "plan", *words, *more, "-o", output)

    plan("old", folder / "before.json")
    for share in ("0", "1%", "2%", "5%", "10%"):
        try:
            plan("kept", after, "--from", folder / "old.json", "--max-move", share)
        except subprocess.CalledProcessError as error:
            if error.returncode != 1:  # no plan that moves so little
                raise
        else:
            break
    plan("limited", after, "--from", folder / "old.json", "--max-move", options.max_move)
    plan("anew", after)


def rows_of(shard: dict, table: dict) -> tuple[int, int]:
    offset = shard.get("row_offset", 0)
    return offset, offset + shard.get("num_rows", table["num_embeddings"])


def moved_weights(old: dict, new: dict) -> float:
    """Share of the weights of old tables that a plan has where they were not: 1 - kept / placed."""
    sizes = {table["name"]: table for table in old["task"]["tables"]}
    kept = placed = 0
    for now in new["shards"]:
        table = sizes.get(now["table"])
        if table is None:
            continue
        first, last = rows_of(now, table)
        last = min(last, table["num_embeddings"])
        placed += max(last - first, 0) * now["num_columns"]
        for then in old["shards"]:
            if then["table"] != now["table"] or then["device"] != now["device"]:
                continue
            begin, end = rows_of(then, table)
            rows = min(end, last) - max(begin, first)
            columns = min(
                then["column_offset"] + then["num_columns"],
                now["column_offset"] + now["num_columns"],
            ) - max(then["column_offset"], now["column_offset"])
            kept += max(rows, 0) * max(columns, 0)
    return 1.0 - kept / placed if placed else 0.0


def evaluation_file(folder: Path, name: str, round_: int) -> Path:
    return folder / f"{name}.evaluation-{round_}.json"


def measure(folder: Path, options: argparse.Namespace) -> None:
    for round_ in range(options.rounds):
        first = round_ % len(PLANS)
        for name in PLANS[first:] + PLANS[:first]:
            output = evaluation_file(folder, name, round_)
            if output.exists():
                continue
            text = run(
                options.neuroshard, "evaluate", folder / f"{name}.json", "--json",
                "--seed", options.seed + round_, "--arena", options.arena,
            )  # fmt: skip
            partial = output.with_suffix(".tmp")
            partial.write_text(text)
            partial.rename(output)


def measured_ms(folder: Path, name: str, options: argparse.Namespace) -> float:
    files = [evaluation_file(folder, name, round_) for round_ in range(options.rounds)]
    return statistics.median(json.loads(file.read_text())["measured_ms"] for file in files)


def result_of(folder: Path, options: argparse.Namespace) -> dict:
    plans = {name: json.loads((folder / f"{name}.json").read_text()) for name in ("old", *PLANS)}
    result = {
        "task": folder.name,
        "moved": plans["limited"]["moves"]["moved_bytes"]
        / max(plans["limited"]["moves"]["placed_bytes"], 1),
        "moved_anew": moved_weights(plans["old"], plans["anew"]),
        "predicted": {name: plans[name]["predicted"]["cost_ms"] for name in PLANS},
    }
    if options.measure:
        result["measured"] = {
            name: measured_ms(folder, name, options) for name in PLANS
        }
    return result


def summary(results: list[dict], which: str) -> str:
    """Of the sums over all tasks, so that tasks on which planning anew gains nothing count as what
    they are."""
    sums = {name: sum(result[which][name] for result in results) for name in PLANS}
    relative = {
        name: statistics.mean(result[which][name] / result[which]["kept"] for result in results)
        for name in PLANS
    }
    gain = sums["kept"] - sums["anew"]
    relative_gain = 1.0 - relative["anew"]
    below = sum(result[which]["limited"] <= result[which]["anew"] for result in results)
    return (
        f"{which}: kept {sums['kept']:.2f} ms, limited {sums['limited']:.2f}, anew "
        f"{sums['anew']:.2f} in sum; the limited plans have "
        f"{(sums['kept'] - sums['limited']) / gain:.1%} of the gain of planning anew "
        f"({(1.0 - relative['limited']) / relative_gain:.1%} as the mean of the tasks' costs "
        f"relative to the kept plan's), and cost no more than it on {below} of {len(results)} tasks"
    )


def gain_intervals(results: list[dict], which: str) -> str:
    """By what the limited and the new plans cost less than the kept ones, in sum, and between which
    figures 95 % of the gains lie of tasks drawn with replacement."""
    rng = random.Random(1)

    def gain(drawn: list[dict], name: str) -> float:
        return 1.0 - sum(r[which][name] for r in drawn) / sum(r[which]["kept"] for r in drawn)

    draws = [rng.choices(results, k=len(results)) for _ in range(4000)]
    parts = []
    for name in ("limited", "anew"):
        gains = sorted(gain(drawn, name) for drawn in draws)
        parts.append(f"{name} {gain(results, name):+.1%} ({gains[100]:+.1%} to {gains[3899]:+.1%})")
    enough = sum(gain(drawn, "limited") >= 0.9 * gain(drawn, "anew") for drawn in draws)
    return (
        f"{which} gain over kept, with 95 % of resampled tasks: {', '.join(parts)}; "
        f"nine tenths of the gain in {enough / len(draws):.1%} of them"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--neuroshard", default="neuroshard")
    parser.add_argument("--workload", default="dlrm-2021")
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--max-move", default="10%")
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=65536)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--arena", default="1GiB")
    options = parser.parse_args()
    options.model = options.model or ["cpu-epyc-2core", "ethernet-25g"]
    keep_options(
        options.folder,
        {
            "script": "replanning.py",
            "workload": options.workload,
            "model": [model_of(model) for model in options.model],
            "max_move": options.max_move,
            "tasks": options.tasks,
            "seed": options.seed,
            "batch_size": options.batch_size,
            "arena": options.arena,
        },
    )
    results = []
    for number, file in enumerate(make_tasks(options)):
        folder = options.folder / f"task-{number:02d}"
        folder.mkdir(exist_ok=True)
        if not (folder / "after.json").exists():
            write_tasks(file, folder, random.Random(f"{options.seed} {number}"))
        make_plans(folder, options)
        if options.measure:
            measure(folder, options)
        result = result_of(folder, options)
        results.append(result)
        costs = result.get("measured", result["predicted"])
        print(
            f"{result['task']}: kept {costs['kept']:.3f} ms, limited {costs['limited']:.3f}, anew "
            f"{costs['anew']:.3f}; moved {result['moved']:.1%}, anew {result['moved_anew']:.1%}",
            flush=True,
        )
    (options.folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    print(f"moved: {statistics.mean(r['moved'] for r in results):.1%}, at most "
          f"{max(r['moved'] for r in results):.1%}; anew "
          f"{statistics.mean(r['moved_anew'] for r in results):.1%}")  # fmt: skip
    for which in ("predicted", "measured") if options.measure else ("predicted",):
        print(summary(results, which))
        print(gain_intervals(results, which))


if __name__ == "__main__":
    main()
