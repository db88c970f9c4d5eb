"""Plans in files, loaded by both planners; hashes that are the same in every process."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import RowsToo, make_collection, make_topology, shards_of
from saved_plans import SHARDERS, SIZES, make_planner, placements, saved
from torchrec.distributed.planner import EmbeddingShardingPlanner
from torchrec.distributed.planner.types import ParameterConstraints, PlannerError, PlannerErrorType
from torchrec.distributed.types import BoundsCheckMode, CacheParams

from neuroshard import InputError
from neuroshard.torchrec import SavedPlan, load_plan, save_plan

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "fuzz"))

from python_objects import workers  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::neuroshard.ExtrapolationWarning")


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
from conftest import make_collection, make_topology
from saved_plans import *
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.distributed.types import CacheParams
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
