"""The objective "torchrec": TorchRec's estimators price all that its sharders enumerate, our search
chooses."""

import json
import logging
import random

import pytest
import torch
from conftest import make_collection, make_topology
from torch import nn
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
from torchrec.distributed.planner.perf_models import NoopPerfModel
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import ParameterConstraints, PlannerError
from torchrec.distributed.types import CacheParams
from torchrec.modules.embedding_configs import EmbeddingConfig
from torchrec.modules.embedding_modules import EmbeddingCollection

from neuroshard import InfeasibleError, InputError
from neuroshard.torchrec import NeuroShardPlanner, choice
from neuroshard.torchrec.enumeration import OptionEnumerator, in_stable_order
from neuroshard.torchrec.estimates import shard_estimates

# What is said of our models' range: test_usual_jobs.py.
pytestmark = pytest.mark.filterwarnings("ignore::neuroshard.ExtrapolationWarning")
SHARDERS = [EmbeddingBagCollectionSharder(), EmbeddingCollectionSharder()]
NO_RESERVATION = FixedPercentageStorageReservation(percentage=0.0)


def make_planner(topology, constraints=None, kind=NeuroShardPlanner, **options):
    options.setdefault("batch_size", 512)
    options.setdefault("debug", False)
    return kind(
        topology=topology, constraints=constraints, storage_reservation=NO_RESERVATION, **options
    )


def gpus(world, memory, local=None):
    """Devices of this much memory on hosts of plenty."""
    return Topology(
        world_size=world,
        local_world_size=local or world,
        compute_device="cuda",
        hbm_cap=memory,
        ddr_cap=64 << 30,
    )


def make_sequences(sizes):
    """An EmbeddingCollection of tables s0, s1, ... of 32 columns."""
    return EmbeddingCollection(
        device=torch.device("meta"),
        tables=[
            EmbeddingConfig(
                name=f"s{i}", num_embeddings=rows, embedding_dim=32, feature_names=[f"g{i}"]
            )
            for i, rows in enumerate(sizes)
        ],
    )


def rating(options, topology, module, constraints=None):
    """A plan's cost by an enumerator that the planner never saw, and each rank's HBM and DDR."""
    enumerator = EmbeddingEnumerator(topology, batch_size=512, constraints=constraints)
    enumerator.enumerate(module, SHARDERS)  # makes it know the sharders
    enumerator.populate_estimates(options)
    hbm, ddr = [0] * topology.world_size, [0] * topology.world_size
    for option in options:
        for shard in option.shards:
            hbm[shard.rank] += shard.storage.hbm
            ddr[shard.rank] += shard.storage.ddr
    return NoopPerfModel(topology).rate(options), hbm, ddr


def random_module(seed, tables):
    draw = random.Random(seed)
    sizes = [
        (round(10 ** draw.uniform(3, 6.5)), draw.choice([16, 64, 128, 256])) for _ in range(tables)
    ]
    constraints = {
        f"t{i}": ParameterConstraints(
            pooling_factors=[draw.choice([1.0, 5.0, 30.0])],
            min_partition=draw.choice([None, 32]),
            sharding_types=["table_wise", "row_wise", "grid_shard"] if i % 7 == 3 else None,
        )
        for i in range(tables)
    }
    modules = {"bags": make_collection(sizes), "seq": make_sequences([9_000] * 3)}
    return nn.ModuleDict(modules), constraints


@pytest.mark.parametrize(
    ("world", "local", "memory"),
    [(4, 4, 8 << 30), (4, 4, 600 << 20), (8, 4, 8 << 30), (8, 2, 350 << 20), (3, 3, 2 << 30)],
)
def test_no_plan_costs_more_than_torchrecs(world, local, memory):
    for seed in range(2):
        module, constraints = random_module(seed, 14)
        topology = gpus(world, memory, local)
        theirs = make_planner(topology, constraints, EmbeddingShardingPlanner, stats=[])
        theirs.plan(module, SHARDERS)
        their_cost, _, _ = rating(theirs._best_plan, topology, module, constraints)
        ours = make_planner(topology, constraints, compare_with_torchrec="never")
        assert ours.objective == "torchrec"
        plan = ours.plan(module, SHARDERS)
        cost, hbm, ddr = rating(ours._best_plan, topology, module, constraints)
        assert max(hbm) <= memory and max(ddr) <= 64 << 30
        assert cost == pytest.approx(ours.estimates.chosen_ms, rel=1e-9)
        assert ours.estimates.lower_bound_ms <= cost * (1 + 1e-9)
        assert cost <= their_cost * (1 + 1e-9)
        assert ours.estimates.torchrec_ms is None
        assert {name for tables in plan.plan.values() for name in tables} == {
            *constraints, "s0", "s1", "s2"
        }
        assert ours.left_to_torchrec == {}


@pytest.mark.parametrize("kernel", ["key_value", "ssd_virtual_table", "dram_virtual_table"])
def test_tables_beyond_the_hosts_memory(kernel):
    """They are placed where TorchRec's planner places them, in the same search."""
    module = make_collection([(100_000, 64), (50_000, 64), (20_000, 32)])
    constraints = {"t0": ParameterConstraints(compute_kernels=[kernel])}
    for kind in (EmbeddingShardingPlanner, NeuroShardPlanner):
        options = {"stats": []} if kind is EmbeddingShardingPlanner else {}
        planner = make_planner(gpus(4, 8 << 30, 4), constraints, kind, **options)
        plan = planner.plan(module, SHARDERS).plan[""]
        assert plan["t0"].compute_kernel == kernel
        assert plan["t1"].compute_kernel == "fused"
    assert planner.left_to_torchrec == {}
    assert planner.estimates.chosen_ms <= planner.estimates.torchrec_ms * (1 + 1e-9)


def test_every_shard_is_where_its_type_puts_it():
    module, _ = random_module(1, 12)
    types = [
        "table_wise", "column_wise", "row_wise", "table_row_wise", "table_column_wise",
        "grid_shard", "data_parallel",
    ]  # fmt: skip
    constraints = {
        f"t{i}": ParameterConstraints(sharding_types=[types[i % 7]], min_partition=32)
        for i in range(12)
    }
    topology = make_topology(8, 8 << 30, "cuda", 4)
    planner = make_planner(topology, constraints, compare_with_torchrec="never")
    planner.plan(module, SHARDERS)
    for option in planner._best_plan:
        ranks = [shard.rank for shard in option.shards]
        hosts = [rank // 4 for rank in ranks]
        if option.name in constraints:
            assert option.sharding_type == constraints[option.name].sharding_types[0]
        if option.sharding_type in ("row_wise", "data_parallel"):
            assert ranks == list(range(8))
        elif option.sharding_type == "table_row_wise":
            assert ranks == list(range(4 * hosts[0], 4 * hosts[0] + 4))
        elif option.sharding_type == "table_column_wise":
            assert len(set(hosts)) == 1
        elif option.sharding_type == "grid_shard":
            for block in range(0, len(ranks), 4):
                assert ranks[block : block + 4] == list(
                    range(4 * hosts[block], 4 * hosts[block] + 4)
                )
            assert len(set(hosts)) == min(2, len(ranks) // 4)


def test_torchrecs_plan_is_a_candidate(caplog):
    module, constraints = random_module(2, 10)
    topology = make_topology(4, 8 << 30, "cuda")
    for compare, is_asked in (("auto", True), ("always", True), ("never", False)):
        planner = make_planner(topology, constraints, compare_with_torchrec=compare)
        with caplog.at_level(logging.INFO, logger="neuroshard"):
            caplog.clear()
            planner.plan(module, SHARDERS)
        estimates = planner.estimates
        assert (estimates.torchrec_ms is not None) == is_asked
        assert ("TorchRec's plan" in caplog.text) == is_asked
        assert "no plan below" in caplog.text
        known = [estimates.neuroshard_ms] + ([estimates.torchrec_ms] if is_asked else [])
        assert estimates.chosen_ms == min(known)
        assert planner.seconds.enumeration > 0 and planner.seconds.estimates > 0
        assert (planner.seconds.torchrec > 0) == is_asked


def test_torchrecs_plan_is_the_fallback(monkeypatch):
    class NoSearch:
        @staticmethod
        def choose_options(*_):
            raise InfeasibleError("no choice of options was found that fits into memory")

    module, constraints = random_module(3, 5)
    topology = make_topology(4, 8 << 30, "cuda")
    monkeypatch.setattr(choice, "_core", NoSearch)
    planner = make_planner(topology, constraints, compare_with_torchrec="never")
    planner.plan(module, SHARDERS)
    assert planner.estimates.neuroshard_ms is None
    assert planner.estimates.chosen_ms == planner.estimates.torchrec_ms


def test_where_nothing_fits_it_says_what_would():
    collection = make_collection([(1_000_000, 64)] * 8)  # 2 GB in all
    topology = make_topology(2, 256 << 20, "cuda")
    topology = gpus(2, 256 << 20)
    fused = {f"t{i}": ParameterConstraints(compute_kernels=["fused"]) for i in range(8)}
    with pytest.raises(PlannerError) as caught:
        make_planner(topology, fused).plan(collection, SHARDERS)
    text = str(caught.value)
    assert "hbm: the tables' smallest options have 1.9" in text
    assert "allowing kernels that keep tables in the host's memory (fused_uvm, " in text
    assert "for t0, t1, t2, ..., or at least 8 devices of this memory" in text
    # And so it is.
    planner = make_planner(topology)
    planner.plan(collection, SHARDERS)
    assert any("uvm" in option.compute_kernel for option in planner._best_plan)

    table = make_collection([(1_500_000, 64)])  # 366 MiB
    whole = {
        "t0": ParameterConstraints(compute_kernels=["fused"], sharding_types=["table_wise"])
    }
    with pytest.raises(PlannerError, match=r"allowing all sharding types \(row_wise among them\)"):
        make_planner(topology, whole).plan(table, SHARDERS)


def test_caches_are_as_large_as_the_memory_permits():
    collection = make_collection([(1_000_000, 64)] * 8)
    topology = gpus(2, 700 << 20)
    theirs = make_planner(topology, None, EmbeddingShardingPlanner, stats=[])
    theirs.plan(collection, SHARDERS)
    planner = make_planner(topology)
    plan = planner.plan(collection, SHARDERS)
    cost, hbm, _ = rating(planner._best_plan, topology, collection)
    assert max(hbm) <= 700 << 20
    assert cost <= 0.9 * rating(theirs._best_plan, topology, collection)[0]
    cached = [o for o in planner._best_plan if o.compute_kernel == "fused_uvm_caching"]
    assert cached
    for option in cached:
        given = plan.plan[""][option.name].cache_params
        assert (given.load_factor if given else None) == option.cache_load_factor
    # A size that the user gives stays.
    fixed = {
        f"t{i}": ParameterConstraints(
            compute_kernels=["fused_uvm_caching"], cache_params=CacheParams(load_factor=0.3)
        )
        for i in range(8)
    }
    planner = make_planner(topology, fixed)
    planner.plan(collection, SHARDERS)
    assert {option.cache_load_factor for option in planner._best_plan} == {0.3}


def test_estimates_of_equal_shards_are_those_of_all():
    module, constraints = random_module(4, 8)
    topology = make_topology(8, 8 << 30, "cuda", 4)
    ours = OptionEnumerator(topology, batch_size=512, constraints=constraints)
    options = ours.enumerate(module, SHARDERS)
    estimates = shard_estimates(options, ours)
    stock = EmbeddingEnumerator(topology, batch_size=512, constraints=constraints)
    theirs = in_stable_order(stock.enumerate(module, SHARDERS))
    assert len(theirs) == len(options)
    for option, known, other in zip(options, estimates, theirs):
        assert (option.fqn, option.sharding_type) == (other.fqn, other.sharding_type)
        shards = [equal for equal in known for _ in range(equal.number)]
        assert [s.perf for s in shards] == [s.perf for s in other.shards]
        assert [s.storage for s in shards] == [s.storage for s in other.shards]
    # The search space that planners' hashes are of is TorchRec's, in an order of our own.
    assert [o.storage_hash() for o in ours.last_stored_search_space] == [
        o.storage_hash() for o in theirs
    ]
    assert all(s.storage and s.perf for o in ours.last_stored_search_space for s in o.shards)


def test_hashes_of_the_inputs_are_those_of_the_inputs():
    module, constraints = random_module(4, 4)
    hashes = []
    for memory in (8 << 30, 8 << 30, 300 << 30):
        topology = make_topology(4, memory, "cuda")
        planner = make_planner(topology, constraints, compare_with_torchrec="never")
        planner.plan(module, SHARDERS)
        hashes.append(planner.hash_planner_context_inputs_str())
    assert hashes[0] == hashes[1] != hashes[2]


def test_an_estimator_that_sees_all_shards_together():
    class Crowded:
        """Each shard costs as much as there are shards of its table."""

        def estimate(self, sharding_options, sharder_data_map=None, **_):
            for option in sharding_options:
                for shard in option.shards:
                    shard.perf.fwd_compute = float(len(option.shards))

    module, constraints = random_module(5, 6)
    topology = make_topology(4, 8 << 30, "cuda")
    planner = make_planner(topology, constraints, compare_with_torchrec="never")
    planner._enumerator._estimators.append(Crowded())
    planner.plan(module, SHARDERS)
    for option in planner._best_plan:
        assert all(s.perf.fwd_compute == len(option.shards) for s in option.shards)
    assert planner.estimates.chosen_ms == pytest.approx(
        NoopPerfModel(topology).rate(planner._best_plan), rel=1e-9
    )
    # It is what the search had: no plan is below its bound.
    assert planner.estimates.lower_bound_ms <= planner.estimates.chosen_ms * (1 + 1e-9)


def test_an_enumerator_of_ones_own():
    module, constraints = random_module(6, 6)
    topology = make_topology(4, 8 << 30, "cuda")
    own = EmbeddingEnumerator(topology, batch_size=512, constraints=constraints)
    given = make_planner(topology, constraints, enumerator=own, compare_with_torchrec="never")
    given.plan(module, SHARDERS)
    assert given.estimates.chosen_ms == pytest.approx(
        rating(given._best_plan, topology, module, constraints)[0], rel=1e-9
    )


def test_the_same_inputs_give_the_same_plan():
    module, constraints = random_module(7, 20)
    topology = make_topology(8, 500 << 20, "cuda", 4)
    plans = []
    for threads in (1, 2):
        planner = make_planner(
            topology, constraints, num_threads=threads, compare_with_torchrec="never"
        )
        planner.plan(module, SHARDERS)
        plans.append(
            [
                (o.fqn, o.sharding_type, o.compute_kernel, [s.rank for s in o.shards])
                for o in planner._best_plan
            ]
        )
    assert plans[0] == plans[1]


def test_devices_of_different_memory():
    from torchrec.distributed.planner.types import CustomTopologyData

    collection = make_collection([(500_000, 64)] * 6)
    caps = [900 << 20, 200 << 20, 200 << 20]
    topology = Topology(
        world_size=3,
        compute_device="cuda",
        custom_topology_data=CustomTopologyData({"hbm_cap": caps, "ddr_cap": [0, 0, 0]}, 3),
    )
    planner = make_planner(topology)
    planner.plan(collection, SHARDERS)
    _, hbm, _ = rating(planner._best_plan, topology, collection)
    assert all(used <= cap for used, cap in zip(hbm, caps))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"objective": "fast"}, "objective: expected torchrec or measured, got 'fast'"),
        (
            {"compare_with_torchrec": True},
            "compare_with_torchrec: expected auto or always or never, got True",
        ),
        ({"num_threads": -1}, "num_threads: expected an integer between 0 and 1024, got -1"),
        ({"num_threads": 1 << 40}, "num_threads: expected an integer between 0 and 1024"),
        ({"seed": "x"}, "seed: expected an integer between 0 and 18446744073709551615, got str"),
        ({"seed": 1 << 64}, "seed: expected an integer between 0 and 18446744073709551615, got 1"),
        ({"interconnect": 5}, "interconnect: expected text, got int"),
        ({"optimizer": "adam"}, "optimizer: expected sgd or rowwise_adagrad, got 'adam'"),
        ({"statistics": [1]}, "statistics: expected TableStatistics by table name, got list"),
        ({"statistics": {"t0": 3}}, r"statistics\['t0'\]: expected TableStatistics, got int"),
    ],
)
def test_options_that_cannot_be(options, text):
    with pytest.raises(InputError, match=text):
        make_planner(make_topology(2, 1 << 30, "cuda"), **options)


@pytest.mark.parametrize("objective", ["torchrec", "measured"])
@pytest.mark.parametrize(
    ("constraint", "device", "expected"),
    [
        ({"compute_kernels": ["dense"]}, "cpu", ("data_parallel", "dense")),
        ({"compute_kernels": ["dense"]}, "cuda", ("data_parallel", "dense")),
        (
            {"compute_kernels": ["fused_uvm"], "sharding_types": ["row_wise", "column_wise"]},
            "cuda",
            None,
        ),
    ],
)
def test_kernels_beside_fused(objective, constraint, device, expected):
    collection = make_collection([(10_000, 64)] * 2)
    constraints = {"t0": ParameterConstraints(**constraint)}
    planner = make_planner(
        make_topology(2, 1 << 30, device), constraints, objective=objective, stats=[]
    )
    plan = planner.plan(collection, SHARDERS)
    chosen = plan.plan[""]["t0"]
    if expected is not None:
        assert (chosen.sharding_type, chosen.compute_kernel) == expected
    else:
        assert chosen.compute_kernel == "fused_uvm"
        # Rows were among what was chosen from.
        listed = {o.sharding_type for o in planner._enumerator._found if o.name == "t0"}
        assert listed == {"row_wise", "column_wise"}


def test_stats_get_what_they_take():
    seen = []

    class New:
        def log(self, best_plan, enumerator, debug_stats=None, **_):
            seen.append((enumerator, debug_stats))

    class Old:
        def log(
            self, sharding_plan, topology, batch_size, storage_reservation, num_proposals,
            num_plans, run_time, best_plan, constraints=None, sharders=None, debug=True,
        ):  # fmt: skip
            seen.append(num_plans)

    planner = make_planner(make_topology(2, 1 << 30, "cuda"), stats=[New(), Old()])
    planner.plan(make_collection([(1000, 64)] * 2), SHARDERS)
    enumerator, debug_stats = seen[0]
    assert enumerator is planner._enumerator
    assert debug_stats is None or debug_stats.planner_type == "NeuroShardPlanner"
    assert len(seen) == 2


def test_the_document_of_a_search(monkeypatch):
    documents = []
    real = choice._core.choose_options

    class Core:
        @staticmethod
        def choose_options(text, *rest):
            documents.append(json.loads(text))
            return real(text, *rest)

    monkeypatch.setattr(choice, "_core", Core)
    module, constraints = random_module(8, 4)
    topology = make_topology(4, 8 << 30, "cuda", 2)
    make_planner(topology, constraints, compare_with_torchrec="never").plan(module, SHARDERS)
    document = documents[-1]
    assert document["format"] == "neuroshard/option-task/1"
    assert (document["world_size"], document["local_world_size"]) == (4, 2)
    assert {table["name"] for table in document["tables"]} >= {"bags.t0", "seq.s0"}


def test_both_figures_beside_each_other(caplog):
    collection = make_collection([(50_000, 64), (2_000, 32), (100_000, 128), (300, 16)])
    constraints = {"t2": ParameterConstraints(sharding_types=["data_parallel"])}
    topology = make_topology(2, 1 << 30, "cpu")
    planner = make_planner(topology, constraints, objective="torchrec")
    with caplog.at_level(logging.INFO, logger="neuroshard"):
        planner.plan(collection, SHARDERS)
    estimates = planner.estimates
    plan = planner.neuroshard_plan
    assert plan.replicated_tables and not plan.violations()
    assert estimates.by_models_ms == plan.predicted.cost_ms > 0
    assert estimates.torchrec_by_models_ms > 0
    assert f"by our models {estimates.by_models_ms:.3f} ms (TorchRec's plan " in caplog.text
    # Rows on all devices, as a plan of the library.
    rows = {"t0": ParameterConstraints(sharding_types=["row_wise"])}
    cuda = make_topology(2, 1 << 30, "cuda")
    models = ["analytic-a100-80gb", "a100-nvswitch"]
    planner = make_planner(cuda, rows, objective="torchrec", models=models)
    planner.plan(collection, SHARDERS)
    assert [s.num_rows for s in planner.neuroshard_plan.shards if s.table == ".t0"] == [25_000] * 2
    # Nothing is known of sequences.
    planner = make_planner(cuda, objective="torchrec", models=models)
    planner.plan(make_sequences([1000]), SHARDERS)
    assert planner.neuroshard_plan is None and planner.estimates.by_models_ms is None
    # The measured objective has both figures too.
    planner = make_planner(topology, objective="measured")
    planner.plan(collection, SHARDERS)
    assert planner.estimates.by_models_ms == planner.runtime_price.step_ms
    planner = make_planner(topology, objective="measured", runtime=None)
    planner.plan(collection, SHARDERS)
    assert planner.estimates.by_models_ms == planner.neuroshard_plan.predicted.cost_ms
    assert planner.estimates.chosen_ms == pytest.approx(
        NoopPerfModel(topology).rate(planner._best_plan)
    )


def test_devices_without_a_model_of_ours():
    collection = make_collection([(10_000, 64)] * 3)
    topology = make_topology(2, 1 << 30, "mtia")
    with pytest.raises(InputError, match="models: expected cost models, as none .* 'mtia'"):
        make_planner(topology, objective="measured").plan(collection, SHARDERS)
    planner = make_planner(topology)  # by TorchRec's estimate, which knows it
    assert planner.objective == "torchrec"
    planner.plan(collection, SHARDERS)
    assert planner.estimates.chosen_ms > 0


def test_pods_are_hosts():
    collection = make_collection([(400_000, 64)] * 5)
    topology = Topology(
        world_size=8, local_world_size=2, pod_size=2, compute_device="cuda", hbm_cap=1 << 30
    )
    rows = {f"t{i}": ParameterConstraints(sharding_types=["table_row_wise"]) for i in range(5)}
    planner = make_planner(topology, rows, compare_with_torchrec="never")
    planner.plan(collection, SHARDERS)
    for option in planner._best_plan:
        ranks = [shard.rank for shard in option.shards]
        assert ranks in ([0, 1, 2, 3], [4, 5, 6, 7])
