"""Costs of a runtime that are known, and steps of drawn plans that cost so much, for tests."""

import random
from statistics import fmean

from neuroshard.runtime import LayoutCosts, RuntimeSample, Setup, ShardedTable, work_of
from neuroshard.runtime.drawing import PLANS_OF_A_TASK, draw_task, shards_of
from neuroshard.runtime.operators import operator_work
from neuroshard.runtime.work import WORK

MODEL = "fbgemm-cpu-epyc"
FOUR = Setup(world_size=4, local_world_size=2, batch_size=8)


def table(sharding_type, setup=FOUR, rows=100, columns=16, lookups=3.0, **places):
    shards = shards_of(sharding_type, rows, columns, setup, **places)
    return ShardedTable(sharding_type, rows, columns, lookups, shards)


TRUE = LayoutCosts(
    2,
    2,
    forward=dict.fromkeys(WORK, 0.0)
    | {"all_to_alls": 0.4, "reduced": 2.0, "lookups": 3.0, "operators": 0.1},
    backward=dict.fromkeys(WORK, 0.0) | {"all_to_alls": 0.2, "all_reduced": 1.0},
    operators={
        "pooled": {"model": 1.5, "calls": 0.01, "put_out": 0.5},
        "sequence": {
            "lookups": 9.0,
            "distinct_rows": 300.0,
            "crowded": 700.0,
            "far": 200.0,
            "gathered": 0.2,
            "distinct": 0.5,
        },
        "replicated": {
            "lookups": 5.0,
            "distinct_rows": 7.0,
            "crowded": 50.0,
            "gathered": 0.1,
            "put_out": 0.2,
            "whole": 0.3,
        },
    },
    types={"pooled": ["row_wise", "table_wise"], "sequence": ["table_wise"]},
)


def made_samples(tasks, noise=0.0):
    draw = random.Random(3)
    samples = []
    for number in range(tasks):
        task = draw_task(number, 5, (2, 2), [512, 2048], 20_000)
        for place, plan in enumerate(task.plans):
            of_ranks = operator_work(plan, task.setup, [MODEL])
            times = TRUE.operators_ms(of_ranks)
            moved = work_of(plan, task.setup) | {"operators": fmean(times)}

            def noisy(ms):
                return max(1e-3, ms * (1.0 + noise * draw.gauss(0, 1)))

            samples.append(
                RuntimeSample(
                    index=number * PLANS_OF_A_TASK + place,
                    task=number,
                    setup=task.setup,
                    modules=plan,
                    forward_ms=noisy(0.4 * max(times) + TRUE.forward_ms(moved)),
                    backward_ms=noisy(0.6 * max(times) + TRUE.backward_ms(moved)),
                    operator_ms=tuple((0.4 * ms, 0.6 * ms) for ms in times),
                    repetitions=12,
                )
            )
    return samples
