"""Processes of torchrun, which tests run scripts and modules in."""

import os
import subprocess
import sys

#: Measures the costs of TorchRec's runtime, of small tables.
COLLECT = ("-m", "neuroshard.collect", "--communication", "--max-rows", 2000)


def torchrun(processes, *arguments, check=True):
    """Runs a script, or a module after `-m`, on gloo processes of one host."""
    run = subprocess.run(
        [
            *(sys.executable, "-W", "ignore", "-m", "torch.distributed.run"),
            *("--standalone", "--nproc-per-node", str(processes), *map(str, arguments)),
        ],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert not check or run.returncode == 0, run.stdout[-1000:] + run.stderr[-5000:]
    return run
