"""Values that are hardly ever right: of other types, at the edges of ranges, and of classes whose
methods raise or lie."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import fractions
import math
import random
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np


class Own(Exception):
    """Raised by an argument's own method: its caller may see it again, unchanged."""


class OwnTypeError(Own, TypeError):
    pass


class OwnValueError(Own, ValueError):
    pass


class OwnAttributeError(Own, AttributeError):
    pass


class OwnRuntimeError(Own, RuntimeError):
    pass


class OwnKeyError(Own, KeyError):
    pass


_ERRORS = (Own, OwnTypeError, OwnValueError, OwnAttributeError, OwnRuntimeError, OwnKeyError)

#: Methods by which Python and NumPy look into a value, by the class that a value derives from.
_METHODS = {
    list: ("__len__", "__iter__", "__getitem__", "__eq__", "__repr__"),
    tuple: ("__len__", "__iter__", "__getitem__", "__eq__"),
    dict: ("__len__", "__iter__", "__getitem__", "items", "keys", "__contains__"),
    str: ("__len__", "__iter__", "__str__", "__eq__", "__repr__", "__hash__", "encode"),
    int: ("__index__", "__int__", "__float__", "__lt__", "__le__", "__eq__", "__repr__", "__str__"),
    float: ("__float__", "__int__", "__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__repr__"),
    object: (
        "__len__",
        "__iter__",
        "__float__",
        "__index__",
        "__fspath__",
        "__array__",
        "__repr__",
        "__bool__",
        "tolist",
        "to_dict",
        "document",
    ),
}


def raising(random: random.Random, base: type) -> Any:
    """An instance of a subclass, one method of which raises."""
    method = random.choice(_METHODS[base])
    error = random.choice(_ERRORS)

    def fail(*_: Any, **__: Any) -> Any:
        raise error(f"own {method}")

    member: Any = property(fail) if method == "document" else fail
    members: dict[str, Any] = {method: member}
    if method == "__eq__":
        members["__hash__"] = base.__hash__
    kind = type(f"Raising{base.__name__.capitalize()}", (base,), members)
    content: dict[type, tuple[Any, ...]] = {
        list: ([1, 2],),
        tuple: ((1, 2),),
        dict: ({"a": 1},),
        str: ("user",),
        int: (3,),
        float: (0.5,),
        object: (),
    }
    return kind(*content[base])


class WithToList:
    """Like an array: says what it is by `tolist`."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def tolist(self) -> Any:
        return self.value


class Lying(list):  # type: ignore[type-arg]
    """Says that it is much longer than it is."""

    def __len__(self) -> int:
        return 1 << 60


class Endless:
    """A thing within a thing, however often one looks."""

    def tolist(self) -> Any:
        return [Endless()]


class AnyAttribute:
    """Has every attribute, each of which may be called."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return AnyAttribute()

    def __call__(self, *_: Any, **__: Any) -> Any:
        return AnyAttribute()


class Colour(enum.Enum):
    RED = "fp32"


class Number(enum.IntEnum):
    TWO = 2


class BadPath:
    """Not a path, though it says so."""

    def __fspath__(self) -> Any:
        return 7


def ring_list() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


def ring_dict() -> dict[str, Any]:
    ring: dict[str, Any] = {}
    ring["ring"] = ring
    return ring


def nested(levels: int) -> list[Any]:
    """A list in a list, `levels` times."""
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def nested_dict(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def _generator() -> Iterator[int]:
    yield from (1, 2, 3)


def _failing_generator() -> Iterator[int]:
    yield 1
    raise Own("own generator")


_INTEGERS = (
    *(0, -1, 1, 2, 3, 17, 64, 65536, 65537),
    *(2**31 - 1, 2**31, -(2**31) - 1, 2**32, 2**53 + 1, 2**60, 2**60 + 1),
    *(2**63 - 1, 2**63, -(2**63) - 1, 2**64 - 1, 2**64, 10**400, -(10**400), 10**5000),
)

_FLOATS = (
    *(0.0, -0.0, 0.5, -1.5, 1.0, 1e-320, 5e-324, 1e-7, 1e16, 1e300, 1.7976931348623157e308),
    *(math.nan, math.inf, -math.inf, 4096.0, 0.1),
)

TEXTS = (
    *("", " ", "user", "item", "none", "columns", "rows", "a,b", "user:rows=2", "user:device=0"),
    *("1GiB", "1e400GiB", "-1GiB", "500ms", "1e9s", "nan", "inf", "10%", "101%", "1:4", "4,2"),
    *("neuroshard", "greedy-size", "fp16", "hashed", "by_frequency", "brief", "cpu", "cuda"),
    *("\0", "a\0b", "a\nb", "\x1b[2J", "\x7f", "\u2028", "\u202euser", "\x85", "\ufeff", "e\u0301"),
    *("\ud800", "\udcff", "\U0001f600", "\ud83d\ude00", "x" * 5000, "%s%n", "{0}", "{", '"', "\\"),
    *("task.json", "plan.json", "evaluation.json", "missing.json", ".", "missing/out.json"),
)

_BYTES = (b"", b"task.json", b"\xff\xfe", b"a\0b", bytearray(b"user"), memoryview(b"user"))

_DTYPES = (
    *("int8", "uint8", "int16", ">i4", "int64", "uint64", ">i8", "float16", "float32", "float64"),
    *("longdouble", "complex64", "bool", "datetime64[s]", "timedelta64[ns]", "S4", "U4", "object"),
)

_SHAPES = ((), (0,), (1,), (2,), (17,), (2, 2), (0, 3), (2, 1, 2), (1,) * 32)


def array(random: random.Random) -> Any:
    """An array of any type and shape, also one that is not contiguous, or cannot be written."""
    shape = random.choice(_SHAPES)
    made: Any = np.zeros(shape, dtype=random.choice(_DTYPES))
    if made.dtype.kind in "iuf" and random.random() < 0.5:
        made = (np.arange(made.size) % 100).reshape(shape).astype(made.dtype)
    if made.dtype.kind == "f" and made.size and random.random() < 0.3:
        made.flat[0] = random.choice((math.nan, math.inf))
    kind = random.randrange(6)
    if kind == 0 and made.ndim:
        made = np.repeat(made, 2, axis=0)[::2]
    elif kind == 1 and made.ndim:
        made = made[::-1]
    elif kind == 2:
        made = np.broadcast_to(made, (3, *shape)) if len(shape) < 32 else made
    elif kind == 3:
        made = np.ma.masked_array(made)
    elif kind == 4:
        made.flags.writeable = False
    return made


def structured_array(_: random.Random) -> Any:
    return np.zeros(3, dtype=[("a", "i4"), ("b", "f8")])


def scalar(random: random.Random) -> Any:
    """A number as NumPy has it."""
    value = random.choice((0, 1, 2, 3, 64, -1, math.nan))
    kinds = (np.int8, np.int64, np.uint64, np.float16, np.float32, np.float64, np.longdouble)
    kind = random.choice(kinds)
    if issubclass(kind, np.unsignedinteger):
        return kind(abs(value) if value == value else 2**64 - 1)
    if issubclass(kind, np.integer):
        return kind(value if value == value else 7)
    return kind(value)


def _other(random: random.Random) -> Any:
    """Of a type that no argument has."""
    makers: tuple[Callable[[], Any], ...] = (
        object,
        lambda: object,
        lambda: int,
        lambda: len,
        lambda: (lambda: None),
        lambda: 1j,
        lambda: decimal.Decimal("0.5"),
        lambda: decimal.Decimal("NaN"),
        lambda: decimal.Decimal("sNaN"),
        lambda: fractions.Fraction(1, 3),
        lambda: datetime.timedelta(seconds=1),
        lambda: Colour.RED,
        lambda: Number.TWO,
        lambda: NotImplemented,
        lambda: ...,
        lambda: ValueError("a value"),
        lambda: types.SimpleNamespace(document={}, tables=[], name="user"),
        AnyAttribute,
        Endless,
        BadPath,
        type("Named\n\x1b[2J", (), {}),
        lambda: np.datetime64("NaT"),
        lambda: np.str_("user"),
        lambda: np.bytes_(b"user"),
        lambda: np.bool_(True),
        lambda: Path("task.json"),
        lambda: Path("missing"),
        lambda: types.MappingProxyType({"name": "user"}),
        lambda: WithToList(1.5),
        lambda: WithToList(ring_list()),
        lambda: slice(1, 2),
    )
    return random.choice(makers)()


def _container(random: random.Random) -> Any:
    """Of other things, of itself, or of many levels."""
    makers: tuple[Callable[[], Any], ...] = (
        list,
        tuple,
        dict,
        set,
        lambda: {1, 2},
        lambda: frozenset(("user",)),
        lambda: [None],
        lambda: [[]],
        lambda: [[1, 2], [3]],
        lambda: ["user", 1, None],
        lambda: [math.nan] * 17,
        lambda: [1.0] + [0.0] * 16,
        lambda: {1: 2},
        lambda: {None: None},
        lambda: {(1, 2): [3]},
        lambda: {"a": 1, 2: 3},
        lambda: {"\ud800": 1},
        lambda: {"format": "neuroshard/plan/1"},
        lambda: {"zipf_exponent": 1.1},
        lambda: {b"name": "user"},
        lambda: collections.OrderedDict(name="user"),
        lambda: collections.defaultdict(list),
        lambda: collections.ChainMap({"name": "user"}),
        lambda: collections.deque([1, 2]),
        lambda: collections.UserList([1, 2]),
        lambda: collections.UserDict({"name": "user"}),
        lambda: collections.UserString("user"),
        lambda: range(3),
        lambda: range(10**18),
        _generator,
        _failing_generator,
        lambda: iter([1, 2]),
        lambda: map(int, "12"),
        lambda: zip([1], [2]),
        lambda: Lying([1, 2]),
        ring_list,
        ring_dict,
        lambda: nested(50),
        lambda: nested(100_000),
        lambda: nested_dict(300),
        lambda: ["x"] * 10_000,
        lambda: {str(i): i for i in range(2000)},
    )
    return random.choice(makers)()


def odd(random: random.Random) -> Any:
    """Any of the values of this module."""
    kind = random.randrange(12)
    if kind == 0:
        return random.choice((None, True, False))
    if kind == 1:
        return random.choice(_INTEGERS)
    if kind == 2:
        return random.choice(_FLOATS)
    if kind <= 4:
        return random.choice(TEXTS)
    if kind == 5:
        return random.choice(_BYTES)
    if kind == 6:
        return array(random) if random.random() < 0.9 else structured_array(random)
    if kind == 7:
        return scalar(random)
    if kind == 8:
        return raising(random, random.choice(tuple(_METHODS)))
    if kind == 9:
        return _other(random)
    return _container(random)


def integer(random: random.Random) -> int:
    return random.choice(_INTEGERS)


def number(random: random.Random) -> float:
    return random.choice(_FLOATS)
