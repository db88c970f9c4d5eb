#!/usr/bin/env bash
# Collects computation costs over the whole space of tables and sets: what a universal model is
# trained on, and the frontier set that it is tested on, whose tables, batch sizes and sets no
# training sees. Stop it whenever you like: started again, it goes on.
# Usage: collect_coverage.sh NEUROSHARD_EXECUTABLE OUTPUT_FOLDER training|stock|frontier [SCALE]
# SCALE (default 1) multiplies the number of samples. Run `frontier` twice, into two folders, with
# time between: the pairs tell the noise.
set -euo pipefail
executable=$1
folder=$2
part=$3
scale=${4:-1}
mkdir -p "$folder"
dims=($(seq 4 4 64) $(seq 72 8 128) $(seq 144 16 256) $(seq 288 32 512) $(seq 576 64 1024))

collect() {  # SEED NAME WORKLOAD WORKLOAD_SEED BATCH_SIZE OPTIMIZER SAMPLES HELD_OUT
  "$executable" collect compute --sets coverage --seed "$1" --workload "$3" --workload-seed "$4" \
    --batch-size "$5" --optimizer "$6" --samples "$((${7} * scale))" --held-out "$8" \
    --tables 1:40 --in-flight 96 --arena 4GiB -o "$folder/$2.jsonl" --dims "${dims[@]}"
}

both() {  # PREFIX WORKLOAD WORKLOAD_SEED BATCH_SIZE SAMPLES HELD_OUT: with either optimizer
  for optimizer in rowwise_adagrad sgd; do
    seed=$((seed + 1))
    collect $seed "$1-b$4-$optimizer" "$2" $(($3 + seed)) "$4" $optimizer "$5" "$6"
  done
}

case $part in
  training)
    seed=1000
    for batch in 4096 512 65536 64 16384 1024 131072 128 2048 32768 256 8192; do
      both coverage coverage 0 $batch 150 0.1
    done ;;
  stock)
    seed=2000
    for batch in 65536 4096 512; do both dlrm-2021 dlrm-2021 0 $batch 60 0.1; done
    for batch in 131072 8192; do both dlrm-2022 dlrm-2022 0 $batch 60 0.1; done
    for batch in 65536 8192; do
      both mlperf-dlrm-dcnv2 mlperf-dlrm-dcnv2 0 $batch 40 0
      for name in 7table-470b-hotness20 180table-70b-hotness80 200table-100b-hotness20 \
        510table-110b-hotness5; do
        both hugectr-$name hugectr-$name 0 $batch 20 0
      done
    done ;;
  frontier)
    seed=3000
    for batch in 4000 700 50000 80 20000 1500 131072 150 3000 30000 350 10000; do
      both frontier coverage 50000 $batch 85 0
    done ;;
  *)
    echo "training, stock or frontier, got $part" >&2
    exit 2 ;;
esac
