"""Plans through TorchRec's own types: constraints, memory by its estimator, tables left to it."""

import logging
import warnings

import pytest
import torch
from conftest import RowsToo, make_collection, make_topology, shards_of
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import ParameterConstraints, PlannerError, Topology
from torchrec.modules.embedding_configs import DataType, EmbeddingBagConfig, EmbeddingConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection, EmbeddingCollection

from neuroshard import ExtrapolationWarning, InputError
from neuroshard.statistics import TableStatistics
from neuroshard.torchrec import NeuroShardPlanner
from neuroshard.torchrec.pieces import joined
from neuroshard.plans import Shard

pytestmark = pytest.mark.filterwarnings("ignore::neuroshard.ExtrapolationWarning")
SIZES = [(100_000, 128), (50_000, 64), (200_000, 32), (1_000, 16), (1_000_000, 64)]
NO_RESERVATION = FixedPercentageStorageReservation(percentage=0.0)


def only_fused():
    """Constraints of `SIZES` without kernels that keep tables in the host's memory."""
    return {
        f"t{i}": ParameterConstraints(compute_kernels=["fused"]) for i in range(len(SIZES))
    }


def make_planner(topology, constraints=None, **options):
    """With our models; test_estimates.py has TorchRec's."""
    options.setdefault("objective", "measured")
    options.setdefault("storage_reservation", NO_RESERVATION)
    options.setdefault("batch_size", 512)
    return NeuroShardPlanner(topology=topology, constraints=constraints, debug=False, **options)


def used_memory(planner, plan, topology, module, sharders, constraints=None):
    """Bytes per rank by a storage estimator of TorchRec's that the planner never saw."""
    enumerator = EmbeddingEnumerator(topology, batch_size=512, constraints=constraints)
    enumerator.enumerate(module, sharders)  # makes it know the sharders
    options = planner._best_plan
    for option in options:
        for shard in option.shards:
            shard.storage = None
    enumerator.populate_estimates(options)
    used = [0] * topology.world_size
    for option in options:
        for shard in option.shards:
            storage = shard.storage
            used[shard.rank] += (
                storage.ddr if topology.compute_device == "cpu" else storage.hbm
            )
    return used


def test_every_column_is_placed_once(sharders):
    collection = make_collection(SIZES)
    plan = make_planner(make_topology(2, 8 << 30)).plan(collection, sharders)
    shards = shards_of(plan)
    assert set(shards) == {f"t{i}" for i in range(len(SIZES))}
    for i, (_, columns) in enumerate(SIZES):
        next_column = 0
        for offset, width, rank in shards[f"t{i}"]:
            assert offset == next_column
            assert rank in (0, 1)
            next_column += width
        assert next_column == columns
    for parameter in plan.plan[""].values():
        assert parameter.compute_kernel == "fused"


@pytest.mark.parametrize(
    ("device", "optimizer"),
    [("cpu", "EXACT_SGD"), ("cuda", "EXACT_SGD"), ("cuda", "EXACT_ROWWISE_ADAGRAD")],
)
def test_what_we_call_feasible_is_so_to_torchrec(device, optimizer):
    from fbgemm_gpu.split_embedding_configs import EmbOptimType

    sharders = [EmbeddingBagCollectionSharder({"optimizer": EmbOptimType[optimizer]})]
    collection = make_collection(SIZES)
    constraints = only_fused()
    constraints["t1"].pooling_factors = [20.0]
    # A piece has a state for each of its rows. TorchRec's estimator gives it a share by columns.
    states = 4 * sum(rows for rows, _ in SIZES) if "ADAGRAD" in optimizer else 0
    # Down from plenty to the least that suffices: every plan fits by TorchRec's estimate.
    tightest = None
    for memory in (2 << 30, 400 << 20, 260 << 20, 240 << 20, 220 << 20, 200 << 20, 100 << 20):
        topology = make_topology(2, memory, device)
        planner = make_planner(topology, constraints, runtime=None)
        try:
            plan = planner.plan(collection, sharders)
        except PlannerError as error:
            assert "would do" in str(error)
            with pytest.raises(PlannerError, match="would do"):
                make_planner(topology, constraints).plan(collection, sharders)
            break
        tightest = memory
        used = used_memory(planner, plan, topology, collection, sharders, constraints)
        assert max(used) <= memory
        predicted = [d.memory_bytes for d in planner.neuroshard_plan.predicted.devices]
        for ours, theirs in zip(predicted, used):
            assert theirs <= ours <= 1.01 * theirs + states
        # With all types, which on CPUs have costs.
        planner = make_planner(topology, constraints)
        plan = planner.plan(collection, sharders)
        assert (planner.runtime_price is not None) == (device == "cpu")
        assert max(used_memory(planner, plan, topology, collection, sharders, constraints)) <= memory
    else:
        raise AssertionError("100 MiB were enough for 350 MiB of tables on two devices")
    assert tightest is not None
    # The same task whole tables alone cannot fit: the largest has 244 MiB.
    assert tightest < 244 << 20


def test_the_reservation_is_kept(sharders):
    collection = make_collection(SIZES)
    topology = make_topology(2, 300 << 20, "cuda")
    make_planner(topology, only_fused()).plan(collection, sharders)
    for share, text in ((0.5, "no plan fits into memory"), (1.0, "leave no memory")):
        reservation = FixedPercentageStorageReservation(percentage=share)
        planner = make_planner(topology, only_fused(), storage_reservation=reservation)
        with pytest.raises(PlannerError, match=text):
            planner.plan(collection, sharders)


def test_torchrecs_plan_is_the_fallback(caplog):
    """Rows alone fit, which our cuts for models alone do not have; pins are kept or refused."""
    collection = make_collection([(4_000_000, 4)])
    topology = make_topology(2, 48 << 20)
    planner = make_planner(topology, runtime=None)
    plan = planner.plan(collection, [RowsToo()])
    [parameter] = plan.plan[""].values()
    assert parameter.sharding_type == "row_wise"
    assert planner.left_to_torchrec == {".t0": "our search found no plan"}
    assert planner.estimates.neuroshard_ms is None
    assert planner.estimates.torchrec_ms == planner.estimates.chosen_ms
    assert "TorchRec's plan is taken, as ours found none: no plan fits" in caplog.text
    with pytest.raises(PlannerError, match="no plan fits"):
        make_planner(topology, devices={"t0": [0, 1]}).plan(collection, [RowsToo()])


@pytest.mark.parametrize("compare", ["always", "auto", "never"])
def test_figures_of_torchrecs_plan(sharders, compare):
    """Without the runtime's costs it is asked on request alone."""
    planner = make_planner(
        make_topology(2, 8 << 30), runtime=None, compare_with_torchrec=compare
    )
    planner.plan(make_collection(SIZES), sharders)
    assert planner.estimates.by_models_ms > 0
    was_asked = planner.estimates.torchrec_ms is not None
    assert was_asked == (compare == "always")
    assert (planner.estimates.torchrec_by_models_ms is not None) == was_asked
    assert (planner.seconds.torchrec > 0) == was_asked


def test_torchrecs_plan_may_break_pins(sharders):
    """It has no cost by our models then; ours is the plan."""
    planner = make_planner(
        make_topology(2, 8 << 30),
        devices={f"t{i}": [0] for i in range(len(SIZES))},
        compare_with_torchrec="always",
    )
    shards = shards_of(planner.plan(make_collection(SIZES), sharders))
    assert {rank for parts in shards.values() for *_, rank in parts} == {0}
    assert planner.estimates.by_models_ms > 0
    assert planner.estimates.torchrec_ms is not None
    assert planner.estimates.torchrec_by_models_ms is None


def test_hosts_that_are_not_whole(sharders, caplog):
    """Tasks have equal hosts, and devices of 2^60 bytes at most."""
    planner = make_planner(make_topology(6, 1 << 62, local=4))
    assert "6 devices are no whole hosts of 4: our models count hosts of 2" in caplog.text
    plan = planner.plan(make_collection(SIZES), sharders)
    assert set(shards_of(plan)) == {f"t{i}" for i in range(len(SIZES))}
    topology = planner.neuroshard_plan.task.topology
    assert topology.local_world_size == 2
    assert topology.memory_bytes in (1 << 60, [1 << 60] * 6)
    caplog.clear()
    make_planner(make_topology(2, 8 << 30, local=4))
    assert "whole hosts" not in caplog.text


def test_rates_that_are_not_used_are_named(caplog):
    topology = Topology(
        world_size=2, compute_device="cpu", ddr_cap=8 << 30, inter_host_bw=1e6, ddr_mem_bw=1e6
    )
    make_planner(topology)
    assert "the topology's ddr_mem_bw, inter_host_bw: not used" in caplog.text
    caplog.clear()
    make_planner(topology, objective="torchrec")
    make_planner(make_topology(2, 8 << 30))
    assert "not used" not in caplog.text


def test_constraints(sharders):
    collection = make_collection([(300_000, 128)] * 4)
    constraints = {
        "t0": ParameterConstraints(sharding_types=["table_wise"], pooling_factors=[5.0]),
        "t1": ParameterConstraints(sharding_types=["column_wise"], pooling_factors=[90.0]),
        "t2": ParameterConstraints(min_partition=48, pooling_factors=[90.0]),
        "t3": ParameterConstraints(min_partition=1000, pooling_factors=[5.0]),
    }
    planner = make_planner(make_topology(4, 1 << 30), constraints)
    plan = planner.plan(collection, sharders)
    shards = shards_of(plan)
    assert len(shards["t0"]) == len(shards["t3"]) == 1
    assert plan.plan[""]["t0"].sharding_type == "table_wise"
    assert plan.plan[""]["t1"].sharding_type == "column_wise"
    assert len(shards["t1"]) > 1
    assert len(shards["t2"]) == 2  # three pieces of 48 columns are more than 128
    assert min(width for _, width, _ in shards["t2"]) >= 48
    factors = [table.pooling_factor for table in planner.neuroshard_plan.task.tables]
    assert factors == [5.0, 90.0, 90.0, 5.0]
    assert planner.left_to_torchrec == {}


def test_all_tables_are_column_wise_if_one_is_cut(sharders):
    collection = make_collection([(100_000, 64)] * 3)

    def types_of(factors, **kinds):
        constraints = {
            f"t{i}": ParameterConstraints(pooling_factors=[factor], sharding_types=kinds.get(f"t{i}"))
            for i, factor in enumerate(factors)
        }
        plan = make_planner(make_topology(2, 1 << 30), constraints).plan(collection, sharders)
        parameters = plan.plan[""]
        return [(parameters[f"t{i}"].sharding_type, len(parameters[f"t{i}"].ranks)) for i in range(3)]

    # One operator and one all-to-all for all of them, where they may.
    assert types_of([100.0, 1.0, 1.0]) == [
        ("column_wise", 2), ("column_wise", 1), ("column_wise", 1)
    ]
    columns, whole = ["column_wise"], ["table_wise"]
    assert types_of([100.0, 1.0, 1.0], t0=columns, t1=columns, t2=whole) == [
        ("column_wise", 2), ("column_wise", 1), ("table_wise", 1)
    ]
    assert types_of([2.0, 1.0, 1.0], t0=whole, t1=whole, t2=whole) == [("table_wise", 1)] * 3


def test_whole_tables_go_along_with_one_that_may_only_be_column_wise(sharders):
    collection = make_collection([(100_000, 64)] * 3)
    constraints = {f"t{i}": ParameterConstraints(min_partition=64) for i in range(3)}
    constraints["t0"].sharding_types = ["column_wise"]
    planner = make_planner(make_topology(2, 1 << 30), constraints, runtime=None)
    parameters = planner.plan(collection, sharders).plan[""].values()
    kinds = [(each.sharding_type, len(each.ranks)) for each in parameters]
    assert kinds == [("column_wise", 1)] * 3


def test_no_cuts_for_next_to_nothing(sharders):
    # Two equal tables: a half of each on both devices would be no better.
    collection = make_collection([(100_000, 64)] * 2)
    constraints = {f"t{i}": ParameterConstraints(pooling_factors=[10.0]) for i in range(2)}
    plan = make_planner(make_topology(2, 1 << 30), constraints).plan(collection, sharders)
    shards = shards_of(plan)
    assert {parts[0][2] for parts in shards.values()} == {0, 1}
    assert all(len(parts) == 1 for parts in shards.values())
    assert {p.sharding_type for p in plan.plan[""].values()} == {"table_wise"}


def test_pieces_on_one_device_are_joined():
    shards = [
        Shard("a", 0, 16, 1), Shard("a", 16, 16, 0), Shard("a", 32, 32, 1), Shard("b", 0, 8, 0)
    ]
    assert joined(shards) == [
        Shard("a", 0, 48, 1), Shard("a", 48, 16, 0), Shard("b", 0, 8, 0)
    ]


def test_every_feature_of_a_table_counts(sharders):
    features = {"t0": ["f0", "f1", "f2"], "t1": ["f3"]}
    collection = EmbeddingBagCollection(
        device=torch.device("meta"),
        tables=[
            EmbeddingBagConfig(
                name=name, num_embeddings=10_000, embedding_dim=64, feature_names=names
            )
            for name, names in features.items()
        ],
    )
    whole = ["table_wise"]
    for factors, expected in (([1.0], 3.0), ([2.0, 3.0, 4.0], 9.0)):
        constraints = {
            "t0": ParameterConstraints(sharding_types=whole, pooling_factors=factors),
            "t1": ParameterConstraints(sharding_types=whole),
        }
        planner = make_planner(make_topology(2, 1 << 30), constraints)
        shards = shards_of(planner.plan(collection, sharders))
        tables = {table.name: table for table in planner.neuroshard_plan.task.tables}
        assert tables[".t0"].num_features == 3
        assert tables[".t0"].pooling_factor == expected
        assert tables[".t1"].num_features == 1
        devices = planner.neuroshard_plan.predicted.devices
        assert devices[shards["t0"][0][2]].num_columns >= 3 * 64


def test_pooling_factors_decide(sharders):
    collection = make_collection([(200_000, 64)] * 3)
    whole = ["table_wise"]
    constraints = {
        f"t{i}": ParameterConstraints(sharding_types=whole, pooling_factors=[30.0 if i == 1 else 1.0])
        for i in range(3)
    }
    shards = shards_of(make_planner(make_topology(2, 1 << 30), constraints).plan(collection, sharders))
    rank = {name: parts[0][2] for name, parts in shards.items()}
    assert rank["t0"] == rank["t2"] != rank["t1"]


def test_tables_and_modules_that_are_torchrecs(sharders, caplog):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bags = make_collection([(10_000, 64)] * 4)
            self.sequences = EmbeddingCollection(
                device=torch.device("meta"),
                tables=[
                    EmbeddingConfig(
                        name="s0", num_embeddings=1000, embedding_dim=16, feature_names=["s"]
                    )
                ],
            )
            self.over = torch.nn.Linear(8, 8)

    constraints = {
        "t0": ParameterConstraints(sharding_types=["row_wise"]),
        "t1": ParameterConstraints(sharding_types=["data_parallel"]),
    }
    planner = make_planner(make_topology(2, 1 << 30, "cuda"), constraints)
    plan = planner.plan(Model(), [*sharders, EmbeddingCollectionSharder()])
    assert set(planner.left_to_torchrec) == {"bags.t0", "bags.t1", "sequences.s0"}
    assert "left to TorchRec's planner: 1 table (sequences.s0): " in caplog.text
    assert plan.plan["bags"]["t0"].sharding_type == "row_wise"
    assert plan.plan["bags"]["t1"].sharding_type == "data_parallel"
    assert plan.plan["bags"]["t2"].sharding_type in ("table_wise", "column_wise")
    assert "s0" in plan.plan["sequences"]
    assert [t.name for t in planner.neuroshard_plan.task.tables] == ["bags.t2", "bags.t3"]
    # Their memory is not available to our planner.
    room = planner.neuroshard_plan.task.topology.memory_bytes
    assert room < 1 << 30 if isinstance(room, int) else max(room) < 1 << 30


def test_two_collections_may_have_tables_of_one_name(sharders):
    model = torch.nn.ModuleDict(
        {"a": make_collection([(1000, 64)]), "b": make_collection([(2000, 32)])}
    )
    plan = make_planner(make_topology(2, 1 << 30), runtime=None).plan(model, sharders)
    assert sum(width for _, width, _ in shards_of(plan, "a")["t0"]) == 64
    assert sum(width for _, width, _ in shards_of(plan, "b")["t0"]) == 32


def test_nothing_to_shard(sharders):
    assert make_planner(make_topology(2, 1 << 30)).plan(torch.nn.Linear(2, 2), sharders).plan == {}


def test_weighted_half_precision_and_optimizer():
    collection = make_collection(SIZES, weighted=True, data_type=DataType.FP16)
    from fbgemm_gpu.split_embedding_configs import EmbOptimType

    adagrad = EmbeddingBagCollectionSharder(
        fused_params={"optimizer": EmbOptimType.EXACT_ROWWISE_ADAGRAD}
    )
    planner = make_planner(make_topology(2, 1 << 30))
    planner.plan(collection, [adagrad])
    task = planner.neuroshard_plan.task
    assert task.optimizer == "rowwise_adagrad"
    assert {table.data_type for table in task.tables} == {"fp16"}
    assert task.batch_size == 1024
    planner.plan(collection, [EmbeddingBagCollectionSharder()])
    assert planner.neuroshard_plan.task.optimizer == "sgd"


def test_statistics(sharders):
    collection = make_collection(SIZES)
    histogram = [0.5, 0.25, 0.25] + [0.0] * 14
    statistics = {"t1": TableStatistics(7.5, histogram, batch_size=1024)}
    planner = make_planner(make_topology(2, 1 << 30), statistics=statistics)
    planner.plan(collection, sharders)
    tables = {table.name: table for table in planner.neuroshard_plan.task.tables}
    assert tables[".t1"].pooling_factor == 7.5
    assert tables[".t1"].reuse_histogram == histogram
    assert tables[".t0"].pooling_factor == 1.0
    for statistics, text in (
        ({"no-such": TableStatistics(1.0, histogram, 1024)}, "got 'no-such'"),
        ({"t1": TableStatistics(1.0, histogram, 512)}, "expected 1024 .* got 512"),
    ):
        planner = make_planner(make_topology(2, 1 << 30), statistics=statistics)
        with pytest.raises(InputError, match=text):
            planner.plan(collection, sharders)


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        ({"sharding_types": ["by_magic"]}, r"sharding_types: expected some of .* got 'by_magic'"),
        ({"compute_kernels": ["fast"]}, r"compute_kernels: expected some of .* got 'fast'"),
        ({"min_partition": 0}, "min_partition: expected at least 1 column, got 0"),
        ({"pooling_factors": [float("nan")]}, "pooling_factors: expected numbers of at least 0"),
        ({"batch_sizes": [1, 2]}, "batch_sizes: expected 1 of them"),
        (
            {"sharding_types": ["row_wise"], "compute_kernels": ["key_value"]},
            "constraints: No available sharding type",
        ),
    ],
)
def test_constraints_that_cannot_be(sharders, constraint, text):
    collection = make_collection([(1000, 64)])
    with pytest.raises(InputError, match=text):
        make_planner(
            make_topology(2, 1 << 30), {"t0": ParameterConstraints(**constraint)}
        ).plan(collection, sharders)


def test_torchrecs_statistics_table(sharders, caplog):
    collection = make_collection(SIZES)
    planner = NeuroShardPlanner(
        topology=make_topology(2, 1 << 30), storage_reservation=NO_RESERVATION, debug=True
    )
    with caplog.at_level(logging.INFO, logger="torchrec.distributed.planner.stats"):
        planner.plan(collection, sharders)
    table = "\n".join(record.message for record in caplog.records)
    assert "--- Planner Statistics ---" in table
    for i in range(len(SIZES)):
        assert f"t{i}" in table


def test_the_same_inputs_give_the_same_plan(sharders):
    collection = make_collection(SIZES)
    plans = [
        shards_of(
            make_planner(make_topology(2, 1 << 30), num_threads=threads).plan(collection, sharders)
        )
        for threads in (1, 2)
    ]
    assert plans[0] == plans[1]


def test_torchrecs_defaults(sharders):
    # TorchRec's own topology and reservation, a callback, statistics of one's own, a timeout.
    seen = []

    class Stats:
        def log(self, **facts):
            seen.append(facts["best_plan"])

    planner = NeuroShardPlanner(
        topology=make_topology(2, 8 << 30),
        batch_size=512,
        stats=[Stats()],
        callbacks=[lambda options: options[::-1]],
        timeout_seconds=60,
    )
    plan = planner.plan(make_collection(SIZES), sharders)
    assert set(shards_of(plan)) == {f"t{i}" for i in range(len(SIZES))}
    assert [option.name for option in seen[0]] == [f"t{i}" for i in reversed(range(len(SIZES)))]


def test_estimates_are_said(sharders, caplog):
    collection = make_collection(SIZES)
    make_planner(make_topology(2, 8 << 30)).plan(collection, sharders)
    assert "estimate" not in caplog.text
    planner = make_planner(make_topology(2, 8 << 30, "cuda"))
    planner.plan(collection, sharders)
    assert "costs are an estimate from data sheets (analytic-a100-80gb)" in caplog.text
    # Only the last plan's attributes are kept.
    assert planner.neuroshard_plan is not None
    planner.plan(torch.nn.Linear(2, 2), sharders)
    assert planner.neuroshard_plan is None


@pytest.mark.parametrize(
    ("interconnect", "gpu", "model"),
    [
        ("h100-nvswitch", None, "fbgemm-h100"),
        ("", "NVIDIA H100 80GB HBM3", "fbgemm-h100"),
        ("", "NVIDIA H200", "fbgemm-h100"),
        ("h100-nvswitch", "NVIDIA H200", "fbgemm-h100"),
        ("h100-nvswitch", "NVIDIA A100-SXM4-80GB", "fbgemm-h100"),
        ("", "NVIDIA A100-SXM4-80GB", "analytic-a100-80gb"),
        ("a100-nvswitch", "NVIDIA H100 80GB HBM3", "analytic-a100-80gb"),
        ("", None, "analytic-a100-80gb"),
    ],
)
def test_gpus_are_priced_by_what_was_measured_on_their_like(
    sharders, caplog, monkeypatch, interconnect, gpu, model
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu is not None)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: gpu)
    planner = make_planner(make_topology(2, 8 << 30, "cuda"), interconnect=interconnect)
    planner.plan(make_collection(SIZES), sharders)
    said = {
        "costs are an estimate from data sheets (analytic-a100-80gb)": model.startswith("analytic"),
        "costs (fbgemm-h100) are those of FBGEMM's operator on an H100, not on an H200":
            gpu == "NVIDIA H200",
        "costs (": gpu == "NVIDIA H200",
    }
    for text, expected in said.items():
        assert (text in caplog.text) == expected, text
    assert planner.neuroshard_plan.model["compute"]["name"] == model


@pytest.mark.parametrize(("model", "gpu"), [("h100", "H100"), ("h200", "H200")])
def test_models_of_our_own_operator_are_said_to_be_that(sharders, caplog, model, gpu):
    planner = make_planner(make_topology(2, 8 << 30, "cuda"), models=[model, "h100-nvswitch"])
    planner.plan(make_collection(SIZES), sharders)
    text = f"costs ({model}) are those of NeuroShard's CUDA operator on one {gpu}, not of FBGEMM's"
    assert text in caplog.text


def test_an_enumerator_of_ones_own(sharders):
    collection = make_collection(SIZES)
    topology = make_topology(2, 1 << 30)
    ours = make_planner(topology).plan(collection, sharders)
    given = make_planner(topology, enumerator=EmbeddingEnumerator(topology, batch_size=512))
    assert shards_of(given.plan(collection, sharders)) == shards_of(ours)


def test_extrapolation_is_said(sharders):
    collection = make_collection([(1000, 64)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_planner(make_topology(2, 1 << 30), batch_size=3).plan(collection, sharders)
    said = [str(w.message) for w in caught if issubclass(w.category, ExtrapolationWarning)]
    assert said and len(said) == len(set(said)), "each reason once"
