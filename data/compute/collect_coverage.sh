#!/usr/bin/env bash
# Collects computation costs over the whole space of tables and sets: what a universal model is
# trained on, and the frontier set that it is tested on, whose tables, batch sizes and sets no
# training sees. Stop it whenever you like: started again, it goes on.
# Usage: collect_coverage.sh NEUROSHARD_EXECUTABLE OUTPUT_FOLDER training|more|stock|frontier|fresh [SAMPLES]
#        collect_coverage.sh NEUROSHARD_EXECUTABLE OUTPUT_FOLDER unsure MODEL [SAMPLES]
# SAMPLES (default training and more 300, unsure 150, stock 60, frontier and fresh 85) are those of a file.
# `more`: as `training`, of other tables and sets. `unsure`: more training samples where the networks
# of MODEL, trained on the first, disagree most. Run `frontier` twice, into two folders, with time
# between: the pairs tell the noise. `fresh`: as `frontier`, of other tables and sets, for what was
# chosen while the frontier was looked at.
#
# The files of a part are measured together, hundreds of samples at a time: other users of the
# machine's memory slow it for seconds up to minutes, and so all files, and every repetition of a
# sample, see many such moments.
set -euo pipefail
executable=$1
folder=$2
part=$3
chosen=()
if [ "$part" = unsure ]; then
  chosen=(--least-sure "$4" --candidates 8)
  shift
fi
samples=${4:-}
batches=64,128,256,512,1024,2048,4096,8192,16384,32768,65536,131072
others=80,150,350,700,1500,3000,4000,10000,20000,30000,50000,131072  # of the frontier
mkdir -p "$folder"
dims=($(seq 4 4 64) $(seq 72 8 128) $(seq 144 16 256) $(seq 288 32 512) $(seq 576 64 1024))

collect() {  # SEED PREFIX WORKLOAD WORKLOAD_SEED BATCH_SIZES SAMPLES HELD_OUT
  "$executable" collect compute --sets coverage --seed "$1" --workload "$3" --workload-seed "$4" \
    --batch-size "$5" --optimizer rowwise_adagrad,sgd --samples "${samples:-$6}" --held-out "$7" \
    --tables 1:40 --in-flight 512 --arena 4GiB --reference-sets --dims "${dims[@]}" "${chosen[@]}" \
    -o "$folder/$2-b{batch_size}-{optimizer}.jsonl"
}

case $part in
  training) collect 1000 coverage coverage 1000 $batches 300 0.1 ;;
  more) collect 7000 more coverage 7000 $batches 300 0.1 ;;
  unsure) collect 6000 unsure coverage 6000 $batches 150 0.1 ;;
  stock)
    collect 2000 dlrm-2021 dlrm-2021 0 512,4096,65536 60 0.1
    collect 2100 dlrm-2022 dlrm-2022 0 8192,131072 60 0.1
    collect 2200 mlperf-dlrm-dcnv2 mlperf-dlrm-dcnv2 0 8192,65536 60 0
    for name in 7table-470b-hotness20 180table-70b-hotness80 200table-100b-hotness20 \
      510table-110b-hotness5; do
      collect 2300 "hugectr-$name" "hugectr-$name" 0 8192,65536 60 0
    done ;;
  frontier) collect 3000 frontier coverage 53000 $others 85 0 ;;
  fresh) collect 8000 fresh coverage 58000 $others 85 0 ;;
  *)
    echo "training, more, unsure, stock, frontier or fresh, got $part" >&2
    exit 2 ;;
esac
