#!/usr/bin/env bash
# Collects the computation costs of FBGEMM's operator that the shipped model of it is trained on.
# Stop it whenever you like: started again, it goes on.
# Usage: collect_fbgemm.sh PYTHON OUTPUT_FOLDER, PYTHON as of `make test-torchrec`: build/torchrec/bin/python
set -euo pipefail
python=$1
folder=$2
mkdir -p "$folder"

collect() {  # SEED OPTIMIZER SAMPLES
  "$python" -m neuroshard.collect --workload dlrm-2021 --seed "$1" --optimizer "$2" --samples "$3" \
    --batch-size 1024 --tables 1:30 --memory 2GiB --in-flight 64 --threads 1 \
    -o "$folder/dlrm-2021-b1024-$2-1to30.jsonl"
}

collect 1 sgd 1000
