#!/bin/bash
# Builds the Python package's wheel in a configured build folder, where the library is compiled
# already, and installs it into a virtual environment:
#   scripts/python_env.sh release              build/python: the package, NumPy, pytest, mypy
#   scripts/python_env.sh release --torchrec   also build/torchrec: with PyTorch, FBGEMM, TorchRec (CPU)
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1 kind=${2-}

# Debian's python3, whatever else comes first in PATH.
python=/usr/bin/python3
[ -x "$python" ] || python=python3
. scripts/require.sh

# shellcheck disable=SC2086
require build/python $build_packages $test_packages
envs=(build/python)
if [ "$kind" = --torchrec ]; then
  # One combination that belongs together: FBGEMM's and TorchRec's releases are each built against
  # one of PyTorch. PyTorch first and exactly this: any other takes gigabytes of CUDA.
  require build/torchrec torch==2.13.0
  # TorchRec names fbgemm-gpu (CUDA) as a dependency; fbgemm-gpu-cpu is the same module.
  require build/torchrec --no-deps fbgemm-gpu-cpu==1.8.0 torchrec==1.8.0 torchmetrics==1.0.3 \
    tensordict==0.15.3 pyre-extensions==0.0.32
  require build/torchrec numpy==2.4.6 tqdm==4.70.1 lightning-utilities==0.15.3 \
    cloudpickle==3.1.2 orjson==3.13.0 importlib-metadata==10.2.0 typing-inspect==0.9.0 \
    pyvers==0.2.3 packaging==26.3 pytest==9.2.0
  envs+=(build/torchrec)
fi

rm -rf "build/$preset/wheel"
build/python/bin/pip wheel -q --no-build-isolation --no-deps --config-settings build-dir="build/$preset" \
  -w "build/$preset/wheel" .
for env in "${envs[@]}"; do
  "$env/bin/pip" install -q --no-deps --force-reinstall "build/$preset/wheel"/neuroshard-*.whl
done
