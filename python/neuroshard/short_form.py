"""Parts of what objects show of themselves in a line, also of objects with wrong or missing fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def never_failing(describe: Callable[[Any], str]) -> Callable[[Any], str]:
    """Of a `__repr__`: there is one to be looked at, whatever the fields hold."""

    def __repr__(self: Any) -> str:
        try:
            return describe(self)
        except Exception:  # whatever the fields' own methods raise
            return f"<{type(self).__name__} with fields of wrong kinds>"

    return __repr__


def content_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass, or of a dict that stands for one, but those that are None."""
    content = value if isinstance(value, Mapping) else value.__dict__
    return {name: each for name, each in content.items() if each is not None}


def part_of(value: Any, name: str) -> Any:
    """A field of a dataclass, or of a dict that stands for one; None without it."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def counted(things: Any, name: str) -> str:
    """Number and noun: 1 table, 2 tables; just tables, if the number is unknown."""
    try:
        number = things if isinstance(things, int) else len(things)
    except TypeError:
        return f"{name}s"
    return f"{number} {name}{'' if number == 1 else 's'}"


def devices_of(task: Any) -> str:
    return counted(part_of(part_of(task, "topology"), "world_size"), "device")


def milliseconds(time: Any) -> str:
    return f"{time:.3f} ms" if isinstance(time, (int, float)) else f"{time} ms"
