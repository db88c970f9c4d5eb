"""JSON documents: read field by field, with errors that name the place, and written whole or not at
all."""

from __future__ import annotations

import json
import math
import os
import tempfile
from typing import Any

from .arguments import type_of
from .errors import InputError, MachineError


def read_document(path: str, expected_format: str) -> dict[str, Any]:
    """The fields of a file of this format but for the format itself. InputError for any other."""
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except OSError as error:
        raise InputError(f"{path}: expected a file, got {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: expected JSON in UTF-8, got {error}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected an object, got {type_of(content)}")
    found = content.pop("format", None)
    if found != expected_format:
        raise InputError(f"{path}: format: expected {expected_format!r}, got {found!r}")
    return content


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

    def part(self, name: str) -> Fields:
        """An object; one without fields if it is not there."""
        value = self._taken(name, "an object", lambda value: isinstance(value, dict), True)
        return Fields({} if value is None else value, self._file, self._path_of(name))

    def free(self, name: str) -> dict[str, Any]:
        """An object whose content is the writer's own; empty if it is not there."""
        value = self._taken(name, "an object", lambda value: isinstance(value, dict), True)
        return {} if value is None else dict(value)

    def rows(self, name: str, width: int) -> list[list[float]]:
        """A list of lists of `width` finite numbers of at least 0."""

        def is_row(value: Any) -> bool:
            return (
                isinstance(value, list)
                and len(value) == width
                and all(
                    isinstance(each, (int, float))
                    and not isinstance(each, bool)
                    and math.isfinite(each)
                    and each >= 0
                    for each in value
                )
            )

        return list(
            self._taken(
                name,
                f"a list of lists of {width} numbers of at least 0",
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
            raise InputError(f"{self.place}: expected no field {name!r}")

    def _taken(self, name: str, expected: str, is_right: Any, optional: bool) -> Any:
        if name not in self._left:
            if optional:
                return None
            raise InputError(f"{self._file}: {self._path_of(name)}: expected {expected}, got nothing")
        value = self._left.pop(name)
        if not is_right(value):
            shown = repr(value) if isinstance(value, (str, int, float, bool)) else type_of(value)
            raise InputError(f"{self._file}: {self._path_of(name)}: expected {expected}, got {shown}")
        return value


def write_text(path: str, text: str) -> None:
    """Writes a file: next to its place first, then renamed."""
    temporary = ""
    try:
        path = os.path.realpath(path)
        handle, temporary = tempfile.mkstemp(
            prefix=".neuroshard-", suffix=".tmp", dir=os.path.dirname(path)
        )
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except OSError as error:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)
        kind = InputError if isinstance(error, (FileNotFoundError, IsADirectoryError)) else MachineError
        raise kind(
            f"{path}: expected a file that can be written, got {error.strerror}"
        ) from error
