"""`python -m neuroshard.runtime`: learns the runtime's costs from measured steps.

    python -m neuroshard.runtime costs-2.jsonl costs-2x2.jsonl -o runtime.json
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .. import _core
from ..arguments import path_of
from ..errors import InputError, NeuroShardError
from .costs import RuntimeCosts
from .fitting import Errors, Fit, fit_layout
from .samples import RuntimeSample, SampleFile, read_samples


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
        "--force",
        action="store_true",
        help="replace an output that is measured data, a journal or a model",
    )
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code."""
    options = parser().parse_args(arguments)
    try:
        learn(options.files, options.model, options.output, force=options.force)
    except NeuroShardError as error:
        print(f"neuroshard.runtime: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def learn(
    paths: Sequence[str], model: str, output: str | None, *, force: bool = False
) -> RuntimeCosts:
    """Learns from the files, prints the errors, and writes the costs where there is an output."""
    inputs = [path_of(path, "files") for path in paths]
    if output is not None:
        _core.check_output(path_of(output, "--output"), inputs, [model], force)
    files = [read_samples(path) for path in paths]
    by_layout: dict[tuple[int, int], list[SampleFile]] = {}
    for file in files:
        by_layout.setdefault(file.layout, []).append(file)
    layouts = []
    for (world_size, local_world_size), of_layout in sorted(by_layout.items()):
        optimizers = {str(file.header["optimizer"]) for file in of_layout}
        if len(optimizers) > 1:
            raise InputError(f"expected files of one optimizer, got {', '.join(sorted(optimizers))}")
        fit = fit_layout(_numbered(of_layout), model, optimizers.pop())
        print(f"{world_size} processes, {local_world_size} a host")
        print(report(fit, model))
        layouts.append(fit.costs)
    costs = RuntimeCosts(
        model, tuple(layouts), files[0].header["hardware"], files[0].header["software"]
    )
    if output is not None:
        costs.write(output, force=force, inputs=inputs)
    return costs


def report(fit: Fit, model: str) -> str:
    """The errors and costs as lines of text."""
    rows: list[tuple[str, list[str]]] = [("", ["fitted", "held out"])]

    def add(name: str, show: str, value: str) -> None:
        rows.append(
            (name, [_shown(errors, show, value) for errors in (fit.fitted, fit.held_out)])
        )

    add("samples", "{}", "samples")
    add("mean error, operators as measured", "{:.1%}", "runtime")
    add(f"mean error, operators by {model}", "{:.1%}", "step")
    add("median error, likewise", "{:.1%}", "median_step")
    rows.append(
        (
            "fastest plan of a task named right",
            [f"{errors.named_right} of {errors.tasks}" for errors in (fit.fitted, fit.held_out)],
        )
    )
    add("mean loss by the plan named", "{:.1%}", "mean_loss")
    lines = [f"  {name:<40}" + "".join(f"{cell:>12}" for cell in cells) for name, cells in rows]
    for name, costs in (
        ("operators, times the model's", fit.costs.operators),
        ("forward [ms, ms/MiB]", fit.costs.forward),
        ("backward [ms, ms/MiB]", fit.costs.backward),
    ):
        shown = ", ".join(f"{each} {value:.4g}" for each, value in costs.items() if value > 0)
        lines.append(f"  {name}: {shown}")
    return "\n".join(lines)


def _shown(errors: Errors, show: str, name: str) -> str:
    return show.format(getattr(errors, name))


def _numbered(files: Sequence[SampleFile]) -> list[RuntimeSample]:
    """The samples of several files, with numbers and tasks of their own."""
    result: list[RuntimeSample] = []
    for file in files:
        first_task = max((sample.task for sample in result), default=-1) + 1
        for sample in file.samples:
            result.append(
                RuntimeSample(
                    **{
                        **sample.__dict__,
                        "index": len(result),
                        "task": first_task + sample.task,
                    }
                )
            )
    if not result:
        raise InputError("expected samples, got files without any")
    return result


if __name__ == "__main__":
    sys.exit(main())
