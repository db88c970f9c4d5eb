#!/usr/bin/env bash
# Collects the computation costs of FBGEMM's operator that models of it are trained on.
# Stop it whenever you like: started again, it goes on.
# Usage: collect_fbgemm.sh PYTHON OUTPUT_FOLDER usual|coverage|frontier [SAMPLES], PYTHON as of
# `make test-torchrec`: build/torchrec/bin/python
# usual: sets of tables of one model, as the shipped model was trained on; coverage: the whole space
# of tables and sets, SAMPLES (default 200) a file; frontier: test data of that space (60 a file).
set -euo pipefail
python=$1
folder=$2
part=$3
samples=${4:-}
mkdir -p "$folder"

usual() {  # SEED OPTIMIZER SAMPLES
  "$python" -m neuroshard.collect --workload dlrm-2021 --seed "$1" --optimizer "$2" --samples "$3" \
    --batch-size 1024 --tables 1:30 --memory 2GiB --in-flight 64 --threads 1 \
    -o "$folder/dlrm-2021-b1024-$2-1to30.jsonl"
}

cover() {  # SEED PREFIX DATA_TYPE BATCH_SIZES SAMPLES HELD_OUT
  "$python" -m neuroshard.collect --workload coverage --sets coverage --seed "$1" \
    --workload-seed "$1" --data-type "$3" --batch-size "$4" --optimizer rowwise_adagrad,sgd \
    --samples "${samples:-$5}" --held-out "$6" --tables 1:40 --memory 4GiB --max-pass 2GiB \
    --in-flight 512 --threads 1 \
    --dims $(seq 4 4 64) $(seq 72 8 128) $(seq 144 16 256) $(seq 288 32 512) $(seq 576 64 1024) \
    -o "$folder/$2-$3-b{batch_size}-{optimizer}.jsonl"
}

case $part in
  usual) usual 1 sgd 1000 ;;
  coverage)
    cover 4000 coverage fp32 128,256,512,1024,2048,4096,8192,16384 200 0.1
    cover 4100 coverage fp16 128,256,512,1024,2048,4096,8192,16384 200 0.1 ;;
  frontier)
    cover 5000 frontier fp32 200,800,3000,12000 60 0
    cover 5100 frontier fp16 200,800,3000,12000 60 0 ;;
  *)
    echo "usual, coverage or frontier, got $part" >&2
    exit 2 ;;
esac
