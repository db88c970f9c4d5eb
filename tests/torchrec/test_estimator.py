"""Our costs in the place of TorchRec's: its own planner gains by them, and sums of shares are near
the costs of sets."""

import logging
import warnings

import pytest
import torch
from conftest import RowsToo, make_collection, make_topology
from torch import nn
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner
from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
from torchrec.distributed.planner.shard_estimators import (
    EmbeddingPerfEstimator,
    EmbeddingStorageEstimator,
)
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.modules.embedding_configs import EmbeddingConfig
from torchrec.modules.embedding_modules import EmbeddingCollection

from neuroshard import ExtrapolationWarning, InputError
from neuroshard.statistics import TableStatistics
from neuroshard.torchrec import NeuroShardPerfEstimator
from neuroshard.torchrec.inputs import PlanningInputs
from neuroshard.torchrec.measured import MeasuredSettings
from neuroshard.torchrec.prediction import plan_by_models

SHARDERS = [RowsToo(), EmbeddingCollectionSharder()]
SIZES = [(10_000 * (1 + i % 7), (16, 64, 128)[i % 3]) for i in range(24)]
GPU_MODELS = ["analytic-a100-80gb", "a100-nvswitch"]

pytestmark = pytest.mark.filterwarnings("ignore::neuroshard.ExtrapolationWarning")


def make_constraints(**kinds):
    return {
        f"t{i}": ParameterConstraints(pooling_factors=[1.0 + 3.0 * (i % 5)], **kinds)
        for i in range(len(SIZES))
    }


def make_enumerator(topology, constraints, **settings):
    estimators = [
        NeuroShardPerfEstimator(topology, constraints, **settings),
        EmbeddingStorageEstimator(topology, constraints),
    ]
    return EmbeddingEnumerator(
        topology, batch_size=1024, constraints=constraints, estimator=estimators
    )


def planned(topology, constraints, module, **settings):
    """The plan of TorchRec's own planner by our costs."""
    planner = EmbeddingShardingPlanner(
        topology=topology,
        batch_size=1024,
        enumerator=make_enumerator(topology, constraints, **settings),
        storage_reservation=FixedPercentageStorageReservation(percentage=0.0),
        constraints=constraints,
        stats=[],
        debug=False,
    )
    planner.plan(module, SHARDERS)
    return planner._best_plan


def by_models(options, topology, constraints, models=None):
    """What the whole plan costs by our models."""
    inputs = PlanningInputs(topology, topology, 1024, constraints, None, 0, 0)
    return plan_by_models(options, SHARDERS, inputs, MeasuredSettings(models)).predicted


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_torchrecs_planner_gains(device):
    # Few and many lookups, which TorchRec's estimate weighs by bytes alone.
    topology = make_topology(4, 8 << 30, device)
    models = GPU_MODELS if device == "cuda" else None
    constraints = make_constraints(sharding_types=["table_wise", "column_wise"])
    module = make_collection(SIZES)
    ours = planned(topology, constraints, module)
    stock = EmbeddingShardingPlanner(
        topology=topology,
        batch_size=1024,
        storage_reservation=FixedPercentageStorageReservation(percentage=0.0),
        constraints=constraints,
        stats=[],
        debug=False,
    )
    stock.plan(module, SHARDERS)
    cost_ms = by_models(ours, topology, constraints, models).cost_ms
    assert cost_ms < by_models(stock._best_plan, topology, constraints, models).cost_ms


@pytest.mark.parametrize("kinds", [["table_wise"], ["table_wise", "column_wise"], ["row_wise"]])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_devices_sum_is_near_what_it_costs(device, kinds):
    topology = make_topology(4, 8 << 30, device)
    constraints = make_constraints(sharding_types=kinds)
    options = planned(topology, constraints, make_collection(SIZES))
    sums = [0.0] * 4
    computed = [0.0] * 4
    for option in options:
        for shard in option.shards:
            sums[shard.rank] += shard.perf.total
            computed[shard.rank] += shard.perf.fwd_compute + shard.perf.bwd_compute
    models = GPU_MODELS if device == "cuda" else None
    predicted = by_models(options, topology, constraints, models)
    for d, cost in enumerate(predicted.devices):
        assert computed[d] == pytest.approx(cost.compute_ms, rel=0.15)
    assert max(sums) == pytest.approx(predicted.cost_ms, rel=0.15)


def test_all_types_have_a_price():
    topology = make_topology(8, 8 << 30, "cuda", local=4)
    types = [
        "table_wise", "column_wise", "row_wise", "table_row_wise", "table_column_wise",
        "grid_shard", "data_parallel",
    ]  # fmt: skip
    constraints = {
        f"t{i}": ParameterConstraints(sharding_types=[types[i % 7]], min_partition=32)
        for i in range(len(SIZES))
    }
    options = make_enumerator(topology, constraints).enumerate(make_collection(SIZES), SHARDERS)
    fused = [option for option in options if option.compute_kernel in ("fused", "dense")]
    assert {option.sharding_type for option in fused} == set(types)
    for option in fused:
        for shard in option.shards:
            perf = shard.perf
            assert perf.fwd_compute > 0 and perf.bwd_compute == pytest.approx(2 * perf.fwd_compute)
            assert perf.bwd_comms > 0
            assert (perf.fwd_comms > 0) == (option.sharding_type != "data_parallel")


def test_what_has_no_price_of_ours_keeps_torchrecs(caplog):
    topology = make_topology(2, 8 << 30, "cuda")
    sequences = EmbeddingCollection(
        device=torch.device("meta"),
        tables=[
            EmbeddingConfig(
                name="s0", num_embeddings=1000, embedding_dim=32, feature_names=["g"]
            )
        ],
    )
    module = nn.ModuleDict({"bags": make_collection(SIZES[:3]), "sequences": sequences})
    enumerator = make_enumerator(topology, {})
    options = enumerator.enumerate(module, SHARDERS)
    stock = EmbeddingEnumerator(topology, batch_size=1024)
    theirs = {
        (o.fqn, o.sharding_type, o.compute_kernel): o for o in stock.enumerate(module, SHARDERS)
    }
    same = set()
    for option in options:
        key = (option.fqn, option.sharding_type, option.compute_kernel)
        if [s.perf for s in option.shards] == [s.perf for s in theirs[key].shards]:
            same.add((option.path, option.compute_kernel in ("fused", "dense")))
    assert same == {("bags", False), ("sequences", False), ("sequences", True)}
    said = [r.message for r in caplog.records if "priced by TorchRec's estimate" in r.message]
    assert any("1 table (sequences.s0): not a table of an EmbeddingBagCollection" in m for m in said)
    assert any("4 tables (" in m and m.endswith("its kernel is fused_uvm") for m in said)
    enumerator.populate_estimates(options)
    again = [r.message for r in caplog.records if "priced by TorchRec's estimate" in r.message]
    assert again == said, "once"


def test_some_options_have_the_prices_of_all():
    # As proposers ask for them.
    topology = make_topology(4, 8 << 30, "cuda")
    constraints = make_constraints()
    enumerator = make_enumerator(topology, constraints)
    options = enumerator.enumerate(make_collection(SIZES), SHARDERS)
    before = [[shard.perf for shard in option.shards] for option in options[::5]]
    enumerator.populate_estimates(options[::5])
    assert [[shard.perf for shard in option.shards] for option in options[::5]] == before


def test_more_of_a_table_costs_more():
    topology = make_topology(4, 8 << 30, "cuda")
    module = make_collection([(100_000, 128)] * 8)
    totals = []
    for factor in (1.0, 10.0, 100.0):
        constraints = {
            f"t{i}": ParameterConstraints(
                pooling_factors=[factor if i == 0 else 5.0], sharding_types=["table_wise"]
            )
            for i in range(8)
        }
        options = make_enumerator(topology, constraints).enumerate(module, SHARDERS)
        first = next(o for o in options if o.name == "t0" and o.compute_kernel == "fused")
        totals.append(first.total_perf)
    assert totals == sorted(totals) and totals[2] > 2 * totals[0]


def test_statistics_and_optimizer_count():
    topology = make_topology(2, 8 << 30)
    module = make_collection([(100_000, 64)] * 4)
    histogram = [0.5, 0.25, 0.25] + [0.0] * 14

    def total(**settings):
        options = make_enumerator(topology, {}, **settings).enumerate(module, SHARDERS)
        return next(o for o in options if (o.name, o.sharding_type) == ("t1", "table_wise")).total_perf

    used = {"t1": TableStatistics(20.0, histogram, batch_size=2048)}
    assert total(statistics=used) > 2 * total()
    assert total(optimizer="rowwise_adagrad", models=["fbgemm-cpu-epyc"]) != total(
        optimizer="sgd", models=["fbgemm-cpu-epyc"]
    )
    wrong = {"t1": TableStatistics(20.0, histogram, batch_size=512)}
    with pytest.raises(InputError, match="expected 2048 .* got 512"):
        total(statistics=wrong)


def test_warnings_are_said_once_and_name_the_model():
    topology = make_topology(2, 8 << 30)
    module = make_collection(SIZES[:4])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        enumerator = EmbeddingEnumerator(
            topology,
            batch_size=3,
            estimator=[
                NeuroShardPerfEstimator(topology),
                EmbeddingStorageEstimator(topology, {}),
            ],
        )
        options = enumerator.enumerate(module, SHARDERS)
        enumerator.populate_estimates(options)
    said = [str(w.message) for w in caught if issubclass(w.category, ExtrapolationWarning)]
    assert said and len(said) == len(set(said))
    assert {text.split(":")[0] for text in said} == {"fbgemm-cpu-epyc", "pcie4"}


def test_estimates_from_data_sheets_are_said(caplog):
    topology = make_topology(2, 8 << 30, "cuda")
    with caplog.at_level(logging.WARNING, logger="neuroshard"):
        make_enumerator(topology, {}).enumerate(make_collection(SIZES[:2]), SHARDERS)
    assert caplog.text.count("costs are an estimate from data sheets (analytic-a100-80gb)") == 1


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"is_inference": True}, "is_inference: expected False"),
        ({"optimizer": "adam"}, "optimizer: expected sgd or rowwise_adagrad, got 'adam'"),
        ({"models": ["no-such-model"]}, "no-such-model"),
    ],
)
def test_settings_that_cannot_be(settings, text):
    topology = make_topology(2, 8 << 30)
    with pytest.raises(InputError, match=text):
        make_enumerator(topology, {}, **settings).enumerate(make_collection(SIZES[:2]), SHARDERS)


def test_devices_without_a_model():
    with pytest.raises(InputError, match="none are known of the compute device 'mtia'"):
        NeuroShardPerfEstimator(make_topology(2, 8 << 30, "mtia"))


def test_it_takes_the_place_of_torchrecs():
    assert isinstance(
        NeuroShardPerfEstimator(make_topology(2, 8 << 30)), EmbeddingPerfEstimator.__bases__
    )
