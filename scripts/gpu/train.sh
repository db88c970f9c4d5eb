#!/usr/bin/env bash
# Trains a computation model on what scripts/gpu/collect.sh has collected, and judges its test
# metrics: MAPE at most 3 % and tau at least 0.98 on unseen combinations, MAPE at most 6 % on unseen
# tables.
#
#   scripts/gpu/train.sh BUILD FOLDER NAME      writes FOLDER/NAME.safetensors
set -euo pipefail
build=$(cd "$1" && pwd)
folder=$(cd "$2" && pwd)
name=$3
"$build/cli/neuroshard" train compute "$folder"/*.jsonl.gz --name "$name" --seed 1 \
  -o "$folder/$name.safetensors" | tee "$folder/training.txt"
"$build/cli/neuroshard" model show "$folder/$name.safetensors" >"$folder/model.txt"

# Of a line "unseen tables   812   0.0012   0.0123   2.34%   0.9912": MAPE and tau, the last two.
judge() {  # TITLE MOST_MAPE LEAST_TAU
  awk -v title="$1" -v most="$2" -v least="$3" '
    index($0, title) == 1 {
      found = 1
      mape = $(NF - 1) + 0
      ok = mape <= most && $NF >= least
      printf "%s: MAPE %.2f %% (at most %s %%), tau %s (at least %s): %s\n",
        title, mape, most, $NF, least, ok ? "met" : "missed"
    }
    END { exit found && ok ? 0 : 1 }' "$folder/training.txt"
}
status=0
judge "unseen combinations" 3 0.98 || status=1
judge "unseen tables" 6 0 || status=1
exit "$status"
