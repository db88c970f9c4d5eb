"""What every call of the package keeps: it returns, or raises an error of the package in one line;
its arguments stay as they were; it warns of nothing but models used outside of their range."""

from __future__ import annotations

import collections
import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from neuroshard import ExtrapolationWarning, NeuroShardError

from .odd import Own

#: Longer than any error need be that tells a name or two of the caller's, the longest of 5,000.
_MOST_CHARACTERS = 12_000

#: Of Python's, C++'s and the binding's insides.
_INSIDES = ("incompatible function arguments", "nanobind", "std::", "Traceback", " object at 0x")

_MOST_LEVELS = 12


class Violation(Exception):
    """A promise that was not kept."""


def _snapshot(value: Any, level: int, seen: frozenset[int]) -> Any:
    """What a value consists of, to be compared; of what has an own way to look into it, that it is
    the same object."""
    kind = type(value)
    if value is None or kind in (bool, int, str, bytes, float, complex):
        return kind, value if kind is not float else value.hex()
    if level > _MOST_LEVELS or id(value) in seen:
        return kind, id(value)
    seen = seen | {id(value)}
    if isinstance(value, np.ndarray):
        data = None if value.dtype.hasobject else np.asarray(value).tobytes()
        return kind, id(value), str(value.dtype), value.shape, value.strides, data
    if isinstance(value, bytearray):
        return kind, bytes(value)
    if isinstance(value, dict):
        items = dict.items(value)
        content = [
            (_snapshot(key, level + 1, seen), _snapshot(each, level + 1, seen))
            for key, each in list(items)[:3000]
        ]
        return kind, len(items), content
    if isinstance(value, (list, tuple, collections.deque)):
        base = next(each for each in (list, tuple, collections.deque) if isinstance(value, each))
        each_of = [_snapshot(each, level + 1, seen) for each in base.__iter__(value)]
        return kind, each_of
    if isinstance(value, (set, frozenset)):
        return kind, sorted(map(repr, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return kind, _snapshot(dict(vars(value)), level + 1, seen)
    return kind, id(value)


def snapshot(value: Any) -> Any:
    return _snapshot(value, 0, frozenset())


def require_one_line(text: str, what: str) -> None:
    """A text that is shown to people as it is."""
    if not text:
        raise Violation(f"{what}: no text")
    if len(text) > _MOST_CHARACTERS:
        raise Violation(f"{what}: {len(text)} characters: {text[:200]}")
    if not text.isprintable():
        raise Violation(f"{what}: more than a line of printable characters: {ascii(text)[:300]}")
    for inside in _INSIDES:
        if inside in text:
            raise Violation(f"{what}: of its insides: {text[:300]}")


#: What Python says where names of arguments are wrong or missing.
_OF_SIGNATURES = ("unexpected keyword argument", "required positional argument",
                  "required keyword-only argument", "keywords must be strings",
                  "multiple values for")  # fmt: skip


def _is_of_signature(error: Exception) -> bool:
    return type(error) is TypeError and any(part in str(error) for part in _OF_SIGNATURES)


def call(function: Callable[..., Any], arguments: dict[str, Any]) -> tuple[bool, Any]:
    """Calls and returns whether an answer came back, and it. Raises Violation."""
    before = snapshot(arguments)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        answer, returned = None, False
        try:
            answer, returned = function(**arguments), True
        except NeuroShardError as error:
            require_one_line(str(error), type(error).__name__)
        except Exception as error:
            # An argument's own method may raise what it likes.
            if not isinstance(error, Own) and not _is_of_signature(error):
                text = ascii(str(error))[:300]
                raise Violation(f"{type(error).__name__}: {text}") from error
    for warning in told:
        if not issubclass(warning.category, ExtrapolationWarning):
            raise Violation(f"{warning.category.__name__}: {warning.message}")
        require_one_line(str(warning.message), "a warning")
    if snapshot(arguments) != before:
        raise Violation("an argument was changed")
    return returned, answer
