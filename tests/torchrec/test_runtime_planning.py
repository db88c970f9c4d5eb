"""Plans by the costs of TorchRec's runtime: what is chosen, kept, warned of and refused."""

import json
import subprocess
import sys
import warnings

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
from torchrun_processes import COLLECT, torchrun

from neuroshard import InputError, TableStatistics, _core
from neuroshard.runtime import LayoutCosts, RuntimeCosts, Setup
from neuroshard.runtime.drawing import types_of
from neuroshard.runtime.operators import OPERATOR_WORK, unmeasured_operators
from neuroshard.runtime.trained_work import TrainedWork
from neuroshard.runtime.work import KINDS, WORK
from neuroshard.torchrec import NeuroShardPlanner
from neuroshard.torchrec.reference import without_taken


class AllTypes(EmbeddingBagCollectionSharder):
    """TorchRec runs rows on CPUs, and does not offer them."""

    def sharding_types(self, compute_device_type):
        return [kind.value for kind in ShardingType if kind != ShardingType.GRID_SHARD]


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
