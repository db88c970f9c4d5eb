"""One to three changes anywhere in a call's arguments."""

from __future__ import annotations

import collections
import dataclasses
import random
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np

from .odd import WithToList, integer, number, odd

#: A place in an argument: what it holds, how to put something else there, and how to take it away.
Place = tuple[Any, Callable[[Any], None], Callable[[], None]]

#: No place is looked for deeper, or after this number of places.
_MOST_LEVELS = 6
_MOST_PLACES = 400


def _of_dict(content: dict[Any, Any], key: Any) -> Place:
    def put(value: Any) -> None:
        content[key] = value

    return content[key], put, lambda: content.pop(key, None)


def _of_list(content: list[Any], index: int) -> Place:
    def put(value: Any) -> None:
        content[index] = value

    return content[index], put, lambda: content.pop(index)


def _of_field(owner: Any, name: str) -> Place:
    def put(value: Any) -> None:
        object.__setattr__(owner, name, value)  # also where it is frozen

    return getattr(owner, name), put, lambda: put(None)


def _own_places(value: Any) -> list[Place]:
    if type(value) is dict:
        return [_of_dict(value, key) for key in value]
    if type(value) is list:
        return [_of_list(value, index) for index in range(len(value))]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in dataclasses.fields(value) if each.name in vars(value)]
        return [_of_field(value, name) for name in names]
    return []


def places(value: Any) -> list[Place]:
    """All places in a value that consists of dicts, lists and dataclasses."""
    found: list[Place] = []
    level = [value]
    for _ in range(_MOST_LEVELS):
        inner = []
        for each in level:
            own = _own_places(each)
            found += own
            inner += [place[0] for place in own]
        level = inner
        if len(found) > _MOST_PLACES:
            break
    return found


def _as_another_kind(random: random.Random, value: Any) -> Any:
    """Nearly the same, in another way to say it."""
    if isinstance(value, bool):
        return random.choice((int(value), str(value), np.bool_(value), None))
    if isinstance(value, int):
        kinds: tuple[Callable[[Any], Any], ...] = (
            *(float, str, bool, complex, integer_of_numpy, np.float32, np.array, WithToList),
            lambda v: v + 1,
            lambda v: -v,
            lambda v: [v],
            lambda v: v + 0.5,
            lambda v: np.array([v]),
        )
    elif isinstance(value, float):
        kinds = (
            *(str, np.float16, np.float64, np.array, WithToList, repr, complex),
            lambda v: -v,
            lambda v: [v],
        )
    elif isinstance(value, str):
        kinds = (
            *(str.encode, list, np.str_, collections.UserString, set, str.upper, np.array),
            lambda v: v + "\0",
            lambda v: v + "\n",
            lambda v: v + "\ud800",
            lambda v: v[:-1],
            lambda v: [v],
            lambda v: (v, v),
            lambda v: {v: v},
        )
    elif isinstance(value, dict):
        kinds = (
            *(MappingProxyType, collections.OrderedDict, list, collections.UserDict),
            lambda v: list(v.items()),
            lambda v: {str(key): each for key, each in v.items()},
            lambda v: {**v, "more": 1},
            lambda v: {**v, 7: 1},
            lambda v: {str(key).encode(): each for key, each in v.items()},
            lambda v: [v],
        )
    elif isinstance(value, (list, tuple)):
        kinds = (
            *(tuple, list, collections.deque, iter, set_or_none, array_or_none, WithToList),
            lambda v: (each for each in v),
            lambda v: [*v, *v],
            lambda v: [*v, None],
            lambda v: dict(enumerate(v)),
            lambda v: [list(v)],
            lambda v: list(v)[:-1],
        )
    elif isinstance(value, np.ndarray):
        kinds = (
            np.asfortranarray,
            lambda v: v.astype(random.choice(("float32", "int8", "object", "U8", "complex64"))),
            lambda v: v[::-1],
            lambda v: v.reshape(-1, 1),
            lambda v: np.ma.masked_array(v),
            lambda v: v.tolist(),
            lambda v: v[:-1],
            lambda v: memoryview(np.ascontiguousarray(v)),
        )
    else:
        return odd(random)
    try:
        return random.choice(kinds)(value)
    except Exception:  # what has no such form
        return odd(random)


def integer_of_numpy(value: int) -> Any:
    return np.int64(value) if abs(value) < 2**63 else np.uint64(value % 2**64)


def set_or_none(value: Any) -> Any:
    try:
        return set(value)
    except TypeError:
        return None


def array_or_none(value: Any) -> Any:
    try:
        return np.array(value)
    except ValueError:
        return None


def _change(random: random.Random, place: Place) -> None:
    held, put, take_away = place
    kind = random.randrange(10)
    if kind == 0:
        take_away()
    elif kind == 1 and isinstance(held, (int, float)):
        put(integer(random) if isinstance(held, int) else number(random))
    elif kind <= 4:
        put(_as_another_kind(random, held))
    else:
        put(odd(random))


def damage(
    random: random.Random, arguments: dict[str, Any], whole: frozenset[str], keep: frozenset[str]
) -> None:
    """Changes some of the arguments of a call, in place. Those that `whole` names are changed inside
    alone, those that `keep` names nowhere."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        may_change = {name: value for name, value in arguments.items() if name not in keep}
        own = [_of_dict(arguments, name) for name in may_change if name not in whole]
        inner = places(may_change)[len(may_change) :]
        if not own and not inner:
            return
        chosen = own if not inner or (own and random.random() < 0.35) else inner
        _change(random, random.choice(chosen))
