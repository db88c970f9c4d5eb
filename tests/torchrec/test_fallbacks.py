"""Tables that TorchRec's planner places next to ours, and its plan of all where it finds none of
them."""

import pytest
import torch
from conftest import RowsToo, make_collection, make_topology
from torchrec.distributed.mc_embeddingbag import ManagedCollisionEmbeddingBagCollectionSharder
from torchrec.distributed.planner import Topology
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import ParameterConstraints, PlannerError, PlannerErrorType

from torchrec.modules.mc_embedding_modules import ManagedCollisionEmbeddingBagCollection
from torchrec.modules.mc_modules import (
    LFU_EvictionPolicy,
    ManagedCollisionCollection,
    MCHManagedCollisionModule,
)

from neuroshard.torchrec import NeuroShardPlanner, planning_call

pytestmark = pytest.mark.filterwarnings("ignore::neuroshard.ExtrapolationWarning")


def make_planner(topology, **options):
    """By our models, which do not place t0."""
    return NeuroShardPlanner(
        topology=topology,
        batch_size=512,
        constraints={"t0": ParameterConstraints(sharding_types=["row_wise"])},
        storage_reservation=FixedPercentageStorageReservation(percentage=0.0),
        objective="measured",
        debug=False,
        stats=[],
        **options,
    )


def test_tables_that_are_left_keep_kernels_of_the_hosts_memory(sharders):
    """183 MiB of rows on each of two devices of 128."""
    topology = Topology(
        world_size=2,
        local_world_size=2,
        compute_device="cuda",
        hbm_cap=128 << 20,
        ddr_cap=64 << 30,
    )
    planner = make_planner(topology)
    plan = planner.plan(make_collection([(1_500_000, 64), (1_000, 64)]), sharders).plan[""]
    assert plan["t0"].sharding_type == "row_wise"
    assert plan["t0"].compute_kernel in ("fused_uvm", "fused_uvm_caching")
    assert plan["t1"].compute_kernel == "fused"
    assert list(planner.left_to_torchrec) == [".t0"]
    assert planner.estimates.neuroshard_ms is not None, "no fallback"


@pytest.mark.parametrize(
    "options",
    [
        {"runtime": None},
        {"runtime": None, "devices": {"t1": [0]}},
        {"runtime": "gloo-cpu-epyc"},  # which knows no columns that are no multiple of 4
    ],
    ids=["free", "pinned", "by the runtime's costs"],
)
def test_torchrecs_plan_of_all_is_taken_where_it_has_none_of_what_is_left(monkeypatch, options):
    asked = []
    real = planning_call.plan_of_torchrec

    def plan_of_torchrec(module, options, *rest):
        asked.append({option.name for option in options})
        if len(asked) == 1:
            raise PlannerError(
                error_type=PlannerErrorType.INSUFFICIENT_STORAGE, message="nothing was found"
            )
        return real(module, options, *rest)

    monkeypatch.setattr(planning_call, "plan_of_torchrec", plan_of_torchrec)
    planner = make_planner(make_topology(2, 8 << 30), **options)
    module = make_collection([(10_000, 6 if options["runtime"] else 64), (1_000, 64)])
    if "devices" in options:
        with pytest.raises(PlannerError, match="nothing was found"):
            planner.plan(module, [RowsToo()])
        return
    plan = planner.plan(module, [RowsToo()]).plan[""]
    assert asked == [{"t0"}, {"t0", "t1"}]
    assert plan["t0"].sharding_type == "row_wise"
    assert planner.left_to_torchrec.keys() == {".t0", ".t1"}
    assert set(planner.left_to_torchrec.values()) == {"our search found no plan"}


def test_where_torchrec_has_no_plan_at_all_the_runtimes_costs_say_what_would_do():
    planner = make_planner(make_topology(2, 1 << 20), runtime="gloo-cpu-epyc")
    with pytest.raises(PlannerError, match=r"what would do: .*at least \d+ devices of this memory"):
        planner.plan(make_collection([(1_000_000, 6), (1_000, 64)]), [RowsToo()])


@pytest.mark.parametrize("objective", ["measured", "torchrec"])
def test_managed_collisions_on_cpus_have_no_kernels_of_gpus(objective):
    """Their sharder offers them on CPUs too, and TorchRec's estimators raise ValueError for them."""
    where = torch.device("meta")
    bags = make_collection([(10_000, 64), (1_000, 64)])
    managed = ManagedCollisionCollection(
        {
            config.name: MCHManagedCollisionModule(
                zch_size=config.num_embeddings,
                device=where,
                eviction_policy=LFU_EvictionPolicy(),
                eviction_interval=10,
                input_hash_size=100_000,
                buckets=2,
            )
            for config in bags.embedding_bag_configs()
        },
        bags.embedding_bag_configs(),
    )
    module = ManagedCollisionEmbeddingBagCollection(bags, managed)
    sharders = [ManagedCollisionEmbeddingBagCollectionSharder(ebc_sharder=RowsToo())]

    def planned(memory):
        planner = NeuroShardPlanner(
            topology=make_topology(2, memory),
            batch_size=16,
            storage_reservation=FixedPercentageStorageReservation(percentage=0.0),
            objective=objective,
            debug=False,
            stats=[],
        )
        return planner.plan(module, sharders).plan[""]

    assert {table.compute_kernel for table in planned(1 << 30).values()} == {"fused"}
    with pytest.raises(PlannerError, match="fit"):
        planned(1 << 20)
