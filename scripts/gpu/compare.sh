#!/usr/bin/env bash
# The comparison on 4 and 8 devices, with every plan's computation measured on this machine's GPUs and
# all-to-alls as the communication model predicts them: tasks of 10 to 60 and of 20 to 120 tables of
# dlrm-2021, as the paper has them. Stopped, it goes on when it is started again.
#
#   scripts/gpu/compare.sh BUILD FOLDER NAME      with the model FOLDER/NAME.safetensors
#
# In the environment: COUNT (50) tasks for each number of devices; ARENA (48GiB) as for collect.sh; for
# trying it out without a GPU BACKEND=cpu and BATCH.
set -euo pipefail
build=$(cd "$1" && pwd)
folder=$(cd "$2" && pwd)
name=$3
cd "$(dirname "$0")/../.."
count=${COUNT:-50}
batch=${BATCH:-65536}
arena=${ARENA:-48GiB}
[ "${BACKEND:-cuda}" = cuda ] || arena=1GiB

compare() {  # DEVICES TABLES SEED
  local tasks=$folder/tasks-$1
  [ -d "$tasks" ] || "$build/cli/neuroshard" workload tasks dlrm-2021 --count "$count" --tables "$2" \
    --devices "$1" --memory 4GiB --batch-size "$batch" --interconnect h100-nvswitch --seed "$3" \
    -o "$tasks"
  echo "$1 devices"
  "$build/cli/neuroshard" compare "$tasks" --measure --backend "${BACKEND:-cuda}" --arena "$arena" \
    --model "$folder/$name.safetensors" --model models/all-to-all.safetensors \
    --journal "$folder/journal-$1.jsonl" -o "$folder/comparison-$1.json" |
    tee "$folder/comparison-$1.txt"
}
compare 4 10:60 1
compare 8 20:120 2
