"""`python -m neuroshard.runtime`: learns the runtime's costs from measured steps, or tests them.

    python -m neuroshard.runtime costs-2.jsonl costs-2x2.jsonl -o runtime.json
    python -m neuroshard.runtime fresh.jsonl --test runtime.json --again fresh-again.jsonl
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Mapping, Sequence

from .. import _core
from ..arguments import path_of
from ..errors import InputError, NeuroShardError
from .accuracy import Errors, Repeated, errors_of, median_of, repeated
from .costs import RuntimeCosts, read_runtime_costs
from .fitting import Fit, fit_layout
from .operators import operator_work
from .samples import RuntimeSample, SampleFile, numbered, read_samples


def parser() -> argparse.ArgumentParser:
    """The options."""
    result = argparse.ArgumentParser(
        prog="python -m neuroshard.runtime",
        description="Learn what TorchRec's runtime takes beyond its operator",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    result.add_argument(
        "files", nargs="+", help="of `python -m neuroshard.collect --communication`"
    )
    result.add_argument(
        "--model", default="fbgemm-cpu-epyc", help="the computation model that prices operators"
    )
    result.add_argument("-o", "--output", help="file to write; none: the errors alone")
    result.add_argument(
        "--test", metavar="COSTS", help="costs to test on the files; nothing is learned"
    )
    result.add_argument(
        "--again",
        nargs="+",
        default=[],
        help="the same tasks measured again, once or several times, for --test, each time in files "
        "of the same order: medians of all count, and how far one measurement is from the others "
        "is said",
    )
    result.add_argument(
        "--force",
        action="store_true",
        help="replace an output that is measured data, a journal or a model",
    )
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code."""
    options = parser().parse_args(arguments)
    try:
        if options.test is None and not options.again:
            learn(options.files, options.model, options.output, force=options.force)
        elif options.test is None or options.output is not None:
            raise InputError("--again and -o: expected --again with --test, and -o without it")
        else:
            test(options.files, options.test, options.again)
    except NeuroShardError as error:
        print(f"neuroshard.runtime: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def learn(
    paths: Sequence[str], model: str, output: str | None, *, force: bool = False
) -> RuntimeCosts:
    """Learns from the files, writes the costs where there is an output, and prints the errors."""
    inputs = [path_of(path, "files") for path in paths]
    if output is not None:
        _core.check_output(path_of(output, "--output"), inputs, [model], force)
    files = [read_samples(path) for path in paths]
    fits = {
        layout: fit_layout(numbered(of_layout), model, _optimizer(of_layout))
        for layout, of_layout in _by_layout(files).items()
    }
    costs = RuntimeCosts(
        model,
        tuple(fit.costs for fit in fits.values()),
        files[0].header["hardware"],
        files[0].header["software"],
    )
    if output is not None:
        costs.write(output, force=force, inputs=inputs)
    for layout, fit in fits.items():
        print(_title(layout))
        print(report(fit, model))
    return costs


def test(paths: Sequence[str], costs: str, again: Sequence[str]) -> None:
    """Prints the errors of known costs on files, and how far steps are apart that were measured
    again: the medians of all measurements are what costs are held against."""
    known = read_runtime_costs(costs)
    files = _by_layout([read_samples(path) for path in paths])
    files_again = _by_layout([read_samples(path) for path in again])
    for layout in files_again.keys() - files.keys():
        raise InputError(f"--again: expected processes as in the first files, got {_title(layout)}")
    for layout, of_layout in files.items():
        layout_costs = known.layout(*layout)
        if layout_costs is None:
            raise InputError(f"{costs}: expected costs of {_title(layout)}, got none")
        again_of_layout = files_again.get(layout, [])
        measurements = _measurements(numbered(of_layout), again_of_layout)
        samples = median_of(measurements)
        optimizer = _optimizer([*of_layout, *again_of_layout])
        work = {
            sample.index: operator_work(
                sample.modules, sample.setup, [known.operator_model], optimizer
            )
            for sample in samples
        }
        errors = errors_of(layout_costs, samples, work)
        print(_title(layout))
        print("\n".join(_error_lines(known.operator_model, {"test": errors})))
        if len(measurements) > 1:
            for line in _repeated_lines(repeated(measurements)):
                print(line)


def _measurements(
    samples: list[RuntimeSample], again: Sequence[SampleFile]
) -> list[list[RuntimeSample]]:
    """The samples, and the same plans each time that they were measured again."""
    result = [samples]
    others = numbered(again) if again else []
    for first in range(0, len(others), len(samples)):
        result.append(others[first : first + len(samples)])
        if [each.plan for each in result[-1]] != [each.plan for each in samples]:
            raise InputError("--again: expected the plans of the first files, got others")
    return result


def _repeated_lines(found: Repeated) -> list[str]:
    return [
        f"  {name:<40}{value:>12}"
        for name, value in (
            ("mean difference of one measurement", f"{found.step:.1%}"),
            ("median difference, likewise", f"{found.median_step:.1%}"),
            ("fastest plan named by one measurement", f"{found.naming.right} of {found.naming.tasks}"),
            ("mean loss by that plan", f"{found.naming.mean_loss:.1%}"),
        )
    ]


def _by_layout(files: Sequence[SampleFile]) -> dict[tuple[int, int], list[SampleFile]]:
    found: dict[tuple[int, int], list[SampleFile]] = {}
    for file in sorted(files, key=lambda file: file.layout):
        found.setdefault(file.layout, []).append(file)
    return found


def _optimizer(files: Sequence[SampleFile]) -> str:
    optimizers = {str(file.header["optimizer"]) for file in files}
    if len(optimizers) > 1:
        raise InputError(f"expected files of one optimizer, got {', '.join(sorted(optimizers))}")
    return optimizers.pop()


def _title(layout: tuple[int, int]) -> str:
    return f"{layout[0]} processes, {layout[1]} a host"


def report(fit: Fit, model: str) -> str:
    """The errors and costs as lines of text."""
    lines = _error_lines(model, {"fitted": fit.fitted, "held out": fit.held_out})
    for name, costs in (
        *(
            (f"operators, {kind} [of the model's, ms/million, ms/MiB, ms]", costs)
            for kind, costs in fit.costs.operators.items()
        ),
        ("forward [ms, ms/MiB]", fit.costs.forward),
        ("backward [ms, ms/MiB]", fit.costs.backward),
    ):
        shown = ", ".join(f"{each} {value:.4g}" for each, value in costs.items() if value > 0)
        lines.append(f"  {name}: {shown}")
    return "\n".join(lines)


def _error_lines(model: str, columns: Mapping[str, Errors]) -> list[str]:
    every = columns.values()
    rows = [
        ("", list(columns)),
        ("samples", [str(each.samples) for each in every]),
        ("mean error, operators as measured", [f"{each.runtime:.1%}" for each in every]),
        (f"mean error, operators by {model}", [f"{each.step:.1%}" for each in every]),
        ("median error, likewise", [f"{each.median_step:.1%}" for each in every]),
        (
            "fastest plan of a task named right",
            [f"{each.naming.right} of {each.naming.tasks}" for each in every],
        ),
        ("mean loss by the plan named", [f"{each.naming.mean_loss:.1%}" for each in every]),
    ]
    return [f"  {name:<40}" + "".join(f"{cell:>12}" for cell in cells) for name, cells in rows]



if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that has seen enough, such as `head`
    sys.exit(main())
