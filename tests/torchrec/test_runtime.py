"""TorchRec's runtime on gloo: every sharding type runs, is measured, and is priced."""

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
import torch
from conftest import make_collection, make_topology
from torch import nn
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import ParameterConstraints, PlannerError
from torchrec.distributed.types import ShardingPlan, ShardingType
from torchrec.modules.embedding_configs import EmbeddingConfig
from torchrec.modules.embedding_modules import EmbeddingCollection

from neuroshard import InputError, TableStatistics, _core
from neuroshard.runtime import LayoutCosts, RuntimeCosts, Setup, read_samples
from neuroshard.runtime.drawing import types_of
from neuroshard.runtime.operators import OPERATOR_WORK, unmeasured_operators
from neuroshard.runtime.trained_work import TrainedWork
from neuroshard.runtime.work import KINDS, WORK
from neuroshard.torchrec import NeuroShardPlanner
from neuroshard.torchrec.reference import without_taken
from neuroshard.torchrec.runtime.collecting import main, parser

LAYOUTS = [(2, 2), (4, 2)]


class AllTypes(EmbeddingBagCollectionSharder):
    """TorchRec runs rows on CPUs, and does not offer them."""

    def sharding_types(self, compute_device_type):
        return [kind.value for kind in ShardingType if kind != ShardingType.GRID_SHARD]


def torchrun(processes, *arguments, check=True):
    run = subprocess.run(
        [
            *(sys.executable, "-W", "ignore", "-m", "torch.distributed.run"),
            *("--standalone", "--nproc-per-node", str(processes), *map(str, arguments)),
        ],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert not check or run.returncode == 0, run.stdout[-1000:] + run.stderr[-5000:]
    return run


ALL_TYPES = """
import gc
import sys

import torch
import torch.distributed as dist
from torch.distributed._shard.sharded_tensor import ShardedTensor

from neuroshard.runtime.drawing import shards_of, types_of
from neuroshard.runtime.work import KINDS, Setup, ShardedModule, ShardedTable
from neuroshard.torchrec.runtime.measuring import MeasuredModel
from neuroshard.torchrec.runtime.processes import gloo_processes

SIZES = [(101, 32, 3.0, 1), (50, 32, 1.0, 1), (64, 32, 4.0, 2)]


def weight(table, rows, columns):
    at = torch.arange(rows)[:, None] * 31 + torch.arange(columns)[None, :] * 7 + table
    return (at % 97).float() / 97


def shards(sharding_type, rows, columns, setup, number):
    ranks = [number % setup.world_size]
    if sharding_type == "column_wise":
        ranks = [setup.world_size - 1, 0]
    if sharding_type == "table_column_wise":
        ranks = [2, 3]
    hosts = [0, 1] if sharding_type == "grid_shard" else [number % 2]
    return shards_of(sharding_type, rows, columns, setup, ranks=ranks, hosts=hosts)


def initialize(model):
    for name, value in model.state_dict().items():
        table = int(name.split("_")[-1].split(".")[0])
        whole = weight(table, *SIZES[table][:2])
        if not isinstance(value, ShardedTensor):
            value.copy_(whole)
            continue
        for shard in value.local_shards():
            (row, column), (rows, columns) = shard.metadata.shard_offsets, shard.metadata.shard_sizes
            shard.tensor.copy_(whole[row : row + rows, column : column + columns])


def check(kind, types, setup):
    tables = tuple(
        ShardedTable(each, rows, columns, lookups, shards(each, rows, columns, setup, i), features)
        for i, ((rows, columns, lookups, features), each) in enumerate(zip(SIZES, types))
    )
    measured = MeasuredModel([ShardedModule(kind, tables)], setup, "sgd", 3)
    initialize(measured.model)
    [batch] = measured.batch()
    found = measured.model.module.m0(batch)
    found = found.to_dict() if kind == "pooled" else dict(found.wait())
    assert found.keys() == set(batch.keys())
    for key, output in found.items():
        table = int(key.split("_")[1])
        whole = weight(table, *SIZES[table][:2])
        lookups = batch[key]
        if kind == "sequence":
            torch.testing.assert_close(output.values(), whole[lookups.values()])
            continue
        offsets = lookups.lengths().cumsum(0) - lookups.lengths()
        expected = torch.nn.functional.embedding_bag(lookups.values(), whole, offsets, mode="sum")
        torch.testing.assert_close(output, expected)
    for _ in range(3):
        measured.step()
    for forward_ms, backward_ms, *operator in measured.times:
        # A process may have no table.
        assert 0 <= operator[0] < forward_ms and 0 <= operator[1] < backward_ms, measured.times
        assert operator[0] > 0 or setup.world_size > 2, measured.times


with gloo_processes(2, 1) as layout:
    setup = Setup(*layout, batch_size=6)
    for kind in KINDS:
        types = types_of(kind, setup)
        for each in types:
            check(kind, [each] * len(SIZES), setup)
        check(kind, types[:3], setup)
        print(f"{kind}: {len(types)} types", flush=True)
"""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_type_looks_up_what_whole_tables_have(tmp_path, layout):
    script = tmp_path / "all_types.py"
    script.write_text(ALL_TYPES)
    run = torchrun(layout[0], script)
    for kind, types in (("pooled", 4 if layout == (2, 2) else 7), ("sequence", 3)):
        assert run.stdout.count(f"{kind}: {types} types") == layout[0], run.stdout


COLLECT = ("-m", "neuroshard.collect", "--communication", "--max-rows", 2000)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_steps_are_measured_and_files_continued(tmp_path, layout):
    path = tmp_path / "costs.jsonl"
    more = ("--repetitions", 4, "--batch-size", "64,128", "--local-world-size", 2, "-o", path)
    torchrun(layout[0], *COLLECT, *more, "--samples", 8)
    first = read_samples(path)
    assert first.layout == layout and len(first.samples) == 8
    for sample in first.samples:
        assert len(sample.operator_ms) == layout[0]
        assert max(f + b for f, b in sample.operator_ms) < sample.step_ms
    if layout != (2, 2):
        return
    with path.open("a") as file:
        file.write('{"index": 8, "task"')  # a run that was stopped
    run = torchrun(2, *COLLECT, *more, "--samples", 16)
    assert "8 samples measured" in run.stderr
    found = read_samples(path)
    assert found.samples[:8] == first.samples
    assert [sample.index for sample in found.samples] == list(range(16))
    # A time limit that has passed: nothing is begun. And another's file is not continued.
    run = torchrun(2, *COLLECT, *more, "--samples", 24, "--time-limit", 1e-9)
    assert "0 samples measured" in run.stderr
    run = torchrun(2, *COLLECT, *more, "--samples", 24, "--seed", 1, check=False)
    assert run.returncode != 0
    assert "sampling: expected" in run.stderr


def torchrun_in_background(processes, *arguments):
    return subprocess.Popen(
        [
            *(sys.executable, "-W", "ignore", "-m", "torch.distributed.run"),
            *("--standalone", "--nproc-per-node", str(processes), *map(str, arguments)),
        ],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_samples(run, path, number):
    """Until the file has as many, and perhaps more."""
    for _ in range(1200):
        if path.exists() and path.read_bytes().count(b"\n") > number:
            return
        if run.poll() is not None:
            break
        time.sleep(0.1)
    run.kill()
    pytest.fail(run.communicate()[1][-3000:])


def children_of(pid):
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("to_one", [False, True], ids=["torchrun", "one process"])
def test_a_run_that_is_stopped_ends_in_order(tmp_path, to_one):
    path = tmp_path / "costs.jsonl"
    more = (*COLLECT, "--repetitions", 4, "--batch-size", "64", "-o", path)
    run = torchrun_in_background(2, *more, "--samples", 100_000)
    wait_for_samples(run, path, 8)
    # Meanwhile another run may not write to the file, and says so on all processes.
    other = torchrun(2, *more, "--samples", 100_000, check=False)
    assert f"{path}: expected a file that nobody else is writing" in other.stderr
    os.kill(children_of(run.pid)[-1] if to_one else run.pid, signal.SIGTERM)
    said = run.communicate(timeout=60)[1]
    assert run.returncode != 0
    found = read_samples(path)
    assert f"{path}: {len(found.samples)} samples measured" in said
    assert "neuroshard.collect: stopped by SIGTERM" in said
    if to_one:  # as torchrun reports it
        assert "exitcode  : 143" in said
    assert len(found.samples) % 8 == 0 and path.read_bytes().endswith(b"\n")
    torchrun(2, *more, "--samples", len(found.samples) + 8)
    assert read_samples(path).samples[: len(found.samples)] == found.samples


def test_a_run_that_is_killed_keeps_its_samples(tmp_path):
    path = tmp_path / "costs.jsonl"
    more = (*COLLECT, "--repetitions", 4, "--batch-size", "64", "-o", path)
    run = torchrun_in_background(2, *more, "--samples", 100_000)
    wait_for_samples(run, path, 8)
    for pid in children_of(run.pid):
        os.kill(pid, signal.SIGKILL)
    run.communicate(timeout=60)
    before = read_samples(path).samples[:8]
    assert len(before) == 8
    # A header that was cut is written anew; another file's beginning stays.
    header = path.read_bytes().split(b"\n")[0]
    for content in (b"", header[: len(header) // 2], header):
        path.write_bytes(content)
        torchrun(2, *more, "--samples", 8)
        assert [sample.modules for sample in read_samples(path).samples] == [
            sample.modules for sample in before
        ]
    path.write_bytes(b"{")
    torchrun(2, *more, "--samples", 8)
    path.write_bytes(b"notes")
    run = torchrun(2, *more, "--samples", 8, check=False)
    assert run.returncode != 0 and path.read_bytes() == b"notes"
    run = torchrun(2, *more[:-1], f"{path}.gz", "--samples", 8, check=False)
    assert "expected an uncompressed file to append to" in run.stderr


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0.0), ("0.0", 0.0), ("1.5", 1.5), ("500ms", 0.5), ("10min", 600.0), ("1e308", 1e308)],
)
def test_time_limits(text, seconds):
    assert parser().parse_args(["-o", "costs", "--time-limit", text]).time_limit == seconds


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "-inf", "1e400", "infs", "-1s", "0s", "soon", ""])
def test_time_limits_that_mean_nothing(text, capsys):
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(["-o", "costs", f"--time-limit={text}"])
    assert ended.value.code == 2
    assert "argument --time-limit: time limit: expected " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (["--samples", 10**30], "--samples: expected an integer between 1 and 1000000000, got 1000"),
        (["--local-world-size=-1"], "--local-world-size: expected an integer between 0 and"),
        (["--seed=-1"], "--seed: expected an integer between 0 and"),
        (["--threads", 0], "--threads: expected an integer between 1 and 1024, got 0"),
    ],
)
def test_numbers_that_mean_nothing(tmp_path, more, text, capsys):
    assert main(["-o", str(tmp_path / "costs.jsonl"), *map(str, more)]) == 2
    assert text in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_collecting_needs_torchrun():
    run = subprocess.run(
        [sys.executable, "-W", "ignore", *map(str, COLLECT), "-o", "/tmp/costs.jsonl"],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert run.returncode == 2
    assert "expected processes of torchrun" in run.stderr


def costs_file(path, world_size=2, local_world_size=2, trained=None, **of_pass):
    """Costs that are 0 but for these, forward and backward."""
    layout = LayoutCosts(
        world_size,
        local_world_size,
        forward=dict.fromkeys(WORK, 0.0) | of_pass,
        backward=dict.fromkeys(WORK, 0.0) | of_pass,
        operators={kind: unmeasured_operators(kind) for kind in OPERATOR_WORK},
        types={kind: types_of(kind, Setup(world_size, local_world_size, 1)) for kind in KINDS},
        trained=TrainedWork(trained or {}),
    )
    RuntimeCosts("fbgemm-cpu-epyc", (layout,)).write(path)
    return str(path)


SIZES = [(20_000, 32), (50_000, 64), (10_000, 16), (30_000, 64), (8_000, 32)]


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.bags = make_collection(SIZES)
        self.sequences = EmbeddingCollection(
            device=torch.device("meta"),
            tables=[
                EmbeddingConfig(
                    name=f"s{i}", num_embeddings=20_000, embedding_dim=32, feature_names=[f"g{i}"]
                )
                for i in range(3)
            ],
        )


def constraints(sharding_types=None):
    names = [f"t{i}" for i in range(len(SIZES))] + [f"s{i}" for i in range(3)]
    return {
        name: ParameterConstraints(
            pooling_factors=[5.0], min_partition=16, sharding_types=sharding_types
        )
        for name in names
    }


def make_planner(runtime, world=2, memory=1 << 32, types=None, **options):
    return NeuroShardPlanner(
        topology=make_topology(world, memory, local=2),
        batch_size=1024,
        storage_reservation=FixedPercentageStorageReservation(percentage=0.0),
        constraints=constraints(types),
        debug=False,
        runtime=runtime,
        **options,
    )


def planned(planner, module=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = planner.plan(module or Both(), [AllTypes(), EmbeddingCollectionSharder()])
    return {
        name: parameter.sharding_type
        for of_module in plan.plan.values()
        for name, parameter in of_module.items()
    }


@pytest.mark.parametrize(
    ("costs", "types"),
    [
        ({"reduced": 50.0, "sequences": 1.0, "all_reduced": 50.0}, {"table_wise", "column_wise"}),
        ({"all_to_alls": 500.0, "all_reduced": 50.0}, {"row_wise"}),
        ({"exchanged": 50.0, "reduced": 50.0, "sequences": 50.0}, {"data_parallel"}),
    ],
)
def test_the_types_that_cost_least_are_chosen(tmp_path, costs, types):
    planner = make_planner(costs_file(tmp_path / "costs.json", **costs))
    found = planned(planner)
    assert planner.left_to_torchrec == {}
    of_bags = {kind for name, kind in found.items() if name.startswith("t")}
    assert of_bags <= types, found
    price = planner.runtime_price
    assert price.step_ms == price.operators_ms + price.runtime_ms
    assert planner.estimates.by_models_ms == price.step_ms
    # TorchRec's plan for the same options is a candidate.
    assert price.step_ms <= planner.estimates.torchrec_by_models_ms


def test_more_work_than_was_measured_is_said_once(tmp_path):
    """With the largest table by name, and in the plan, where there is one."""
    outputs = 1024 * 4 * sum(width for _, width in SIZES) / (1 << 20)
    for most, is_outside in ((0.5 * outputs, True), (1.01 * outputs, False)):
        costs = costs_file(tmp_path / f"{is_outside}.json", trained={"outputs": most})
        for module, largest in ((Both(), "bags.t1"), (make_collection(SIZES), ".t1")):
            planner = make_planner(costs)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                planner.plan(module, [AllTypes(), EmbeddingCollectionSharder()])
            expected = (
                f"{is_outside}: more work than trained on: outputs {outputs:.4g} MiB "
                f'(at most {most:.4g}, largest: "{largest}")'
            )
            said = [str(warning.message) for warning in caught]
            assert said.count(expected) == is_outside, said
            assert sum("more work" in text for text in said) == is_outside
            # Our models price plans of bags alone.
            plan = planner.neuroshard_plan
            assert (plan is None) == isinstance(module, Both)
            assert plan is None or (expected in plan.warnings) == is_outside


def test_an_operator_more_has_its_price(tmp_path):
    """Copies of small tables are worth an operator of their own, or not."""
    sends = {"exchanged": 8.0, "reduced": 20.0, "sequences": 4.0, "all_reduced": 0.3}
    cheap = planned(make_planner(costs_file(tmp_path / "a.json", **sends)))
    dear = planned(make_planner(costs_file(tmp_path / "b.json", **sends, all_reduces=1000.0)))
    assert "data_parallel" in cheap.values(), cheap
    assert "data_parallel" not in dear.values(), dear


def test_what_every_plan_has_decides_nothing(tmp_path):
    """Outputs are of a process's own samples, wherever the tables are."""

    def shards_of(**costs):
        path = costs_file(tmp_path / f"{len(costs)}.json", lookups=50.0, **costs)
        planner = make_planner(path, types=["table_wise"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan = planner.plan(Both(), [AllTypes(), EmbeddingCollectionSharder()])
        price = planner.runtime_price
        return price.runtime_ms, {
            name: parameter.ranks
            for of_module in plan.plan.values()
            for name, parameter in of_module.items()
        }

    cost, ranks = shards_of()
    more, same = shards_of(outputs=5000.0, sequence_outputs=50.0)
    assert same == ranks
    mib = 1 << 20
    outputs = 5000.0 * 1024 * 4 * sum(width for _, width in SIZES) / mib
    sequences = 50.0 * 1024 * 5.0 * 4 * 3 * 32 / mib
    assert more - cost == pytest.approx(2 * (outputs + sequences))


def test_four_processes_as_two_hosts(tmp_path):
    path = costs_file(
        tmp_path / "costs.json", 4, all_to_alls=500.0, reduce_scatters=500.0, all_reduced=50.0
    )
    planner = make_planner(path, world=4)
    found = planned(planner, make_collection(SIZES))
    assert set(found.values()) == {"table_row_wise"}


@pytest.mark.parametrize("compare", ["auto", "always", "never"])
def test_torchrecs_plan_is_a_candidate_where_it_is_asked(tmp_path, compare):
    planner = make_planner(costs_file(tmp_path / "costs.json"), compare_with_torchrec=compare)
    planned(planner)
    was_asked = compare != "never"
    assert (planner.estimates.torchrec_by_models_ms is not None) == was_asked
    assert (planner.estimates.torchrec_ms is not None) == was_asked
    assert (planner.seconds.torchrec > 0) == was_asked


def test_torchrecs_plan_is_a_candidate_next_to_what_is_left_to_it(tmp_path):
    """A table that the runtime's costs do not know, which it places first."""
    planner = make_planner(costs_file(tmp_path / "costs.json", exchanged=8.0, reduced=20.0))
    sizes = [*SIZES, (20_000, 6)]
    assert planned(planner, make_collection(sizes)).keys() == {f"t{i}" for i in range(len(sizes))}
    assert planner.left_to_torchrec.keys() == {".t5"}
    estimates = planner.estimates
    assert estimates.by_models_ms == planner.runtime_price.step_ms
    assert estimates.by_models_ms <= estimates.torchrec_by_models_ms
    assert estimates.torchrec_ms > 0


def test_what_tables_leave_of_the_devices(tmp_path):
    planner = make_planner(costs_file(tmp_path / "costs.json"))
    planned(planner)
    topology = make_topology(2, 1 << 32)
    left = without_taken(topology, planner._best_plan)
    for rank, device in enumerate(left.devices):
        shards = [s for option in planner._best_plan for s in option.shards if s.rank == rank]
        assert device.storage.ddr == (1 << 32) - sum(shard.storage.ddr for shard in shards)
        assert device.perf.total == pytest.approx(sum(shard.perf.total for shard in shards))
        assert topology.devices[rank].storage.ddr == 1 << 32
    assert without_taken(topology, []) is topology


def test_costs_of_another_processor_are_said(tmp_path, caplog):
    path = tmp_path / "costs.json"
    costs_file(path)
    make_planner(str(path))
    assert "measured on" not in caplog.text  # nothing is known of the processor
    content = json.loads(path.read_text())
    here = json.loads(_core.cpu_hardware())
    for change, text in (
        ({}, ""),
        ({"name": "Another CPU"}, "another processor: name Another CPU ("),
        ({"l3_bytes": 7}, "another processor: l3_bytes 7 ("),
    ):
        caplog.clear()
        path.write_text(json.dumps(content | {"hardware": here | change}))
        make_planner(str(path))
        assert ("measured on" in caplog.text) == bool(text)
        assert text in caplog.text


def test_what_users_allow_is_kept(tmp_path):
    path = costs_file(tmp_path / "costs.json", all_to_alls=500.0)
    assert set(planned(make_planner(path, types=["table_wise"])).values()) == {"table_wise"}


def test_memory_is_kept(tmp_path):
    path = costs_file(tmp_path / "costs.json")
    with pytest.raises(PlannerError):
        planned(make_planner(path, memory=1 << 20))
    # Copies would be cheapest; there is room for little more than the tables once.
    tight = costs_file(tmp_path / "tight.json", exchanged=50.0, reduced=50.0, sequences=50.0)
    planner = make_planner(tight, memory=40 << 20)
    planned(planner)
    used = [0, 0]
    for option in planner._best_plan:
        for shard in option.shards:
            used[shard.rank] += shard.storage.ddr
    assert max(used) <= 40 << 20


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"world": 4}, r"runtime: expected 2 \(2 a host\) processes"),
        ({"objective": "torchrec"}, "runtime: expected objective='measured'"),
        ({"runtime": "no-such"}, "runtime: expected a file or one of"),
        ({"runtime": 7}, "runtime: expected a name or a path, got int"),
    ],
)
def test_settings_that_cannot_be(tmp_path, options, text):
    given = {"runtime": costs_file(tmp_path / "costs.json")} | options
    with pytest.raises(InputError, match=text):
        make_planner(**given)


@pytest.mark.parametrize(
    "options",
    [{"devices": {"t0": [0]}}, {"same_device_as": {"t1": "t0"}}, {"previous_plan": ShardingPlan({})}],
)
def test_what_only_plans_by_columns_keep_to_is_refused_next_to_it(tmp_path, options):
    [name] = options
    with pytest.raises(InputError, match=f"{name}: expected none next to runtime"):
        make_planner(costs_file(tmp_path / "costs.json"), **options)


@pytest.mark.parametrize(
    ("options", "is_known"),
    [
        ({}, True),
        ({"world": 4}, True),
        ({"world": 6}, False),
        ({"models": ["fbgemm-cpu-xeon"]}, False),
        ({"devices": {"t0": [0]}}, False),
        ({"objective": "torchrec"}, False),
    ],
)
def test_shipped_costs_are_the_default_where_they_were_measured(options, is_known):
    planner = make_planner("auto", **options)
    module = make_collection(SIZES)
    planned(planner, module)
    assert (planner.runtime_price is not None) == is_known
    assert planned(make_planner(None, **options), module)


def test_statistics_of_other_tables_are_refused(tmp_path):
    statistics = {"no-such": TableStatistics(1.0, [1.0] + [0.0] * 16, 2048)}
    planner = make_planner(costs_file(tmp_path / "costs.json"), statistics=statistics)
    with pytest.raises(InputError, match="got 'no-such'"):
        planned(planner)


def test_whole_tables_are_called_so(tmp_path):
    """Columns in one piece, next to none that are cut, are table-wise."""
    sends = {"all_reduced": 50.0, "reduced": 50.0, "permuted": 50.0}
    found = planned(make_planner(costs_file(tmp_path / "costs.json", **sends)))
    assert set(found.values()) == {"table_wise"}


def test_other_devices_are_refused(tmp_path):
    with pytest.raises(InputError, match="runtime: expected the compute device 'cpu'"):
        NeuroShardPlanner(
            topology=make_topology(2, 1 << 32, device="cuda"),
            objective="measured",
            runtime=costs_file(tmp_path / "costs.json"),
        )


def test_costs_come_from_a_file_of_the_collectors(tmp_path):
    """From measured steps to a plan, by the documented commands."""
    samples = tmp_path / "costs.jsonl"
    torchrun(
        2,
        *COLLECT,
        *("--repetitions", 4, "--batch-size", "64", "--samples", 40, "-o", samples),
    )
    output = tmp_path / "runtime.json"
    run = subprocess.run(
        [sys.executable, "-m", "neuroshard.runtime", str(samples), "-o", str(output)],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert run.returncode == 0, run.stderr
    assert "held out" in run.stdout
    assert json.loads(output.read_text())["layouts"][0]["errors"]["held_out"]["samples"] == 8
    planner = make_planner(str(output))
    assert planned(planner)
    assert planner.runtime_price.runtime_ms > 0
