"""The options of a search: keywords of `plan` and `compare`, and the names that files and the
command line have for them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

from .arguments import names_of, seconds_of, text_of, to_text


class SearchOptions(TypedDict, total=False):
    """What is left out has the library's default."""

    #: Of everything random; 0.
    seed: int
    #: 0, the default, is one per core; the plan does not depend on it.
    num_threads: int
    #: Seconds, or a time such as "500ms", after which planning stops with the best plan so far, or
    #: with InfeasibleError if there is none; more than a year is as good as none. If not given, the
    #: first plan is finished, and the work of improving it is what takes a second on a known machine.
    time_limit_seconds: float | str
    #: Neighbours that each chain of the improvement tries; 0, the default: a number that follows
    #: from the time limit.
    steps: int
    #: "thorough", the default, or "brief".
    improvement: str
    #: From 0 to 1: improve by the mean to the highest of the model's networks; 0.5.
    pessimism: float
    #: The improved plan is taken if it gains this share of the longest computation; 0.01.
    least_gain: float
    #: That the plan may have: "columns", "rows" (slices of rows) and "replicas" (whole tables on
    #: every device); all of them. A list, or a text such as "columns,rows" or "none".
    cuts: str | Sequence[str]


#: Those that files and the command line call otherwise.
_NAMES = {"num_threads": "threads", "time_limit_seconds": "time_limit"}


def _cuts_of(value: str | Sequence[str]) -> list[str]:
    """A list of cuts; a text has commas between them, or is "none"."""
    if isinstance(value, str):
        names = [name.strip() for name in text_of(value, "cuts").split(",")]
        return [] if names == ["none"] else names
    return names_of(value, "cuts")


def options_json(options: Mapping[str, object], function: str) -> dict[str, Any]:
    """As the library reads them. TypeError for a keyword that `function` does not have."""
    result: dict[str, Any] = {}
    for name, value in options.items():
        if name not in SearchOptions.__annotations__:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
        if name == "time_limit_seconds":
            value = f"{seconds_of(cast('float | str', value), name)!r}s"
        elif name == "cuts":
            value = _cuts_of(cast("str | Sequence[str]", value))
        result[_NAMES.get(name, name)] = value
    return result


def options_arguments(options: Mapping[str, object], function: str) -> list[str]:
    """As the command line reads them."""
    arguments = []
    given = json.loads(to_text(options_json(options, function), function))
    for name, value in given.items():
        if name == "cuts":
            value = ",".join(value) or "none"
        arguments += [f"--{name.replace('_', '-')}", str(value)]
    return arguments
