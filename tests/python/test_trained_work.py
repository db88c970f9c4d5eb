"""What of a plan is more work than the runtime's costs were learned from."""

import dataclasses
import math
import re

import pytest
from conftest import ROOT
from runtime_steps import MODEL, TRUE, made_samples, table

from neuroshard import Table
from neuroshard.runtime import Setup, ShardedModule, fit_layout, read_runtime_costs, read_samples
from neuroshard.runtime.costs import shipped_runtime_costs
from neuroshard.runtime.drawing import PLANS_OF_A_TASK
from neuroshard.runtime.operators import operator_work
from neuroshard.runtime.samples import numbered
from neuroshard.runtime.trained_work import TrainedWork

MIB = 1 << 20


def reason_outside(costs, modules, setup):
    found = operator_work(modules, setup, [MODEL])
    names = [[f"t{i}" for i in range(len(module.tables))] for module in modules]
    times = costs.operators_ms(found)
    return costs.trained.reason_outside(modules, setup, found, times, names)


def test_more_work_than_trained_on():
    samples = made_samples(10)
    costs = fit_layout(samples, MODEL).costs
    kept = {samples[-1].task, samples[4 * PLANS_OF_A_TASK].task}
    for sample in samples:
        if sample.task not in kept:
            assert reason_outside(costs, sample.modules, sample.setup) == "", sample.index
    small = table("table_wise", Setup(2, 2, 256), 1000, 16, 1.0, ranks=[0])
    large = table("table_wise", Setup(2, 2, 256), 1000, 16, 9.0e5, ranks=[1])
    module = ShardedModule("pooled", (small, large, small))
    reason = reason_outside(costs, [module], Setup(2, 2, 256))
    lookups = (256 * 2 * 8 * (9.0e5 + 2) + 3 * 256 * 2 * 4) / MIB / 2
    assert reason.startswith("more work than trained on: ")
    most = costs.trained.work["lookups"]
    assert f'lookups {lookups:.4g} MiB (at most {most:.4g}, largest: "t1")' in reason
    assert "operators" in reason and "t0" not in reason and "outputs" not in reason
    # Two modules of a kind were in no step.
    reason = reason_outside(costs, [ShardedModule("pooled", (small,))] * 2, Setup(2, 2, 1))
    assert reason == "more work than trained on: pooled_modules 2 (at most 1)"
    # Of many kinds the farthest are said.
    every = [ShardedModule(kind, (large, small)) for kind in ("pooled", "sequence")]
    reason = reason_outside(costs, every, Setup(2, 2, 4096))
    assert re.search(r', and [0-9]+ kinds? more$', reason)
    # Of an older file nothing is known.
    assert reason_outside(TRUE, every, Setup(2, 2, 4096)) == ""


def test_the_largest_table_is_that_of_the_process_with_most():
    """Of its operators: process 0 has 3 of 1,000 lookups and 5, process 1 one table of 6."""
    setup = Setup(2, 2, 500)
    lookups = {"t0": (3.0, 0), "t1": (5.0, 0), "t2": (6.0, 1)}
    module = ShardedModule(
        "sequence",
        tuple(
            table("table_wise", setup, 10**6, 16, of, ranks=[rank]) for of, rank in lookups.values()
        ),
    )
    trained = TrainedWork({}, {"sequence": {"lookups": 0.004}})
    costs = dataclasses.replace(TRUE, trained=trained)
    expected = 'lookups of sequence operators 0.008 million (at most 0.004, largest: "t1")'
    assert reason_outside(costs, [module], setup) == f"more work than trained on: {expected}"
    # With the tables as they are used: hardly any row of the second is another one.
    used = [Table(f"t{i}", 10**6, 16, of) for i, (of, _) in enumerate(lookups.values())]
    histogram = [0.0] * 17
    histogram[12] = 1.0  # each row that is touched some 3,000 times
    used[1] = dataclasses.replace(used[1], reuse_histogram=histogram)
    trained = TrainedWork({}, {"sequence": {"distinct_rows": 0.0}})
    found = operator_work([module], setup, [MODEL], "sgd", [used])
    reason = trained.reason_outside([module], setup, found, [0.0, 0.0], [[*lookups]], [used])
    rows = 1e6 * -math.expm1(-6000 / 1e6) / 1e6
    assert reason == (
        f"more work than trained on: distinct_rows of sequence operators {rows:.4g} million "
        '(at most 0, largest: "t2")'
    )
    # Five kinds are named.
    five = dict.fromkeys(("sequence_modules", "all_to_alls", "features", "lookups", "sequences"), 0.0)
    for others, end in ((["sequence_outputs"], ", and 1 kind more"), ([], "")):
        trained = TrainedWork(five | dict.fromkeys(others, 0.0))
        reason = reason_outside(dataclasses.replace(TRUE, trained=trained), [module], setup)
        assert reason.count("(at most 0") == 5
        assert reason.endswith(end or ")")


@pytest.mark.parametrize("name", shipped_runtime_costs())
def test_shipped_costs_know_what_they_were_learned_from(name):
    """By the samples that are shipped, in the order in which they were given."""
    files = [read_samples(path) for path in sorted((ROOT / "data" / "runtime" / name).glob("*.gz"))]
    for layout in read_runtime_costs(name).layouts:
        processes = (layout.world_size, layout.local_world_size)
        samples = numbered([file for file in files if file.layout == processes])
        found = fit_layout(samples, MODEL).costs.trained
        assert found.work == pytest.approx(layout.trained.work, rel=1e-6)
        assert found.operators.keys() == layout.trained.operators.keys()
        for kind, of_kind in found.operators.items():
            assert of_kind == pytest.approx(layout.trained.operators[kind], rel=1e-6)
