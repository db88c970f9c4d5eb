"""Callers' arguments brought into one form: names, sizes, times, and values as JSON text."""

from __future__ import annotations

import json
import math
import numbers
import operator
import os
from collections.abc import Iterable, Mapping, Sequence, Set, Sized
from typing import Any

from . import _core
from .errors import InputError

#: Deeper values are reported as such; a value that contains itself is found this way, too.
_MOST_LEVELS = 100

#: Of rows, samples, and whatever else is counted.
MOST_COUNT = (1 << 63) - 1

#: The largest seed of everything random.
MOST_SEED = (1 << 64) - 1

#: The most threads that anything runs on.
MOST_THREADS = 1024

#: Of a list.
_MOST_ITEMS = 1 << 26

#: Of integers that are shown, and written as JSON; none that the library takes has as many.
_MOST_BITS = 1024


def type_of(value: Any) -> str:
    """The name of a value's type, for the "got ..." of errors."""
    return "None" if value is None else type(value).__name__


def text_of(value: Any, place: str) -> str:
    """Text that is Unicode, and has no NUL, at which the library's names of files would end."""
    if not isinstance(value, str):
        raise InputError(f"{place}: expected text, got {type_of(value)}")
    if not _is_unicode(value) or "\0" in value:
        raise InputError(f"{place}: expected Unicode text without NUL, got {ascii(value)}")
    return str(value)


def path_of(value: Any, place: str) -> str:
    """The path of a file, given as text, bytes or a path object. The library's are UTF-8."""
    try:
        return text_of(os.fsdecode(value), place)
    except TypeError:
        raise InputError(f"{place}: expected a path, got {type_of(value)}") from None


def paths_among(*values: Any) -> tuple[str, ...]:
    """Those arguments that are paths of files, absolute: what is made from them does not replace
    them, wherever the process is by then."""
    return tuple(
        _absolute(path_of(value, "path"))
        for value in values
        if isinstance(value, (str, os.PathLike))
    )


def _absolute(path: str) -> str:
    """As it is, where the working folder has a name that the library cannot take."""
    absolute = os.path.abspath(path)
    return absolute if _is_unicode(absolute) else path


def names_of(value: str | os.PathLike[str] | Iterable[str], place: str) -> list[str]:
    """A name, or a list of names, as a list; paths are names too. InputError for anything else."""
    if isinstance(value, (str, os.PathLike)):
        return [path_of(value, place)]
    names = []
    for number, name in enumerate(items_of(value, place, "a name or a list of names")):
        if not isinstance(name, (str, os.PathLike)):
            raise InputError(f"{place}[{number}]: expected a name, got {type_of(name)}")
        names.append(path_of(name, f"{place}[{number}]"))
    return names


def items_of(value: Any, place: str, expected: str) -> list[Any]:
    """The items of a list, an array, a generator, or whatever else has an order; InputError, which
    says what was expected, for text, dicts, sets and what has no items."""
    # A set has no order of its own, so that results would change from run to run.
    if not isinstance(value, (str, bytes, bytearray, memoryview, Mapping, Set)):
        try:
            return _listed(value)
        except TypeError:
            pass
    raise InputError(f"{place}: expected {expected}, got {type_of(value)}")


def _listed(value: Iterable[Any]) -> list[Any]:
    """TypeError for what has no items, or more than any argument needs, such as a long range."""
    if isinstance(value, Sized) and len(value) > _MOST_ITEMS:
        raise TypeError(type_of(value))
    return list(value)


def integer_of(value: Any, place: str, least: int, most: int) -> int:
    """An integer, NumPy's included, in a range."""
    number = _as_integer(value)
    if number is not None and least <= number <= most:
        return number
    expected = f"an integer between {least} and {most}"
    if most == MOST_COUNT:
        expected = f"an integer of at least {least}"
        if number is not None:
            expected = f"at least {least}" if number < least else f"at most {most}"
    raise InputError(f"{place}: expected {expected}, got {shown(value)}")


def _as_integer(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def number_of(value: Any, place: str) -> float:
    """A finite number, NumPy's included."""
    number = _as_float(value)
    if not math.isfinite(number):
        raise InputError(f"{place}: expected a finite number, got {shown(value)}")
    return number


def flag_of(value: Any, place: str) -> bool:
    """True or False, NumPy's included."""
    if isinstance(value, bool):
        return value
    if type(value).__name__ in ("bool", "bool_") and hasattr(value, "item"):
        return bool(value)
    raise InputError(f"{place}: expected True or False, got {shown(value)}")


def bytes_of(value: Any, place: str) -> Any:
    """Sizes such as "2GiB", one or a list of them, as bytes; numbers are returned unchanged."""
    if isinstance(value, str):
        return _core.parse_bytes(text_of(value, place), place)
    if isinstance(value, (list, tuple)) and any(isinstance(size, str) for size in value):
        return [
            bytes_of(size, f"{place}[{number}]") if isinstance(size, str) else size
            for number, size in enumerate(value)
        ]
    return value


def seconds_of(value: str | float, place: str) -> float:
    """Seconds, given as a number or as a time such as "500ms": finite, as on the command line."""
    if isinstance(value, str):
        return _core.parse_seconds(text_of(value, place), place)
    seconds = _as_float(value)
    if not 0 < seconds < math.inf:
        raise InputError(
            f'{place}: expected above 0, in seconds or as a time such as "500ms", got {shown(value)}'
        )
    return seconds


def share_of(value: str | float, place: str) -> float:
    """A share from 0 to 1, given as a number or as text such as "10%"."""
    if isinstance(value, str):
        return _core.parse_share(text_of(value, place), place)
    share = _as_float(value)
    if not 0 <= share <= 1:
        raise InputError(f'{place}: expected a share such as "10%" or 0.1, got {shown(value)}')
    return share


def _as_float(value: Any) -> float:
    """NaN for what is no real number, as NumPy's are, or is too large."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def list_of(kind: type, value: Any, place: str) -> list[Any]:
    """A list of dataclasses of one kind, or of dicts with their fields."""
    items = items_of(value, place, f"a list of {kind.__name__}s or dicts")
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
    if isinstance(value, bool) or value is None:
        return repr(value)
    if isinstance(value, float):
        return float.__repr__(value)
    if not isinstance(value, int):
        return type_of(value)
    # Python has a limit on the digits that it writes.
    bits = value.bit_length()
    return int.__repr__(value) if bits <= _MOST_BITS else f"an integer of {bits} bits"


def to_text(value: Any, place: str, indent: int | None = None) -> str:
    """JSON of a value; NumPy's scalars and arrays, and anything else with `tolist`, are accepted.
    With `indent`, in lines.

    InputError names the place in `value`, after `place`, of anything that JSON cannot hold.
    """
    try:
        text = json.dumps(value, default=_plain, allow_nan=False, indent=indent)
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
        return _listed(value)
    raise TypeError(type_of(value))


def _fault(value: Any, path: str, depth: int) -> str:
    """The first place in a value that JSON has no text for, and why; "" if there is none."""
    at = f"{path}: " if path else ""
    if depth > _MOST_LEVELS:
        return f"{at}expected at most {_MOST_LEVELS} levels of lists and dicts, got more"
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, int):
        return "" if value.bit_length() <= _MOST_BITS else f"{at}expected a number, got {shown(value)}"
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
            return f"{at}expected names of fields, got {_shown_key(key)}"
    return _first(_fault(item, _joined(path, key), depth + 1) for key, item in fields.items())


def _shown_key(key: Any) -> str:
    return ascii(key) if isinstance(key, (tuple, bytes)) else shown(key)


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
