#!/usr/bin/env bash
# Collects the computation costs of FBGEMM's operator that the shipped model of it is trained on.
# Stop it whenever you like: started again, it goes on.
# Usage: collect_fbgemm.sh PYTHON OUTPUT_FOLDER, PYTHON as of `make test-torchrec`: build/torchrec/bin/python
set -euo pipefail
python=$1
folder=$2
mkdir -p "$folder"

collect() {  # SEED OPTIMIZER SAMPLES [DATA_TYPE]
  local name=dlrm-2021-b1024-$2-1to30
  [[ ${4:-fp32} == fp32 ]] || name+=-$4
  "$python" -m neuroshard.collect --workload dlrm-2021 --seed "$1" --optimizer "$2" --samples "$3" \
    --data-type "${4:-fp32}" --batch-size 1024 --tables 1:30 --memory 2GiB --in-flight 64 \
    --threads 1 -o "$folder/$name.jsonl"
}

collect 1 sgd 1000
collect 2 rowwise_adagrad 300
collect 3 sgd 150 fp16
collect 4 rowwise_adagrad 150 fp16
