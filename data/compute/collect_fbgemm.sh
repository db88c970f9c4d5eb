#!/usr/bin/env bash
# Collects the computation costs of FBGEMM's operator that models of it are trained on.
# Stop it whenever you like: started again, it goes on (but in folders of before reference sets were
# measured).
# Usage: collect_fbgemm.sh PYTHON OUTPUT_FOLDER usual|coverage|more|narrow|frontier|gpu [SAMPLES], PYTHON as
# of `make test-torchrec`: build/torchrec/bin/python
# usual: sets of tables of one model at one batch size; coverage: the whole space of tables and sets,
# as the shipped models of CPUs were trained on, SAMPLES (default 200) a file; more: others of it (100
# a file); narrow: of its pieces of 4 to 16 columns, as many devices get them (40 a file); frontier:
# test data of that space (60 a file).
# gpu: the same on a GPU, and sets of plans and of many tables, SAMPLES (default 150) a file.
set -euo pipefail
python=$1
folder=$2
part=$3
samples=${4:-}
batches=128,256,512,1024,2048,4096,8192,16384
mkdir -p "$folder"

usual() {  # SEED OPTIMIZER SAMPLES
  "$python" -m neuroshard.collect --workload dlrm-2021 --seed "$1" --optimizer "$2" --samples "$3" \
    --batch-size 1024 --tables 1:30 --memory 2GiB --in-flight 64 --threads 1 \
    -o "$folder/dlrm-2021-b1024-$2-1to30.jsonl"
}

cover() {  # SEED PREFIX DATA_TYPE BATCH_SIZES SAMPLES HELD_OUT [COLUMNS...]
  local columns=("${@:7}")
  if [ ${#columns[@]} = 0 ]; then
    columns=($(seq 4 4 64) $(seq 72 8 128) $(seq 144 16 256) $(seq 288 32 512) $(seq 576 64 1024))
  fi
  "$python" -m neuroshard.collect --workload coverage --sets coverage --seed "$1" \
    --workload-seed "$1" --data-type "$3" --batch-size "$4" --optimizer rowwise_adagrad,sgd \
    --samples "${samples:-$5}" --held-out "$6" --tables 1:40 --memory 4GiB --max-pass 2GiB \
    --in-flight 512 --threads 1 --reference-sets \
    --dims "${columns[@]}" -o "$folder/$2-$3-b{batch_size}-{optimizer}.jsonl"
}

on_gpu() {  # NAME SETS WORKLOAD SEED BATCH_SIZES [OPTION...]: to FOLDER/NAME-b*.jsonl
  local name=$1 sets=$2 workload=$3 seed=$4 batches=$5
  shift 5
  "$python" -m neuroshard.collect --device cuda --memory 20GiB --in-flight 64 --held-out 0.1 \
    --optimizer rowwise_adagrad,sgd --sets "$sets" --workload "$workload" --seed "$seed" \
    --batch-size "$batches" --samples "${samples:-150}" \
    --dims $(seq 4 4 128) $(seq 144 16 256) $(seq 288 32 512) $(seq 576 64 1024) "$@" \
    -o "$folder/$name-b{batch_size}-{optimizer}.jsonl"
}
of_plans() { on_gpu "$1" plans dlrm-2021 "$2" "$3" --planned-by h100; }
of_space() {
  on_gpu "$1" coverage coverage "$2" "$3" --workload-seed "$2" --tables 1:40 --max-pass 20GB \
    --large 0.2
}
of_many() {
  on_gpu "many-$1" coverage "$1" 13000 16384,65536 --dims $(seq 4 4 128) --tables 20:120 \
    --max-pass 20GB --large 0.4
}

case $part in
  usual) usual 1 sgd 1000 ;;
  coverage)
    cover 4000 coverage fp32 "$batches" 200 0.1
    cover 4100 coverage fp16 "$batches" 200 0.1 ;;
  more)
    cover 6000 more fp32 "$batches" 100 0.1
    cover 6100 more fp16 "$batches" 100 0.1 ;;
  narrow)
    cover 7000 narrow fp16 "$batches" 40 0.1 4 8 12 16
    cover 7100 narrow fp32 "$batches" 40 0.1 4 8 12 16 ;;
  frontier)
    cover 5000 frontier fp32 200,800,3000,12000 60 0
    cover 5100 frontier fp16 200,800,3000,12000 60 0 ;;
  gpu)
    of_plans plans 9000 16384,65536
    of_space coverage 1000 256,1024,4096,16384,65536,131072
    of_plans plans-more 12000 8192,32768,65536
    of_space coverage-more 8000 2048,8192,32768,65536
    of_many dlrm-2022
    of_many hugectr-510table-110b-hotness5
    mkdir -p "$folder/frontier"
    on_gpu frontier/frontier coverage coverage 3000 700,3000,10000,50000 --workload-seed 53000 \
      --held-out 0 --tables 1:40 --max-pass 20GB --large 0.2 ;;
  *)
    echo "usual, coverage, more, narrow, frontier or gpu, got $part" >&2
    exit 2 ;;
esac
