#!/usr/bin/env bash
# Collects computation costs of sets as plans have them: those of the devices of plans that a model's
# search makes for random tasks of `dlrm-2021` and of the published workloads. Stop it whenever you
# like: started again, it goes on. PERCENT (100) of the samples are measured: all took a quarter of an
# hour on an EPYC, half of them 21 minutes on a Xeon, before it went in rounds. Folders of before
# reference sets were measured do not go on.
# Usage: collect_plans.sh NEUROSHARD_EXECUTABLE OUTPUT_FOLDER MODEL [PERCENT]
set -euo pipefail
executable=$1
folder=$2
model=$3
percent=${4:-100}
mkdir -p "$folder"

collect() {  # SEED WORKLOAD HELD_OUT BATCH_SIZES SAMPLES
  "$executable" collect compute --sets plans --planned-by "$model" --seed "$1" --workload "$2" \
    --held-out "$3" --batch-size "$4" --samples "$5" --optimizer rowwise_adagrad,sgd \
    --in-flight 256 --arena 4GiB --reference-sets -o "$folder/plans-$2-b{batch_size}-{optimizer}.jsonl"
}

# In rounds that each go on with all files: machines change for minutes, and what a workload's files
# meet in the only minutes that they have, a model takes for costs of its tables.
rounds=4
for round in $(seq $rounds); do
  share() {  # of the samples, this round included
    local samples=$(($1 * percent * round / 100 / rounds))
    echo $((samples > 0 ? samples : 1))
  }
  collect 9000 dlrm-2021 0.1 512,2048,4096,8192,16384,32768 "$(share 120)"
  seed=9100
  for name in mlperf-dlrm-dcnv2 hugectr-7table-470b-hotness20 criteo-kaggle criteo-terabyte-40m \
    criteo-terabyte; do
    collect $seed $name 0 2048,16384,65536 "$(share 40)"
    seed=$((seed + 100))
  done
done
