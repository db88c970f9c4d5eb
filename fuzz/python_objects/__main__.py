"""Makes generated calls of every function, and says which break the promise.

python -m python_objects [--call NAME] [--runs N] [--seed S] [--first N] [--processes N] [--show]
"""

from __future__ import annotations

import argparse
import os
import pprint
import sys
import tempfile
from pathlib import Path

from . import calls, workers

#: Failures of a function that are told.
_MOST_TOLD = 10


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python_objects", description=__doc__.split("\n")[0])
    names = [call.name for call in calls.CALLS]
    parser.add_argument("--call", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--runs", type=int, default=1000, help="calls of each function (1000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first call (0)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--show", action="store_true", help="print the arguments of a call instead")
    return parser.parse_args()


def _show(call: calls.Call, seed: int, number: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        calls.write_inputs(Path(folder))
        for name, value in calls.arguments_of(call, seed, number).items():
            try:
                print(f"{name} = {pprint.pformat(value)}".encode("ascii", "backslashreplace").decode())
            except Exception as error:  # of its own repr
                print(f"{name} = <{type(value).__name__}, without a repr: {type(error).__name__}>")
        os.chdir("/")


def _try_calls(call: calls.Call, options: argparse.Namespace) -> bool:
    """A line of the result, and for each failure how to repeat it. Whether there was none."""
    # A function that is asked for by name is called as often as is asked for.
    runs = options.runs if options.call else max(1, options.runs // call.one_in)
    result = workers.torture(
        call.name,
        seed=options.seed,
        first=options.first,
        runs=runs,
        processes=options.processes,
    )
    print(
        f"{call.name}: {result.tries} tries, {len(result.failures)} failures; "
        f"{result.returned} returned, {result.seconds:.0f} s",
        flush=True,
    )
    for failure in result.failures[:_MOST_TOLD]:
        again = f"--call {call.name} --seed {options.seed} --first {failure.number} --runs 1"
        print(f"  {failure.reason}\n    again: python -m python_objects {again}", flush=True)
    return not result.failures


def main() -> int:
    if sys.argv[1:2] == ["--work"]:
        workers.work(sys.argv[2:])
        return 0
    options = _options()
    chosen = [call for call in calls.CALLS if options.call in (None, call.name)]
    if options.show:
        if options.call is None:
            print("python_objects: --show needs --call", file=sys.stderr)
            return 2
        _show(chosen[0], options.seed, options.first)
        return 0
    return 0 if all([_try_calls(call, options) for call in chosen]) else 1


if __name__ == "__main__":
    sys.exit(main())
