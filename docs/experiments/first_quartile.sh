#!/usr/bin/env bash
# Does the first quartile of a sample's repetitions repeat better than their median? Measures the
# same samples three times with each, alternating, and prints how much the runs of each differ.
# Usage: first_quartile.sh NEUROSHARD_EXECUTABLE OUTPUT_FOLDER [SAMPLES] [ARENA]
set -euo pipefail
executable=$1
folder=$2
samples=${3:-96}
arena=${4:-8GiB}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
for run in 1 2 3; do
  for quantile in 0.25 0.5; do
    "$executable" collect compute --seed 2 --workload dlrm-2021 --batch-size 4096 \
      --optimizer rowwise_adagrad --samples "$samples" --memory 16GiB --arena "$arena" \
      --in-flight 300 --dims 4 8 16 32 64 128 --quantile "$quantile" \
      -o "$folder/$quantile-$run.jsonl" >/dev/null
  done
done
for quantile in 0.25 0.5; do
  echo "quantile $quantile, runs 1 and 2, 1 and 3, 2 and 3:"
  file() { echo "$folder/$quantile-$1.jsonl"; }
  python3 "$here/repeated_costs.py" "$(file 1)" "$(file 2)" "$(file 1)" "$(file 3)" \
    "$(file 2)" "$(file 3)"
done
