"""Enumeration of options by TorchRec's enumerator, without estimates of them all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from torch import nn
from torchrec.distributed.embedding_types import EmbeddingComputeKernel
from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
from torchrec.distributed.planner.types import (
    Enumerator,
    ShardingOption,
    StorageReservation,
    Topology,
)
from torchrec.distributed.planner.utils import sharder_name
from torchrec.distributed.types import ModuleSharder
from torchrec.modules.embedding_modules import EmbeddingBagCollection

from .tables import COLUMN_WISE, FUSED, OUTSIDE_THE_DEVICE, TABLE_WISE

#: Kernels that no CPU has.
OF_GPUS = OUTSIDE_THE_DEVICE | {EmbeddingComputeKernel.KEY_VALUE.value}


class OptionEnumerator(EmbeddingEnumerator):
    """Enumerates, and estimates only on demand: TorchRec's planner spends most of its time on
    options that it then does not choose."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_enumerating = False
        self._found: list[ShardingOption] = []
        for estimator in self._estimators:
            list_only_annotated_methods(getattr(estimator, "_config", None))

    def enumerate(
        self, module: nn.Module, sharders: list[ModuleSharder[nn.Module]]
    ) -> list[ShardingOption]:
        self._last_stored_module = None  # others may have changed an earlier answer
        self._found = []
        self._is_enumerating = True
        try:
            found = super().enumerate(module, sharders)
        finally:
            self._is_enumerating = False
        if found:  # a release that estimates elsewhere
            self._found = found
        self._found = in_stable_order(self._found)
        return list(self._found)

    def populate_estimates(self, sharding_options: list[ShardingOption]) -> None:
        if not self._is_enumerating:
            super().populate_estimates(sharding_options)
            return
        self._found = list(sharding_options)
        # What is left in the list is copied in depth, which takes longer than all the rest.
        sharding_options.clear()

    def _filter_compute_kernels(self, name: str, *args: Any) -> list[str]:
        """Without kernels of a GPU on CPUs: sharders of managed collisions offer them there too, and
        TorchRec's estimators raise ValueError for them."""
        kernels = super()._filter_compute_kernels(name, *args)
        if self._compute_device != "cpu":
            return kernels
        return [kernel for kernel in kernels if kernel not in OF_GPUS] or kernels

    @property
    def last_stored_search_space(self) -> list[ShardingOption] | None:
        if any(shard.storage is None for option in self._found for shard in option.shards):
            self.populate_estimates(self._found)
        return self._found


def in_stable_order(options: list[ShardingOption]) -> list[ShardingOption]:
    """Tables as enumerated, the options of each by name: TorchRec's order of these is that of a set
    of strings, another in each process, and so would plans and hashes of the search space be."""
    place: dict[str, int] = {}
    for option in options:
        place.setdefault(option.fqn, len(place))
    return sorted(
        options,
        key=lambda option: (place[option.fqn], option.sharding_type, option.compute_kernel),
    )


def list_only_annotated_methods(config: Any) -> None:
    """Makes `dir` of an estimator's configuration as short as can be.

    For every shard, TorchRec's estimator goes a dozen times through all names of its configuration
    in search of methods that a decorator has marked by an attribute, which takes most of its time.
    A configuration without this, of another release, stays as it is.
    """
    if config is None:
        return
    marked = []
    for name in dir(config):
        value = None if name.startswith("_") else getattr(config, name, None)
        if callable(value) and getattr(value, "__dict__", True):
            marked.append(name)
    kind = type(config)
    try:
        config.__class__ = type(kind.__name__, (kind,), {"__dir__": lambda _: marked})
    except TypeError:
        pass


class CutsEnumerator(OptionEnumerator):
    """Enumerates whole tables only where they are placed by cuts of our own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._tables_of_others: set[str] = set()

    def enumerate(
        self, module: nn.Module, sharders: list[ModuleSharder[nn.Module]]
    ) -> list[ShardingOption]:
        self._tables_of_others = {
            name
            for child, sharder in sharded_modules(module, sharders)
            if not isinstance(child, EmbeddingBagCollection)
            for name in sharder.shardable_parameters(child)
        }
        return super().enumerate(module, sharders)

    def _is_ours(self, name: str) -> bool:
        """Whether the table's module and its user's kernels are such that it may be cut by us."""
        constraint = (self._constraints or {}).get(name)
        kernels = constraint and constraint.compute_kernels
        return name not in self._tables_of_others and (not kernels or FUSED in kernels)

    def _filter_sharding_types(self, name: str, *args: Any) -> list[str]:
        types = super()._filter_sharding_types(name, *args)
        ours = [kind for kind in (TABLE_WISE, COLUMN_WISE) if kind in types]
        return ours if ours and self._is_ours(name) else types

    def _filter_compute_kernels(self, name: str, *args: Any) -> list[str]:
        kernels = super()._filter_compute_kernels(name, *args)
        # Only of types that we cut: tables that may have others alone are left to TorchRec whole.
        is_cut = args[-1] in (TABLE_WISE, COLUMN_WISE) and self._is_ours(name)
        return [FUSED] if FUSED in kernels and is_cut else kernels


class GivenOptions(Enumerator):
    """Gives TorchRec's planner the options that are left to it."""

    def __init__(self, options: list[ShardingOption], enumerator: Enumerator) -> None:
        self._options = options
        self._enumerator = enumerator

    def enumerate(self, module: Any, sharders: Any) -> list[ShardingOption]:
        return self._options

    def populate_estimates(self, sharding_options: list[ShardingOption]) -> None:
        self._enumerator.populate_estimates(sharding_options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._enumerator, name)


class GivenReservation(StorageReservation):
    """A reservation that was made already."""

    #: Of the devices' memory: what TorchRec's planner says where it finds no plan.
    _percentage = 0.0

    def __init__(self, reserved: Topology) -> None:
        self._reserved = reserved

    def reserve(self, *args: Any, **kwargs: Any) -> Topology:
        return self._reserved

    @property
    def last_reserved_topology(self) -> Topology | None:
        return self._reserved


def sharded_modules(
    module: nn.Module, sharders: Sequence[ModuleSharder[nn.Module]]
) -> Iterator[tuple[nn.Module, ModuleSharder[nn.Module]]]:
    """The modules that have a sharder; modules inside of them have none of their own."""
    by_name = {sharder_name(sharder.module_type): sharder for sharder in sharders}
    waiting = [module]
    while waiting:
        child = waiting.pop()
        sharder = by_name.get(sharder_name(type(child)))
        if sharder is None:
            waiting.extend(child.children())
        else:
            yield child, sharder
