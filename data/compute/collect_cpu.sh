#!/usr/bin/env bash
# Collects the computation costs that the shipped CPU model is trained on (10,920 samples;
# some 70 minutes on 2 cores). Stop it whenever you like: started again, it goes on. Samples take
# turns, 48 at a time, so that a few slow seconds of a shared machine do not spoil any of them.
# Usage: collect_cpu.sh NEUROSHARD_EXECUTABLE OUTPUT_FOLDER
set -euo pipefail
executable=$1
folder=$2
mkdir -p "$folder"

collect() {  # NAME WORKLOAD BATCH_SIZE OPTIMIZER DATA_TYPE TABLES HELD_OUT SEED SAMPLES
  "$executable" collect compute --workload "$2" --batch-size "$3" --optimizer "$4" \
    --data-type "$5" --tables "$6" --held-out "$7" --seed "$8" --samples "$9" \
    --memory 16GiB --arena 8GiB --in-flight 48 -o "$folder/$1.jsonl"
}

# In two rounds, so that the conditions of the machine are spread over all files alike.
for percent in 60 100; do
  seed=0
  for batch_size in 4096 1024 2048 8192 512; do
    samples=900
    if [ $batch_size = 8192 ]; then samples=500; fi  # the slowest by far
    for optimizer in sgd rowwise_adagrad; do
      seed=$((seed + 1))
      collect "dlrm-2021-b$batch_size-$optimizer" dlrm-2021 $batch_size $optimizer fp32 1:15 0.1 \
        $seed $((samples * percent / 100))
    done
    seed=$((seed + 1))
    collect "mlperf-dlrm-dcnv2-b$batch_size-rowwise_adagrad" mlperf-dlrm-dcnv2 $batch_size \
      rowwise_adagrad fp32 1:15 0 $seed $((160 * percent / 100))
  done
  for batch_size in 4096 1024; do
    for optimizer in sgd rowwise_adagrad; do
      seed=$((seed + 1))
      collect "dlrm-2021-b$batch_size-$optimizer-1to40" dlrm-2021 $batch_size $optimizer fp32 1:40 \
        0.1 $seed $((240 * percent / 100))
      seed=$((seed + 1))
      collect "dlrm-2021-b$batch_size-$optimizer-fp16" dlrm-2021 $batch_size $optimizer fp16 1:15 \
        0.1 $seed $((240 * percent / 100))
    done
  done
done
