"""Planners of a small collection, and their plans in files."""

from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation

from neuroshard.torchrec import NeuroShardPlanner, save_plan

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
