#!/usr/bin/env bash
# Measures the first samples of four files of data/compute/cpu-xeon-2core again, as
# data/compute/collect_cpu.sh measured them, and prints by how much their costs differ. An hour or
# more after those files were made, on the same machine, that is the noise of the data.
# Usage: noise_floor.sh NEUROSHARD_EXECUTABLE OUTPUT_FOLDER [SAMPLES]
# SAMPLES (96) are those of the first file; the others take half of it. For trying the script out,
# FIRST names a folder of files to compare with, and ARENA (8GiB) is smaller.
set -euo pipefail
executable=$1
folder=$2
samples=${3:-96}
here=$(cd "$(dirname "$0")" && pwd)
first=${FIRST:-$here/../../data/compute/cpu-xeon-2core}
mkdir -p "$folder"

pairs=()
again() {  # SEED NAME BATCH_SIZE OPTIMIZER TABLES SAMPLES DIMS...
  "$executable" collect compute --seed "$1" --workload dlrm-2021 --batch-size "$3" \
    --optimizer "$4" --tables "$5" --samples "$6" --memory 16GiB --arena "${ARENA:-8GiB}" \
    --in-flight 300 --held-out 0.1 -o "$folder/$2.jsonl" --dims "${@:7}" >/dev/null
  local file
  file=$(ls "$first/$2".jsonl*)
  pairs+=("$file" "$folder/$2.jsonl")
}

halved=(4 8 16 32 64 128)
mapfile -t any_dim < <(seq 4 4 128)
half=$(((samples + 1) / 2))
# The seeds are those that collect_cpu.sh counts.
again 2 dlrm-2021-b4096-rowwise_adagrad 4096 rowwise_adagrad 1:15 "$samples" "${halved[@]}"
again 24 dlrm-2021-b4096-rowwise_adagrad-any 4096 rowwise_adagrad 1:15 "$half" "${any_dim[@]}"
again 18 dlrm-2021-b4096-rowwise_adagrad-1to40 4096 rowwise_adagrad 1:40 "$half" "${halved[@]}"
again 4 dlrm-2021-b1024-sgd 1024 sgd 1:15 "$half" "${halved[@]}"
python3 "$here/repeated_costs.py" "${pairs[@]}"
