"""Uses the installed package as a person would, from Python and by its executable, and says what it
did. Needs nothing but the package.

    use_package.py FOLDER COMMAND...    a folder for files, and what the executable is called by"""

import subprocess
import sys
from pathlib import Path

import neuroshard
from neuroshard import InfeasibleError, InputError, Table, Task, Topology


def expect(true: bool, text: str) -> None:
    if not true:
        sys.exit(f"use_package: expected {text}")


def command(exit_code: int, said: str, *arguments: object) -> None:
    """Runs the executable, and compares how it ends and what it says."""
    run = subprocess.run(
        [*sys.argv[2:], *map(str, arguments)], capture_output=True, text=True, check=False
    )
    everything = run.stdout + run.stderr
    line = f"neuroshard {' '.join(map(str, arguments))}"
    expect(run.returncode == exit_code, f"exit code {exit_code} of {line}, got {run.returncode}: {everything}")
    expect(said in everything, f'"{said}" of {line}, got: {everything}')
    print(f"{line}: as expected")


def task_of(memory_bytes: int) -> Task:
    return Task(
        tables=[
            Table("user", 100_000, 64, 3.0, index_distribution={"zipf_exponent": 1.1}),
            Table("item", 200_000, 32, 20.0),
        ],
        topology=Topology(world_size=2, local_world_size=1, memory_bytes=memory_bytes),
        batch_size=4096,
        optimizer="rowwise_adagrad",
    )


def main() -> None:
    folder = Path(sys.argv[1])
    source = Path(neuroshard.__file__)
    print(f"{source.parent}: neuroshard {neuroshard.__version__}, Python {sys.version.split()[0]}")

    # The package: a plan by the shipped models, a report, and errors, which are C++ exceptions.
    found = neuroshard.plan(task_of(64 << 20))
    expect(found.violations() == [], f"a valid plan, got {found.violations()}")
    expect(found.predicted.cost_ms > 0, f"a cost, got {found.predicted.cost_ms}")
    expect(found.model["compute"]["sha256"] != "", "a shipped model of computation")
    found.write(folder / "plan.json")
    found.report(folder / "report.html")
    expect("Chart.js" in (folder / "report.html").read_text(), "a report with its charts")
    for exception, act in (
        (InfeasibleError, lambda: neuroshard.plan(task_of(1 << 20))),
        (InputError, lambda: neuroshard.Plan.read(folder / "absent.json")),
    ):
        try:
            act()
        except exception:
            pass
        else:
            expect(False, f"{exception.__name__}")
    measured = neuroshard.evaluate(found, arena_bytes=64 << 20)
    expect(bool(measured), "a measured plan")
    print(f"planned {found!r}, measured it and wrote its report")

    # The executable, which finds the models of the package.
    command(0, neuroshard.__version__, "--version")
    command(0, "mlperf-dlrm-dcnv2", "workload", "list")
    command(0, "valid", "check", folder / "plan.json")
    command(0, "2 devices", "plan", "--like", folder / "plan.json", "-o", folder / "again.json")
    # What it is built without says so.
    command(3, "mpi: expected an executable built with MPI", "collect", "communication",
            "--backend", "mpi", "--devices", "2", "-o", folder / "mpi.jsonl")
    command(3, "simgrid: expected an executable built with SimGrid", "evaluate", folder / "plan.json",
            "--platform", "ethernet-25g")


if __name__ == "__main__":
    main()
