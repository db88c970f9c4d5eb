"""Plans with pinned tables, and plans made from an older one, which move little of it."""

import logging

import pytest
from conftest import make_collection, make_topology, shards_of
from saved_plans import SHARDERS, SIZES, make_planner, saved
from torchrec.distributed.planner import EmbeddingShardingPlanner
from torchrec.distributed.planner.types import ParameterConstraints

from neuroshard import InputError
from neuroshard.torchrec import SavedPlan

pytestmark = pytest.mark.filterwarnings("ignore::neuroshard.ExtrapolationWarning")


def test_tables_stay_where_they_are_pinned():
    topology = make_topology(4, 8 << 30)
    module = make_collection([(100_000, 64)] * 10)
    planner = make_planner(
        topology,
        devices={"t0": [3], "t1": [1, 2]},
        same_device_as={"t5": "t4", "t6": "t5", "t7": "t0"},
    )
    ranks = {
        name: {rank for *_, rank in shards}
        for name, shards in shards_of(planner.plan(module, SHARDERS)).items()
    }
    assert ranks["t0"] == {3} == ranks["t7"]
    assert ranks["t1"] <= {1, 2}
    assert ranks["t4"] == ranks["t5"] == ranks["t6"] and len(ranks["t4"]) == 1
    assert not planner.neuroshard_plan.violations()


@pytest.mark.parametrize(
    ("pins", "text"),
    [
        ({"devices": {"t9": [0]}}, "devices: expected tables of the module, got 't9'"),
        ({"devices": {"t1": [0, 2]}}, r"devices\['t1'\]: expected ranks from 0 to 1, got 2"),
        ({"devices": {"t1": []}}, r"devices\['t1'\]: expected a list of ranks, got \[\]"),
        ({"devices": {"t1": "01"}}, r"devices\['t1'\]: expected a list of ranks, got '01'"),
        ({"devices": [1]}, "devices: expected ranks by table name, got list"),
        ({"same_device_as": {"t1": 3}}, r"same_device_as\['t1'\]: expected the name of a table"),
        (
            {"same_device_as": {"t1": "x"}},
            r"same_device_as\['t1'\]: expected tables of the module, got 'x'",
        ),
        (
            {"devices": {"t0": [1]}},
            "devices: expected tables that our models place, got 't0', which is left to TorchRec's",
        ),
        (
            {"devices": {"t1": [1]}, "objective": "torchrec"},
            "devices: expected objective='measured', which alone keeps to it, got 'torchrec'",
        ),
    ],
)
def test_pins_that_cannot_be(pins, text):
    constraints = {"t0": ParameterConstraints(sharding_types=["data_parallel"])}
    with pytest.raises(InputError, match=text):
        make_planner(make_topology(2, 8 << 30), constraints, **pins).plan(
            make_collection(SIZES), SHARDERS
        )


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(
    "pins",
    [
        {"devices": {"no-such": [0]}},
        {"same_device_as": {"t1": "t0"}},
        {"previous_plan": "plan.json"},
    ],
    ids=lambda pins: next(iter(pins)),
)
def test_pins_next_to_a_loader_are_refused(tmp_path, monkeypatch, device, pins):
    """Whose plan may break them."""
    monkeypatch.chdir(tmp_path)
    topology = make_topology(2, 8 << 30, device)
    _, path = saved(tmp_path, make_planner(topology), make_collection(SIZES))
    [name] = pins
    with pytest.raises(InputError, match=f"^{name}: expected none next to plan_loader, whose plan"):
        make_planner(topology, plan_loader=SavedPlan(path), **pins)


def moved_bytes(before, after, sizes):
    """Of weights, by elements that are on another rank."""
    moved = 0
    for name, shards in shards_of(after).items():
        rows = sizes[int(name[1:])][0]
        old = {
            column: rank
            for offset, width, rank in shards_of(before)[name]
            for column in range(offset, offset + width)
        }
        for offset, width, rank in shards:
            moved += 4 * rows * sum(
                old[column] != rank for column in range(offset, offset + width)
            )
    return moved


@pytest.mark.parametrize("max_move", ["10%", 0.3, 0])
def test_most_of_a_plan_of_torchrecs_is_kept(tmp_path, max_move):
    sizes = [(20_000 * (1 + i % 5), (32, 64, 128)[i % 3]) for i in range(16)]
    module = make_collection(sizes)
    topology = make_topology(4, 8 << 30)
    whole = {f"t{i}": ParameterConstraints(sharding_types=["table_wise"]) for i in range(16)}
    theirs = make_planner(topology, whole, EmbeddingShardingPlanner)
    old, path = saved(tmp_path, theirs, module)
    # Use has drifted: some tables are looked up far more often.
    drifted = {
        f"t{i}": ParameterConstraints(pooling_factors=[40.0 if i % 4 == 0 else 1.0])
        for i in range(16)
    }
    total = sum(4 * rows * columns for rows, columns in sizes)
    share = 0.1 if max_move == "10%" else max_move
    costs = []
    for previous in (old, path):
        planner = make_planner(topology, drifted, previous_plan=previous, max_move=max_move)
        new = planner.plan(module, SHARDERS)
        moved = moved_bytes(old, new, sizes)
        assert moved <= share * total
        assert planner.moves.moved_bytes == moved
        assert planner.moves.placed_bytes == total
        costs.append(planner.neuroshard_plan.predicted.cost_ms)
    assert costs[0] == costs[1]
    if share:
        kept = make_planner(topology, drifted, previous_plan=old, max_move=0)
        kept.plan(module, SHARDERS)
        assert kept.neuroshard_plan.predicted.cost_ms > costs[0]
    assert make_planner(topology).moves is None


def test_tables_of_a_previous_plan_that_are_others_now(caplog):
    topology = make_topology(2, 8 << 30, "cuda")
    whole = ParameterConstraints(sharding_types=["table_wise"])
    before = {
        "t0": ParameterConstraints(sharding_types=["row_wise"]),
        "t1": ParameterConstraints(sharding_types=["data_parallel"]),
        "t2": whole,
        "t3": whole,
        "t4": ParameterConstraints(sharding_types=["column_wise"], min_partition=32),
    }
    old = make_planner(topology, before, EmbeddingShardingPlanner).plan(
        make_collection(SIZES), SHARDERS
    )
    # t0 may now be placed by us, t1 not, t2 has more columns, t3 more rows; t5 is new.
    sizes = [*SIZES[:2], (200_000, 64), (2_000, 16), SIZES[4], (500, 8)]
    now = {"t1": ParameterConstraints(sharding_types=["data_parallel"])}
    planner = make_planner(
        topology, now, objective="measured", previous_plan=old, max_move=1.0
    )
    with caplog.at_level(logging.WARNING, logger="neuroshard"):
        new = planner.plan(make_collection(sizes), SHARDERS)
    assert set(shards_of_placed(new)) == {"t0", "t2", "t3", "t4", "t5"}
    assert "not kept: 1 table (.t1): left to TorchRec's planner" in caplog.text
    assert "not kept: 1 table (.t2): it has another number of columns now" in caplog.text
    assert planner.moves.placed_bytes == 4 * (100_000 * 128 + 1_000 * 16 + 1_000_000 * 64)


def shards_of_placed(plan):
    """But for tables on all ranks, which have no shards."""
    return {
        name
        for name, parameter in plan.plan[""].items()
        if parameter.sharding_type != "data_parallel"
    }


def test_previous_plans_that_cannot_be(tmp_path):
    topology = make_topology(2, 8 << 30)
    old = make_planner(topology).plan(make_collection(SIZES), SHARDERS)
    for options, text in (
        ({"previous_plan": 3}, "previous_plan: expected a ShardingPlan or the path .* got int"),
        ({"previous_plan": old, "max_move": 2}, "max_move: expected a share"),
        ({"previous_plan": tmp_path / "none.json"}, "none.json: expected a readable file"),
        (
            {"previous_plan": old, "objective": "torchrec"},
            "previous_plan: expected objective='measured'",
        ),
    ):
        with pytest.raises(InputError, match=text):
            make_planner(topology, **options)
    elsewhere = make_planner(topology, runtime=None).plan(make_collection([(1000, 32)]), SHARDERS)
    with pytest.raises(InputError, match="previous_plan: expected some of the 1 tables"):
        make_planner(topology, previous_plan=elsewhere).plan(
            make_collection([(1000, 64)]), SHARDERS
        )
