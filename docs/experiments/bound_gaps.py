#!/usr/bin/env python3
"""How far plans are above the proven lower bound, and what the bound says of columns alone.

    bound_gaps.py NEUROSHARD FOLDER... [--model NAME]... [--count N]

Plans the first N tasks of each folder with all cuts and with columns alone, in the default second,
and prints means over the tasks, all predicted:

  above     the plan with all cuts over the lower bound of any plan
  ratio     the plan with all cuts over the one with columns alone
  least     the lower bound over the plan with columns alone: no plan has a lower ratio
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile


def planned(neuroshard: str, task: pathlib.Path, models: list[str], cuts: str) -> dict | None:
    """The plan file's content; None where no plan was found."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "plan.json"
        options = [option for model in models for option in ("--model", model)]
        command = [neuroshard, "plan", str(task), "--cuts", cuts, *options, "-q", "-o", str(output)]
        found = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        return json.loads(output.read_text()) if found.returncode == 0 else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("neuroshard")
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--count", type=int, default=50)
    arguments = parser.parse_args()
    print("tasks                 solved   above  median   worst   ratio   least", flush=True)
    for folder in arguments.folders:
        tasks = sorted(folder.glob("*.json"))[: arguments.count]
        above, ratios, least = [], [], []
        for task in tasks:
            best = planned(arguments.neuroshard, task, arguments.model, "columns,rows,replicas")
            columns = planned(arguments.neuroshard, task, arguments.model, "columns")
            if best is None or columns is None:
                continue
            cost, bound = best["predicted"]["cost_ms"], best["search"]["lower_bound_ms"]
            above.append(cost / bound)
            ratios.append(cost / columns["predicted"]["cost_ms"])
            least.append(bound / columns["predicted"]["cost_ms"])
        if not above:
            print(f"{folder.name:20} {0:>3} of {len(tasks)}", flush=True)
            continue
        print(
            f"{folder.name:20} {len(above):>3} of {len(tasks)}"
            f"  {statistics.mean(above):6.3f}  {statistics.median(above):6.3f}  {max(above):6.3f}"
            f"  {statistics.mean(ratios):6.3f}  {statistics.mean(least):6.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
