"""JSON documents: read field by field, with errors that name the place. Files are read and written,
and JSON is judged, by the library: within the same limits, and by the same rules, as all others."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from typing import Any

from . import _core
from .arguments import flag_of, path_of, type_of
from .errors import InputError


#: Of times [ms] but 0, so that sums and ratios stay numbers.
_LEAST_MS = 1e-30
_MOST_MS = 1e30

#: Characters of a text in an error.
_LONGEST_QUOTE = 80


def read_document(path: str, expected_format: str) -> dict[str, Any]:
    """The fields of a file of this format but for the format itself. InputError for any other, and
    for a file of more than NEUROSHARD_MAX_INPUT."""
    content = json.loads(_core.read_json(path))
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected an object, got {type_of(content)}")
    found = content.pop("format", None)
    if found != expected_format:
        raise InputError(f"{path}: format: expected {expected_format!r}, got {described(found)}")
    return content


def read_lines(path: str) -> tuple[list[bytes], int]:
    """The whole lines of a file, and their bytes: a last one without its end is left out."""
    content = _core.read_file(path)
    whole = content.rfind(b"\n") + 1
    return content[:whole].split(b"\n")[:-1], whole


def append_line(path: str, text: str) -> None:
    """Writes a line behind the last whole one of a file, which is made if there is none."""
    with open(path, "a+b") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write(text.encode() + b"\n")


def value_of_line(line: bytes, place: str) -> Any:
    """The JSON of a line; errors begin with the place, and add the column."""
    return json.loads(_core.json_of_line(line, place))


def described(value: Any) -> str:
    """A value of JSON as errors show it, short: of an object or an array its type."""
    if isinstance(value, str) and len(value) > _LONGEST_QUOTE:
        return f"{value[:_LONGEST_QUOTE]!r}... ({len(value)} characters)"
    return repr(value) if isinstance(value, (str, int, float, bool)) else type_of(value)


class Fields:
    """The fields of an object. Each is taken once; at the `end` none may be left."""

    def __init__(self, content: Any, file: str, path: str = "") -> None:
        self._file = file
        self._path = path
        if not isinstance(content, dict):
            raise InputError(f"{self.place}: expected an object, got {type_of(content)}")
        self._left = dict(content)

    @property
    def place(self) -> str:
        """What errors begin with."""
        return f"{self._file}: {self._path}" if self._path else self._file

    def _path_of(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def text(self, name: str, *, optional: bool = False) -> Any:
        """Text; None if it is optional and not there."""
        return self._taken(name, "text", lambda value: isinstance(value, str), optional)

    def choice(self, name: str, known: tuple[str, ...], *, optional: bool = False) -> Any:
        """One of some texts."""
        return self._taken(
            name,
            f"one of {', '.join(known)}",
            lambda value: isinstance(value, str) and value in known,
            optional,
        )

    def choices(self, name: str, known: tuple[str, ...]) -> list[str]:
        """A list of some texts."""
        return list(
            self._taken(
                name,
                f"a list of some of {', '.join(known)}",
                lambda value: isinstance(value, list)
                and all(isinstance(each, str) and each in known for each in value),
                False,
            )
        )

    def flag(self, name: str, *, optional: bool = False) -> Any:
        """True or False."""
        return self._taken(name, "true or false", lambda value: isinstance(value, bool), optional)

    def integer(
        self, name: str, *, least: int, most: int = 1 << 62, default: int | None = None
    ) -> int:
        """An integer in this range."""
        if default is not None and name not in self._left:
            return default
        expected = f"an integer from {least} to {most}"
        if most == 1 << 62:
            expected = f"an integer of at least {least}"
        return int(
            self._taken(
                name,
                expected,
                lambda value: isinstance(value, int)
                and not isinstance(value, bool)
                and least <= value <= most,
                False,
            )
        )

    def number(self, name: str, *, optional: bool = False, default: float | None = None) -> Any:
        """A finite number of at least 0."""
        if default is not None and name not in self._left:
            return default
        return self._taken(
            name,
            "a number of at least 0",
            lambda value: isinstance(value, (int, float))
            and not isinstance(value, bool)
            and math.isfinite(value)
            and value >= 0,
            optional,
        )

    def number_above_0(self, name: str, *, most: float) -> float:
        """A number above 0, of at most this."""
        return float(
            self._taken(
                name,
                f"a number above 0, at most {most:g}",
                lambda value: isinstance(value, (int, float))
                and not isinstance(value, bool)
                and 0 < value <= most,
                False,
            )
        )

    def milliseconds(self, name: str, *, default: float | None = None) -> float:
        """A time, or a factor of times: 0, or large and small enough to be reckoned with."""
        if default is not None and name not in self._left:
            return default
        expected = f"0 or a number between {_LEAST_MS:g} and {_MOST_MS:g}"
        return float(self._taken(name, expected, _is_time, False))

    def part(self, name: str) -> Fields:
        """An object; one without fields if it is not there."""
        value = self._taken(name, "an object", lambda value: isinstance(value, dict), True)
        return Fields({} if value is None else value, self._file, self._path_of(name))

    def free(self, name: str) -> dict[str, Any]:
        """An object whose content is the writer's own; empty if it is not there."""
        value = self._taken(name, "an object", lambda value: isinstance(value, dict), True)
        return {} if value is None else dict(value)

    def integer_rows(self, name: str, width: int) -> list[list[int]]:
        """A list of lists of `width` integers of at least 0."""
        return self._rows(name, width, "integers of at least 0", _is_count)

    def time_rows(self, name: str, width: int) -> list[list[float]]:
        """A list of lists of `width` times, as of `milliseconds`."""
        expected = f"numbers, 0 or between {_LEAST_MS:g} and {_MOST_MS:g}"
        return self._rows(name, width, expected, _is_time)

    def _rows(
        self, name: str, width: int, expected: str, is_right: Callable[[Any], bool]
    ) -> list[list[Any]]:
        def is_row(value: Any) -> bool:
            return isinstance(value, list) and len(value) == width and all(map(is_right, value))

        return list(
            self._taken(
                name,
                f"a list of lists of {width} {expected}",
                lambda value: isinstance(value, list) and all(map(is_row, value)),
                False,
            )
        )

    def has(self, name: str) -> bool:
        """Whether there is such a field, and it was not taken."""
        return name in self._left

    def parts(self, name: str) -> list[Fields]:
        """A list of objects, at least one."""
        values = self._taken(
            name,
            "a list of at least one object",
            lambda value: isinstance(value, list) and len(value) > 0,
            False,
        )
        path = self._path_of(name)
        return [Fields(value, self._file, f"{path}[{i}]") for i, value in enumerate(values)]

    def end(self) -> None:
        """InputError for a field that was not taken."""
        for name in self._left:
            raise InputError(f"{self.place}: expected no field {described(name)}")

    def _taken(self, name: str, expected: str, is_right: Any, optional: bool) -> Any:
        if name not in self._left:
            if optional:
                return None
            raise InputError(f"{self._file}: {self._path_of(name)}: expected {expected}, got nothing")
        value = self._left.pop(name)
        if not is_right(value):
            raise InputError(
                f"{self._file}: {self._path_of(name)}: expected {expected}, got {described(value)}"
            )
        return value


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_time(value: Any) -> bool:
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and (value == 0 or _LEAST_MS <= value <= _MOST_MS)
    )


def write_text(
    path: str | os.PathLike[str],
    text: str,
    *,
    inputs: Sequence[str] = (),
    models: Sequence[str] = (),
    force: bool = False,
) -> None:
    """Writes a file, whole or not at all, as the library writes all others: never over a file that
    the text was made from, or over measured data, journals and models unless by `force`."""
    _core.write_text(
        text, path_of(path, "path"), list(inputs), list(models), flag_of(force, "force")
    )
