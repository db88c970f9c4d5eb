"""Plans that last: in files, loaded by both planners, pinned, made from an older plan; hashes that
are the same in every process."""

import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import RowsToo, make_collection, make_topology, shards_of
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import ParameterConstraints, PlannerError, PlannerErrorType
from torchrec.distributed.types import BoundsCheckMode, CacheParams

from neuroshard import InputError
from neuroshard.torchrec import NeuroShardPlanner, SavedPlan, load_plan, save_plan

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "fuzz"))

from python_objects import workers  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::neuroshard.ExtrapolationWarning")
SIZES = [(100_000, 128), (50_000, 64), (200_000, 32), (1_000, 16), (1_000_000, 64)]
SHARDERS = [EmbeddingBagCollectionSharder()]


def make_planner(topology, constraints=None, kind=NeuroShardPlanner, **options):
    options.setdefault("batch_size", 512)
    return kind(
        topology=topology,
        constraints=constraints,
        storage_reservation=FixedPercentageStorageReservation(percentage=0.0),
        debug=False,
        stats=[],
        **options,
    )


def saved(tmp_path, planner, module):
    """The planner's plan of the module, in a file."""
    plan = planner.plan(module, SHARDERS)
    path = tmp_path / "plan.json"
    save_plan(planner, path)
    return plan, path


def placements(plan):
    """All of a plan that training depends on."""
    return {
        (path, name): (
            parameter.sharding_type,
            parameter.compute_kernel,
            parameter.ranks,
            parameter.cache_params,
            parameter.bounds_check_mode,
            [
                (list(s.shard_offsets), list(s.shard_sizes), str(s.placement))
                for s in getattr(parameter.sharding_spec, "shards", [])
            ],
        )
        for path, of_module in plan.plan.items()
        for name, parameter in of_module.items()
    }


def test_a_plan_is_read_as_it_was_written(tmp_path):
    constraints = {
        "t0": ParameterConstraints(sharding_types=["row_wise"]),
        "t1": ParameterConstraints(sharding_types=["data_parallel"]),
        "t2": ParameterConstraints(sharding_types=["grid_shard"], min_partition=16),
        "t3": ParameterConstraints(bounds_check_mode=BoundsCheckMode.WARNING),
        "t4": ParameterConstraints(
            compute_kernels=["fused_uvm_caching"], cache_params=CacheParams(load_factor=0.3)
        ),
    }
    planner = make_planner(make_topology(4, 8 << 30, "cuda", local=2), constraints)
    plan, path = saved(tmp_path, planner, make_collection(SIZES))
    assert placements(load_plan(path)) == placements(plan)
    assert json.loads(path.read_text())["format"] == "neuroshard/torchrec-plan/1"
    assert [p.name for p in tmp_path.iterdir()] == ["plan.json"]


def documents_example():
    document = (ROOT / "docs" / "formats.md").read_text()
    example = document.split("neuroshard/torchrec-plan/1")[-1]
    return '{"format": "neuroshard/torchrec-plan/1' + example.split("```")[0]


def test_the_documents_example_is_read(tmp_path):
    (tmp_path / "plan.json").write_text(documents_example())
    plan = load_plan(tmp_path / "plan.json").plan["bags"]
    assert plan["user"].ranks == [1, 0]
    assert plan["item"].cache_params.load_factor == 0.2


@pytest.mark.parametrize("objective", ["torchrec", "measured"])
def test_a_saved_plan_is_taken_in_the_place_of_a_search(tmp_path, objective):
    # Too little for the largest table in one piece.
    topology = make_topology(2, 240 << 20, "cuda")
    module = make_collection(SIZES)
    planner = make_planner(topology, objective=objective)
    plan, path = saved(tmp_path, planner, module)
    for other in ("torchrec", "measured"):
        again = make_planner(
            topology, objective=other, plan_loader=SavedPlan(path, same_context=True)
        )
        assert placements(again.plan(module, SHARDERS)) == placements(plan)
        assert again.estimates.chosen_ms == pytest.approx(planner.estimates.chosen_ms, rel=1e-9)
    if objective == "measured":
        assert len(shards_of(plan)["t4"]) > 1


def test_torchrecs_planner_takes_saved_plans_too(tmp_path):
    topology = make_topology(2, 8 << 30)
    module = make_collection(SIZES)
    whole = {
        f"t{i}": ParameterConstraints(sharding_types=["table_wise"]) for i in range(len(SIZES))
    }
    plan, path = saved(tmp_path, make_planner(topology, whole), module)
    loading = make_planner(
        topology, whole, EmbeddingShardingPlanner, plan_loader=SavedPlan(path)
    )
    assert placements(loading.plan(module, SHARDERS)) == placements(plan)
    # And its own plans are saved.
    theirs = make_planner(topology, whole, EmbeddingShardingPlanner)
    plan, path = saved(tmp_path, theirs, module)
    assert placements(load_plan(path)) == placements(plan)
    loading = make_planner(topology, whole, plan_loader=SavedPlan(path))
    assert placements(loading.plan(module, SHARDERS)) == placements(plan)


def test_plans_that_do_not_belong_to_the_module(tmp_path):
    topology = make_topology(2, 8 << 30)
    _, path = saved(tmp_path, make_planner(topology), make_collection(SIZES))

    def loaded(module, constraints=None, topology=topology, **options):
        loader = SavedPlan(path, **options)
        return make_planner(topology, constraints, plan_loader=loader).plan(module, SHARDERS)

    failures = [
        (dict(module=make_collection(SIZES[:4])), "expected tables of the module, got '.t4'"),
        (
            dict(module=make_collection([*SIZES, (10, 8)])),
            "expected all tables of the module, got none of '.t5'",
        ),
        (
            dict(module=make_collection([(100_001, 128), *SIZES[1:]])),
            r"\.t0: expected 100001 x 128 as in the module, got 100000 x 128",
        ),
        (
            dict(
                module=make_collection(SIZES),
                constraints={"t3": ParameterConstraints(sharding_types=["data_parallel"])},
            ),
            r"\.t3: expected one of data_parallel/dense, as its sharder and constraints permit, got",
        ),
        (
            dict(module=make_collection(SIZES), topology=make_topology(2, 10 << 20)),
            "device 0: expected at most 10485760 bytes of ddr, got ",
        ),
        (
            dict(module=make_collection(SIZES), topology=make_topology(1, 8 << 30)),
            r"shards\[\d\]\.device: expected an integer from 0 to 0, got 1",
        ),
    ]
    for arguments, text in failures:
        with pytest.raises(PlannerError, match=text) as caught:
            loaded(**arguments)
        assert str(path) in str(caught.value)
    planner = make_planner(
        topology, {"t0": ParameterConstraints(sharding_types=["row_wise"])}, objective="torchrec"
    )
    planner.plan(make_collection(SIZES), [RowsToo()])
    save_plan(planner, path, force=True)
    text = r"\.t0: expected one of .* as its sharder and constraints permit, got row_wise/fused"
    with pytest.raises(PlannerError, match=text):
        loaded(make_collection(SIZES))  # whose sharder has no rows
    with pytest.raises(PlannerError, match="expected the plan's topology, batch size") as caught:
        loaded(make_collection(SIZES), topology=make_topology(2, 300 << 30), same_context=True)
    assert caught.value.error_type == PlannerErrorType.PLANNER_INPUT_CONTEXT_MISMATCH


def rows_planner(kind, layout, **options):
    """For one table, of rows that devices cannot have equally many of."""
    topology = make_topology(layout[0], 8 << 30, "cuda", local=layout[1])
    given = {"t0": ParameterConstraints(sharding_types=[kind], min_partition=32)}
    return make_planner(topology, given, **options)


ROWS = [(1003, 64)]


@pytest.mark.parametrize(
    ("kind", "layout", "other", "text"),
    [
        ("row_wise", (2, 2), (4, 2), "shards: expected 4, as row_wise has on these ranks, got 2"),
        (
            "table_row_wise",
            (4, 4),
            (4, 2),
            "shards: expected 2, as table_row_wise has on these ranks, got 4",
        ),
        (
            "table_row_wise",
            (4, 2),
            (4, 4),
            "shards: expected 4, as table_row_wise has on these ranks, got 2",
        ),
        (
            "grid_shard",
            (4, 2),
            (4, 1),
            r"shards\[0\]: expected 1003 rows from 0 on, as grid_shard has on these ranks, got 502",
        ),
        (
            "grid_shard",
            (6, 2),
            (6, 3),
            r"shards: expected a multiple of 3, as grid_shard has on these ranks, got 4",
        ),
    ],
)
def test_slices_of_rows_are_those_of_the_ranks_and_hosts(tmp_path, kind, layout, other, text):
    module = make_collection(ROWS)
    plan, path = saved(tmp_path, rows_planner(kind, layout), module)
    again = rows_planner(kind, layout, plan_loader=SavedPlan(path))
    assert placements(again.plan(module, SHARDERS)) == placements(plan)
    with pytest.raises(PlannerError, match=rf"\.t0: {text}") as caught:
        rows_planner(kind, other, plan_loader=SavedPlan(path)).plan(module, SHARDERS)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "change", "text"),
    [
        (
            "row_wise",
            lambda shards: shards.reverse(),
            r"shards\[0\]: expected 251 rows from 0 on, .* got 250 from 753 on",
        ),
        (
            "row_wise",
            lambda shards: [shard.update(device=3 - i) for i, shard in enumerate(shards)],
            r"shards\[0\]\.device: expected 0, as the slices of rows are .* in order, got 3",
        ),
        (
            "table_row_wise",
            lambda shards: [shard.update(device=1 + i) for i, shard in enumerate(shards)],
            r"shards\[0\]\.device: expected 0, as the slices of rows are .* in order, got 1",
        ),
        (
            "grid_shard",
            lambda shards: [shards[i].update(column_offset=32 * (i in (1, 2))) for i in range(4)],
            r"shards\[1\]: expected 32 columns from 0 on, as those before it have, got 32 from 32",
        ),
    ],
)
def test_slices_of_rows_in_another_order(tmp_path, kind, change, text):
    module = make_collection(ROWS)
    _, path = saved(tmp_path, rows_planner(kind, (4, 2)), module)
    changed(path, lambda content: change(content["tables"][0]["shards"]))
    with pytest.raises(PlannerError, match=rf"\.t0: {text}"):
        rows_planner(kind, (4, 2), plan_loader=SavedPlan(path)).plan(module, SHARDERS)


def changed(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda c: c.update(format="neuroshard/plan/1"), "format: expected 'neuroshard/torchrec-"),
        (lambda c: c.pop("world_size"), "world_size: expected an integer from 1 to 65536, got nothing"),
        (lambda c: c.update(extra=1), "expected no field 'extra'"),
        (lambda c: c.update(tables=[]), "tables: expected a list of at least one object, got list"),
        (
            lambda c: c["tables"][1].update(sharding_type="by_magic"),
            r"tables\[1\]\.sharding_type: expected one of data_parallel, .* got 'by_magic'",
        ),
        (
            lambda c: c["tables"][0]["shards"][0].update(device=2),
            r"tables\[0\]\.shards\[0\]\.device: expected an integer from 0 to 1, got 2",
        ),
        (
            lambda c: c["tables"][0]["shards"][0].update(num_rows=7),
            r"tables\[0\]: shards: expected all 12800000 elements of the table, got ",
        ),
        (
            lambda c: c["tables"][0]["shards"].append(c["tables"][0]["shards"][0]),
            r"tables\[0\]: shards: expected each part of the table once, got some twice",
        ),
        (
            lambda c: c["tables"][0]["shards"][0].update(num_columns=1 << 20),
            r"tables\[0\]: shards\[0\]: expected a part of 100000 rows and 128 columns",
        ),
        (
            lambda c: c["tables"].append(c["tables"][0]),
            r"tables\[5\]: expected each table once, got '\.t0' again",
        ),
        (
            lambda c: c["tables"][2]["shards"][0]["perf_ms"].update(fwd_comms="fast"),
            r"tables\[2\]\.shards\[0\]\.perf_ms\.fwd_comms: expected 0 or a number between 1e-30 ",
        ),
    ],
)
def test_files_that_are_no_plans(tmp_path, change, text):
    _, path = saved(tmp_path, make_planner(make_topology(2, 8 << 30)), make_collection(SIZES))
    with pytest.raises(InputError, match=text) as caught:
        load_plan(changed(path, change))
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('"world_size": 2', '"world_size": 2, "world_size": 2', "world_size: expected this field once"),
        ('"hbm": 160000', '"hbm": NaN', "line 8, column 31: .* invalid literal"),
        ('"9a41f0"', "[" * 64 + "]" * 64, "context.*: expected at most 64 levels of nesting"),
        ('"9a41f0"', '"\\ud800"', "surrogate"),
        ('"cuda"', '"gpu"', "compute_device: expected one of cpu, cuda, mtia, got 'gpu'"),
        ('"world_size": 2', '"world_size": 65537', "world_size: expected an integer from 1 to 65536"),
        ("1000, ", "4398046511105, ", r"num_embeddings: expected an integer from 1 to 4398046511104"),
        ('"embedding_dim": 64', '"embedding_dim": 65537', "expected an integer from 1 to 65536"),
        ("0.5", "1e31", "perf_ms.fwd_compute: expected 0 or a number between 1e-30 and 1e.30"),
        ("0.5", "1" + "0" * 400, "expected a number that a double can hold"),
    ],
)
def test_what_is_not_strict_json_is_refused(tmp_path, old, new, text):
    path = tmp_path / "plan.json"
    example = documents_example()
    assert old in example
    path.write_text(example.replace(old, new, 1))
    with pytest.raises(InputError, match=text) as caught:
        SavedPlan(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_plan_beyond_the_limit_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "plan.json"
    path.write_text(documents_example() + " " * 65536)
    monkeypatch.setenv("NEUROSHARD_MAX_INPUT", "64KiB")
    for name in (path, "/dev/zero"):
        with pytest.raises(InputError) as caught:
            SavedPlan(name)
        expected = f"{name}: expected at most 64.00 KiB (NEUROSHARD_MAX_INPUT), got "
        assert str(caught.value).startswith(expected)


def test_a_plan_of_many_shards_takes_no_longer_than_its_file(tmp_path):
    number = 20_000
    content = json.loads(documents_example())
    [table, _] = content["tables"]
    table.update(num_embeddings=number, embedding_dim=64, sharding_type="row_wise")
    table["shards"] = [
        {"row_offset": row, "num_rows": 1, "column_offset": 0, "num_columns": 64, "device": row % 2}
        for row in range(number)
    ]
    (tmp_path / "plan.json").write_text(json.dumps(content))
    begin = time.monotonic()
    SavedPlan(tmp_path / "plan.json")
    assert time.monotonic() - begin < 20.0
    table["shards"][-1]["row_offset"] = 7
    (tmp_path / "plan.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="expected each part of the table once, got some twice"):
        SavedPlan(tmp_path / "plan.json")


def test_saved_plans_of_any_content_keep_the_promise():
    """Generated ones: right, and damaged as values, as text and as bytes."""
    result = workers.torture("SavedPlan", seed=1, first=0, runs=400, processes=2)
    told = [f"--call SavedPlan --first {each.number}: {each.reason}" for each in result.failures]
    assert told == []
    assert result.tries == 400
    assert 100 < result.returned < 300


def test_what_cannot_be_saved_or_read(tmp_path):
    with pytest.raises(InputError, match="expected a planner that has planned"):
        save_plan(make_planner(make_topology(2, 8 << 30)), tmp_path / "plan.json")
    with pytest.raises(InputError, match="expected a readable file, got No such file"):
        load_plan(tmp_path / "plan.json")
    (tmp_path / "plan.json").write_text("[1, ")
    with pytest.raises(InputError, match="line 1, column 4: expected .*, got unexpected end of input"):
        SavedPlan(tmp_path / "plan.json")
    with pytest.raises(InputError, match="plan_loader: expected a PlanLoader, got int"):
        make_planner(make_topology(2, 8 << 30), plan_loader=3)
    planner = make_planner(make_topology(2, 8 << 30))
    planner.plan(make_collection(SIZES), SHARDERS)
    with pytest.raises(InputError, match="expected a writable file, got No such"):
        save_plan(planner, tmp_path / "no-such-folder" / "plan.json")


HASH = """
import sys
sys.path.insert(0, sys.argv[1])
from test_lasting_plans import *
constraints = {
    "t0": ParameterConstraints(pooling_factors=[2.0], compute_kernels=["fused", "fused_uvm"]),
    "t1": ParameterConstraints(cache_params=CacheParams(load_factor=0.2)),
}
for objective in ("torchrec", "measured"):
    topology = make_topology(4, 8 << 30, "cuda", local=2)
    planner = make_planner(topology, constraints, objective=objective)
    plan = planner.plan(make_collection(SIZES), SHARDERS)
    print(planner.hash_planner_context_inputs_str(), sorted(placements(plan).items()))
"""


def test_hashes_and_plans_are_the_same_in_every_process():
    outputs = set()
    for seed in ("0", "1", "77"):
        run = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", HASH, str(Path(__file__).parent)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(run.stdout)
    assert len(outputs) == 1
    lines = outputs.pop().splitlines()
    assert lines[0].split()[0] == lines[1].split()[0], "the objective does not count"


def test_hashes_tell_tasks_apart():
    def hash_of(sizes=SIZES, world=2, batch_size=512, **constraint):
        constraints = {"t0": ParameterConstraints(**constraint)} if constraint else None
        planner = make_planner(make_topology(world, 8 << 30), constraints, batch_size=batch_size)
        planner.plan(make_collection(sizes), SHARDERS)
        assert planner.hash_planner_context_inputs() == int(planner.context_hash, 16)
        return planner.context_hash

    assert hash_of() == hash_of()
    others = [
        hash_of(SIZES[:4]),
        hash_of(world=4),
        hash_of(batch_size=256),
        hash_of(pooling_factors=[3.0]),
        hash_of(min_partition=32),
        hash_of([*SIZES[:4], (1_000_001, 64)]),
    ]
    assert len({hash_of(), *others}) == 7
    with pytest.raises(InputError, match="expected a planner that has planned"):
        make_planner(make_topology(2, 8 << 30)).hash_planner_context_inputs_str()


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


def test_a_plan_is_saved_over_older_ones_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = make_collection(SIZES)
    planner = make_planner(make_topology(2, 8 << 30))
    _, path = saved(tmp_path, planner, module)
    content = path.read_bytes()
    save_plan(planner, path)
    assert path.read_bytes() == content
    # Not over what a planner was given.
    os.link("plan.json", "same.json")
    for options in ({"plan_loader": SavedPlan(path)}, {"previous_plan": "plan.json", "max_move": 1.0}):
        other = make_planner(make_topology(2, 8 << 30), **options)
        other.plan(module, SHARDERS)
        for output in (path, "same.json"):
            with pytest.raises(InputError, match="^path: expected another file than those"):
                save_plan(other, output, force=True)
        save_plan(other, "new.json")
    (tmp_path / "costs").write_text('{"format": "neuroshard/compute-costs/1"}\n')
    with pytest.raises(InputError, match="costs: expected a new file, or force=True, got measured"):
        save_plan(planner, "costs")
    save_plan(planner, "costs", force=True)
    assert (tmp_path / "costs").read_bytes() == content == path.read_bytes()
