"""What moves from an older plan to the one that was made from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .arguments import list_of
from .short_form import never_failing


@dataclass(frozen=True)
class DeviceMove:
    """Bytes that one device sends to another before the plan can be used."""

    #: Device numbers; the sender's is that of the older plan.
    from_device: int
    to_device: int
    bytes: int
    #: Of these bytes alone at the links' rates; None: unknown.
    ms: float | None = None


def _pair(move: Any) -> Any:
    if not isinstance(move, DeviceMove):
        return move  # a dict with the fields of the file
    content = {"from": move.from_device, "to": move.to_device, "bytes": move.bytes}
    return content if move.ms is None else {**content, "ms": move.ms}


@dataclass(frozen=True)
class PlanMoves:
    """What moves from an older plan to the one that was made from it.

    >>> PlanMoves(0.1, 1000, 50, 2.0, [DeviceMove(0, 1, 50, 2.0)])
    <PlanMoves: 50 bytes of 1000, at most 10%>
    """

    #: The share of `placed_bytes` that might move.
    max_move: float
    #: By the older plan, of what the task still has.
    placed_bytes: int
    moved_bytes: int
    #: Until all has arrived, at the links' rates; None: unknown.
    ms: float | None
    pairs: Sequence[DeviceMove]
    #: Which plan the older one was; empty: not recorded.
    older_plan_sha256: str = ""

    @never_failing
    def __repr__(self) -> str:
        return (
            f"<PlanMoves: {self.moved_bytes} bytes of {self.placed_bytes}, "
            f"at most {100 * self.max_move:.4g}%>"
        )

    def to_dict(self) -> dict[str, Any]:
        """As the `moves` of a plan file."""
        content: dict[str, Any] = {}
        if self.older_plan_sha256:
            content["older_plan_sha256"] = self.older_plan_sha256
        content["max_move"] = self.max_move
        content["placed_bytes"] = self.placed_bytes
        content["moved_bytes"] = self.moved_bytes
        if self.ms is not None:
            content["ms"] = self.ms
        content["pairs"] = [_pair(pair) for pair in list_of(DeviceMove, self.pairs, "moves.pairs")]
        return content

    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> PlanMoves:
        """From the `moves` of a plan file."""
        pairs = [
            DeviceMove(pair["from"], pair["to"], pair["bytes"], pair.get("ms"))
            for pair in fields["pairs"]
        ]
        return PlanMoves(
            fields["max_move"],
            fields["placed_bytes"],
            fields["moved_bytes"],
            fields.get("ms"),
            pairs,
            fields.get("older_plan_sha256", ""),
        )
