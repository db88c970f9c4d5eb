"""Explanations and capacity through the bindings."""

import pytest

import neuroshard
from neuroshard import InfeasibleError, InputError

MODELS = ["analytic-a100-40gb", "analytic-a100-nvswitch"]


def test_explanations(task):
    plan = neuroshard.plan(task, models=MODELS, steps=500)
    whole = neuroshard.explain(plan)
    assert whole.content["cost_ms"] == plan.predicted.cost_ms
    assert "It is limited by the" in str(whole)
    assert whole.content["alternatives"][0]["change"] == "the same task planned again"
    name = plan.shards[0].table
    assert neuroshard.explain(plan, table=name).content["table"] == name
    forced = neuroshard.explain(plan, why_not=f"{name}:device=0").content
    assert {shard["device"] for shard in forced["choice_shards"]} == {0}
    for arguments in (
        {"table": "none"},
        {"table": ""},
        {"table": 3},
        {"why_not": "none"},
        {"why_not": f"{name}:device=99"},
        {"table": name, "why_not": f"{name}:replicated"},
        {"table": name, "num_threads": 2},
        {"table": name, "time_limit_seconds": 1},
        {"why_not": f"{name}:device=0", "num_threads": 2},
    ):
        with pytest.raises(InputError):
            neuroshard.explain(plan, **arguments)


def test_choices_that_the_task_does_not_allow(task):
    task.allow = ["columns"]
    plan = neuroshard.plan(task, models=MODELS, steps=500)
    with pytest.raises(InfeasibleError, match="does not allow"):
        neuroshard.explain(plan, why_not=f"{plan.shards[0].table}:rows=2")


def test_capacity(task):
    per_host = task.topology.local_world_size or task.topology.world_size
    found = neuroshard.capacity(
        task, devices=[2 * per_host, per_host], memory=["1KiB", "80GiB"], models=MODELS
    )
    assert [point.devices for point in found.points] == [per_host] * 2 + [2 * per_host] * 2
    assert [point.cost_ms is None for point in found.points] == [True, False, True, False]
    assert found.smallest == found.points[1]
    assert found.points[0].reason != ""
    assert "the smallest that fits: " in str(found)
    none = neuroshard.capacity(task, devices="1", memory="1KiB", models=MODELS)
    assert none.smallest is None and none.cheapest is None
    for arguments in (
        {"devices": "8:4", "memory": "1GiB"},
        {"devices": [0], "memory": "1GiB"},
        {"devices": 4, "memory": "1 GiB"},
        {"devices": [], "memory": "1GiB"},
        {"devices": 4, "memory": [0]},
        {"devices": 4, "memory": "1GiB", "time_limit_seconds": 0.001},
        {"devices": 4, "memory": "1GiB", "steps": 0},
    ):
        with pytest.raises(InputError):
            neuroshard.capacity(task, models=MODELS, **arguments)
