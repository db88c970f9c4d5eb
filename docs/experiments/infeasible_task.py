#!/usr/bin/env python3
"""Decides by integer programming whether any plan of column cuts fits into a task's memory.

    docs/experiments/infeasible_task.py TASK.json [--time-limit SECONDS]

Needs SciPy (HiGHS). Unknowns are the units of four columns of each table on each device, and, with
row-wise Adagrad, whether a device holds any of a table: then it holds a state for each row, once.
Pieces of a table on one device count as one, which takes the least memory, and the least widths
that a task may ask for are left aside: "infeasible" holds for any plan that `neuroshard check`
accepts.
"""

import argparse
import json

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

UNIT_COLUMNS = 4
VALUE_BYTES = {"fp32": 4, "fp16": 2}
STATE_BYTES = 4  # of a row, with row-wise Adagrad


def solve(task, time_limit):
    """scipy's status (0: a plan exists, 2: none does) and its message."""
    tables = task["tables"]
    devices = task["topology"]["world_size"]
    memory = np.broadcast_to(np.asarray(task["topology"]["memory_bytes"], float), devices)
    has_state = task.get("optimizer", "sgd") == "rowwise_adagrad"
    rows = np.array([table["num_embeddings"] for table in tables], float)
    units = np.array([table["embedding_dim"] // UNIT_COLUMNS for table in tables], float)
    unit_bytes = rows * UNIT_COLUMNS
    unit_bytes *= [VALUE_BYTES[table.get("data_type", "fp32")] for table in tables]
    count = len(tables) * devices  # unknowns of each kind, table by table
    table_of, device_of = np.divmod(np.arange(count), devices)

    entries, least, most = [], [], []  # (row, column, coefficient) and bounds of the constraints

    def constrain(columns, coefficients, low, high):
        entries.extend((len(least), c, v) for c, v in zip(columns, coefficients, strict=True))
        least.append(low)
        most.append(high)

    for t in range(len(tables)):
        columns = np.flatnonzero(table_of == t)
        constrain(columns, np.ones(devices), units[t], units[t])
    for d in range(devices):
        columns = np.flatnonzero(device_of == d)
        share = unit_bytes[table_of[columns]] / memory[d]
        if has_state:
            state = rows[table_of[columns]] * STATE_BYTES / memory[d]
            columns = np.concatenate([columns, columns + count])
            share = np.concatenate([share, state])
        constrain(columns, share, -np.inf, 1.0)
    if has_state:
        for i in range(count):
            constrain([i, i + count], [1.0, -units[table_of[i]]], -np.inf, 0.0)

    kinds = 2 if has_state else 1
    row, column, value = zip(*entries, strict=True)
    matrix = coo_array((value, (row, column)), shape=(len(least), kinds * count))
    upper = np.concatenate([units[table_of], np.ones(count)][:kinds])
    found = milp(
        np.zeros(kinds * count),
        integrality=np.ones(kinds * count),
        bounds=Bounds(np.zeros(kinds * count), upper),
        constraints=LinearConstraint(matrix.tocsr(), least, most),
        options={"time_limit": time_limit},
    )
    return found.status, found.message


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", help="task file (.json)")
    parser.add_argument("--time-limit", type=float, default=600.0, help="seconds")
    options = parser.parse_args()
    with open(options.task, encoding="utf-8") as file:
        task = json.load(file)
    status, message = solve(task, options.time_limit)
    answers = {0: "a plan exists", 2: "infeasible: no plan of column cuts fits"}
    print(f"{options.task}: {answers.get(status, message)}")


if __name__ == "__main__":
    main()
