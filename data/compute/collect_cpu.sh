#!/usr/bin/env bash
# Collects what data/compute/cpu-xeon-2core has: 13,320 samples of tables of dlrm-2021 and DCNv2, which
# the model cpu-xeon-2core learns next to others of the whole space (some 80 minutes on 2 cores). Stop
# it whenever you like: started again, it goes on. 300 samples alternate, so that a few slow seconds of
# a shared machine do not spoil any of them.
# Usage: collect_cpu.sh NEUROSHARD_EXECUTABLE OUTPUT_FOLDER
set -euo pipefail
executable=$1
folder=$2
mkdir -p "$folder"

collect() {  # SEED NAME WORKLOAD BATCH_SIZE OPTIMIZER DATA_TYPE TABLES HELD_OUT SAMPLES DIMS...
  "$executable" collect compute --seed "$1" --workload "$3" --batch-size "$4" --optimizer "$5" \
    --data-type "$6" --tables "$7" --held-out "$8" --samples "$9" \
    --memory 16GiB --arena 8GiB --in-flight 300 -o "$folder/$2.jsonl" --dims "${@:10}"
}

adagrad=rowwise_adagrad
halved=(4 8 16 32 64 128)
seed=0
for entry in 4096:900 1024:1000 2048:900 512:1000 8192:400; do
  batch=${entry%:*}
  samples=${entry#*:}
  for optimizer in sgd $adagrad; do
    seed=$((seed + 1))
    collect $seed "dlrm-2021-b$batch-$optimizer" dlrm-2021 "$batch" $optimizer fp32 1:15 0.1 \
      "$samples" "${halved[@]}"
  done
  seed=$((seed + 1))
  collect $seed "mlperf-dlrm-dcnv2-b$batch-$adagrad" mlperf-dlrm-dcnv2 "$batch" $adagrad fp32 \
    1:15 0 120 "${halved[@]}"
done
for batch in 4096 1024; do
  for optimizer in sgd $adagrad; do
    name=dlrm-2021-b$batch-$optimizer
    seed=$((seed + 1))
    collect $seed "$name-1to40" dlrm-2021 $batch $optimizer fp32 1:40 0.1 140 "${halved[@]}"
    seed=$((seed + 1))
    collect $seed "$name-fp16" dlrm-2021 $batch $optimizer fp16 1:15 0.1 140 "${halved[@]}"
  done
done

# Halving gives powers of two; a search that cuts anywhere also asks for the rows in between, which
# straddle cache lines.
mapfile -t any_dim < <(seq 4 4 128)
for entry in 4096:400 1024:250 2048:250 512:250 8192:150; do
  batch=${entry%:*}
  samples=${entry#*:}
  for optimizer in $adagrad sgd; do
    seed=$((seed + 1))
    collect $seed "dlrm-2021-b$batch-$optimizer-any" dlrm-2021 "$batch" $optimizer fp32 1:15 0.1 \
      "$samples" "${any_dim[@]}"
  done
  seed=$((seed + 1))
  collect $seed "mlperf-dlrm-dcnv2-b$batch-$adagrad-any" mlperf-dlrm-dcnv2 "$batch" $adagrad fp32 \
    1:15 0 120 "${any_dim[@]}"
done
