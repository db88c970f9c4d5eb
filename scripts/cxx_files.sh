#!/bin/sh
# The C++ and CUDA sources that the repository has, one a line.
cd "$(dirname "$0")/.." && exec git ls-files '*.h' '*.cpp' '*.inc' '*.cu' '*.cuh'
