"""Enumeration of options: one of each table that we place, all of those left to TorchRec."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from torch import nn
from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
from torchrec.distributed.planner.types import (
    Enumerator,
    ShardingOption,
    StorageReservation,
    Topology,
)
from torchrec.distributed.planner.utils import sharder_name
from torchrec.distributed.types import ModuleSharder

from .tables import COLUMN_WISE, FUSED, TABLE_WISE


class OptionEnumerator(EmbeddingEnumerator):
    """Enumerates whole tables only where we place them, and estimates only on demand: TorchRec's
    planner spends most of its time on options that it then does not choose."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tables_of_others: set[str] = set()
        self._estimating = True

    def enumerate(
        self, module: nn.Module, sharders: list[ModuleSharder[nn.Module]]
    ) -> list[ShardingOption]:
        self._last_stored_module = None  # others may have changed an earlier answer
        self._estimating = False
        try:
            return super().enumerate(module, sharders)
        finally:
            self._estimating = True

    def populate_estimates(self, sharding_options: list[ShardingOption]) -> None:
        if self._estimating:
            super().populate_estimates(sharding_options)

    def _filter_sharding_types(self, name: str, *args: Any) -> list[str]:
        types = super()._filter_sharding_types(name, *args)
        ours = [kind for kind in (TABLE_WISE, COLUMN_WISE) if kind in types]
        return ours if ours and name not in self.tables_of_others else types

    def _filter_compute_kernels(self, name: str, *args: Any) -> list[str]:
        kernels = super()._filter_compute_kernels(name, *args)
        return [FUSED] if FUSED in kernels and name not in self.tables_of_others else kernels


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
