#!/usr/bin/env bash
# Collects computation costs of sets as plans have them: those of the devices of plans that a model's
# search makes for random tasks of `dlrm-2021` and of the published workloads. Stop it whenever you
# like: started again, it goes on. A quarter of an hour.
# Usage: collect_plans.sh NEUROSHARD_EXECUTABLE OUTPUT_FOLDER MODEL
set -euo pipefail
executable=$1
folder=$2
model=$3
mkdir -p "$folder"

collect() {  # SEED WORKLOAD HELD_OUT BATCH_SIZES SAMPLES
  "$executable" collect compute --sets plans --planned-by "$model" --seed "$1" --workload "$2" \
    --held-out "$3" --batch-size "$4" --samples "$5" --optimizer rowwise_adagrad,sgd \
    --in-flight 256 --arena 4GiB -o "$folder/plans-$2-b{batch_size}-{optimizer}.jsonl"
}

collect 9000 dlrm-2021 0.1 512,2048,4096,8192,16384,32768 120
seed=9100
for name in mlperf-dlrm-dcnv2 hugectr-7table-470b-hotness20 criteo-kaggle criteo-terabyte-40m \
  criteo-terabyte; do
  collect $seed $name 0 2048,16384,65536 40
  seed=$((seed + 100))
done
