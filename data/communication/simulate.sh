#!/usr/bin/env bash
# Simulates the communication costs that the shipped communication model is trained and tested on.
# Stop it whenever you like: started again, it goes on.
# Usage: simulate.sh NEUROSHARD_EXECUTABLE OUTPUT_FOLDER [PROCESSES]
set -euo pipefail
executable=$1
folder=$2
processes=${3:-$(nproc)}
mkdir -p "$folder/simulated" "$folder/held-out"

# Samples in a file, by its number of devices: a simulation's time grows faster than with the square.
samples() {
  case $1 in
    2 | 3 | 4 | 6 | 8 | 12) echo 120 ;;
    16 | 24 | 32) echo 80 ;;
    48 | 64) echo 30 ;;
    128) echo 8 ;;
    *) echo 4 ;;
  esac
}

seed=0
case_of() {  # PART PLATFORM DEVICES LOCAL_DEVICES BATCH_SIZE DATA_TYPE
  seed=$((seed + 1))
  # Half of the files have lags of the length of small all-to-alls.
  local start=20
  if ((seed % 2 == 1)); then start=4; fi
  echo "collect communication --backend simgrid --platform $2 --devices $3 --local-devices $4" \
    "--batch-size $5 --data-type $6 --max-start-ms $start --seed $seed --samples $(samples "$3")" \
    "-o $folder/$1/$2-$3x$4-b$5-$6.jsonl"
}

cases() {
  local batch
  for batch in 2048 16384 65536 262144; do
    for platform in a100-nvswitch h100-nvswitch; do
      for devices in 2 4 8; do case_of simulated $platform $devices $devices $batch fp32; done
      for devices in 16 32 64 128; do case_of simulated $platform $devices 8 $batch fp32; done
    done
    for devices in 2 4; do case_of simulated pcie4 $devices $devices $batch fp32; done
    for devices in 8 16 32; do case_of simulated pcie4 $devices 4 $batch fp32; done
    for platform in ethernet-10g ethernet-25g ethernet-100g; do
      for devices in 2 4 8 16 32; do case_of simulated $platform $devices 1 $batch fp32; done
    done
    case_of simulated ethernet-25g 8 1 $batch fp16
    case_of simulated h100-nvswitch 16 8 $batch fp16
    case_of simulated pcie4 8 4 $batch fp16
    # Between those trained on: numbers of devices, hosts with other numbers of devices, an interconnect.
    case_of held-out ethernet-25g 3 1 $batch fp32
    case_of held-out ethernet-25g 12 1 $batch fp32
    case_of held-out ethernet-25g 24 1 $batch fp32
    case_of held-out ethernet-50g 6 1 $batch fp32
    case_of held-out ethernet-50g 16 1 $batch fp32
    case_of held-out a100-nvswitch 16 4 $batch fp32
    case_of held-out a100-nvswitch 48 8 $batch fp32
    case_of held-out h100-nvswitch 24 8 $batch fp32
    case_of held-out h100-nvswitch 6 6 $batch fp32
    case_of held-out pcie4 12 4 $batch fp32
    case_of held-out pcie4 8 2 $batch fp32
  done
  for platform in a100-nvswitch h100-nvswitch; do case_of simulated $platform 256 8 2048 fp32; done
  for batch in 2048 16384 65536 262144; do case_of simulated ethernet-25g 64 1 $batch fp32; done
}

cases | xargs -P "$processes" -L 1 "$executable"
