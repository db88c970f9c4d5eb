"""Callers' arguments brought into one form: names, sizes, times, and values as JSON text."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from . import _core
from .errors import InputError

#: Deeper values are reported as such; a value that contains itself is found this way, too.
_MOST_LEVELS = 100


def type_of(value: Any) -> str:
    """The name of a value's type, for the "got ..." of errors."""
    return "None" if value is None else type(value).__name__


def names_of(value: str | os.PathLike[str] | Iterable[str], place: str) -> list[str]:
    """A name, or a list of names, as a list; paths are names too. InputError for anything else."""
    if isinstance(value, (str, os.PathLike)):
        return [os.fsdecode(value)]
    # A set has no order of its own, so that results would change from run to run.
    if isinstance(value, (bytes, bytearray, Mapping, Set)) or not isinstance(value, Iterable):
        raise InputError(f"{place}: expected a name or a list of names, got {type_of(value)}")
    names = []
    for number, name in enumerate(value):
        if not isinstance(name, (str, os.PathLike)):
            raise InputError(f"{place}[{number}]: expected a name, got {type_of(name)}")
        names.append(os.fsdecode(name))
    return names


def bytes_of(value: Any, place: str) -> Any:
    """Sizes such as "2GiB", one or a list of them, as bytes; numbers are returned unchanged."""
    if isinstance(value, str):
        return _core.parse_bytes(value, place)
    if isinstance(value, (list, tuple)) and any(isinstance(size, str) for size in value):
        return [
            _core.parse_bytes(size, f"{place}[{number}]") if isinstance(size, str) else size
            for number, size in enumerate(value)
        ]
    return value


def seconds_of(value: str | float, place: str) -> float:
    """Seconds, given as a number or as a time such as "500ms"; infinity is no limit."""
    if isinstance(value, str):
        return _core.parse_seconds(value, place)
    seconds = math.nan
    if not isinstance(value, (bool, bytes)):
        try:
            seconds = float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    if not seconds > 0:
        raise InputError(
            f'{place}: expected above 0, in seconds or as a time such as "500ms", got {shown(value)}'
        )
    return seconds


def share_of(value: str | float, place: str) -> float:
    """A share from 0 to 1, given as a number or as text such as "10%"."""
    if isinstance(value, str):
        return _core.parse_share(value, place)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise InputError(f'{place}: expected a share such as "10%" or 0.1, got {shown(value)}')
    return float(value)


def list_of(kind: type, value: Any, place: str) -> list[Any]:
    """A list of dataclasses of one kind, or of dicts with their fields."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise InputError(
            f"{place}: expected a list of {kind.__name__}s or dicts, got {type_of(value)}"
        )
    items = list(value)
    for number, item in enumerate(items):
        one_of(kind, item, f"{place}[{number}]")
    return items


def one_of(kind: type, value: Any, place: str) -> Any:
    """A dataclass of this kind, or a dict with its fields."""
    if not isinstance(value, (kind, Mapping)):
        raise InputError(f"{place}: expected a {kind.__name__} or a dict, got {type_of(value)}")
    return value


def shown(value: Any) -> str:
    """A value as an error shows it: a number itself, of anything else its type."""
    return repr(value) if isinstance(value, (bool, int, float)) else type_of(value)


def to_text(value: Any, place: str) -> str:
    """JSON of a value; NumPy's scalars and arrays, and anything else with `tolist`, are accepted.

    InputError names the place in `value`, after `place`, of anything that JSON cannot hold.
    """
    try:
        text = json.dumps(value, default=_plain, allow_nan=False)
        if "\\ud" not in text:
            return text
        fault = _fault(value, "", 0)  # half of a surrogate pair, or a character of two
        if not fault:
            return text
    except (TypeError, ValueError, RuntimeError) as error:
        # The encoder does not give the place, so it is searched for only after a failure.
        fault = _fault(value, "", 0) or f"expected numbers, text, lists and dicts, got {error}"
    raise InputError(f"{place}: {fault}")


def _plain(value: Any) -> Any:
    """The JSON equivalent of a value that is not a dict, a list, a number or text itself."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return list(value)
    raise TypeError(type_of(value))


def _fault(value: Any, path: str, depth: int) -> str:
    """The first place in a value that JSON has no text for, and why; "" if there is none."""
    at = f"{path}: " if path else ""
    if depth > _MOST_LEVELS:
        return f"{at}expected at most {_MOST_LEVELS} levels of lists and dicts, got more"
    if value is None or isinstance(value, int):
        return ""
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"{at}expected a finite number, got {float(value)}"
    if isinstance(value, str):
        return "" if _is_unicode(value) else f"{at}expected Unicode text, got {ascii(value)}"
    if isinstance(value, Mapping):
        return _fault_in_dict(value, path, depth)
    if isinstance(value, (list, tuple)):
        return _first(_fault(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value))
    try:
        plain = _plain(value)
    except InputError as error:
        return _joined(path, str(error))
    except (TypeError, ValueError, RuntimeError):
        return f"{at}expected a number, text, a list or a dict, got {type_of(value)}"
    return _fault(plain, path, depth + 1)


def _fault_in_dict(fields: Mapping[Any, Any], path: str, depth: int) -> str:
    for key in fields:
        if not isinstance(key, str):
            at = f"{path}: " if path else ""
            return f"{at}expected names of fields, got {key!r}"
    return _first(_fault(item, _joined(path, key), depth + 1) for key, item in fields.items())


def _first(faults: Iterable[str]) -> str:
    return next(filter(None, faults), "")


def _joined(path: str, field: str) -> str:
    return f"{path}.{field}" if path else field


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
