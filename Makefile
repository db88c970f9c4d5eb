# Shortcuts; CMakePresets.json has the builds themselves. `make` alone lists the targets.
#   make SETUP=true ...  where the packages come from elsewhere: installs nothing
SETUP = scripts/setup.sh
#   make portable CUDA=ON
CUDA = OFF
PREFIX = /usr/local
FUZZ_SECONDS = 60
# In `make torture`: inputs for each reader, a hundredth of them where each takes a process; calls of
# each function of the Python package, fewer of those that take long; commands that are killed; and
# places that ask for memory, of some eight thousand.
RUNS = 200000
CALLS = 2000
KILLS = 300
SAMPLE = 3000
FUZZERS = task plan evaluation compute_costs communication_costs safetensors

# Interpreters that `make wheel` builds for; none: those that it finds.
PYTHONS =

# Releases of TorchRec to test with, 1.7.0,1.9.2 for example; none: the pinned one.
TORCHREC =
# Those that `make check` tests the planner with too.
OTHER_TORCHREC = 1.7.0,1.9.2

# The example: DLRM-DCNv2 of MLPerf on eight hosts of one device each.
NEUROSHARD = build/release/cli/neuroshard
PLAN = plan --workload mlperf-dlrm-dcnv2 --devices 8 --local-devices 1 --memory 16GiB \
  --batch-size 4096 --optimizer rowwise_adagrad --model cpu-xeon-2core --model ethernet-25g \
  --baselines -o plan.json

# Without this, ccache leaves alone what is compiled with precompiled headers.
export CCACHE_SLOPPINESS = pch_defines,time_macros

.PHONY: help plan test check test-torchrec python python-asan gpu tsan bench fuzz torture faults portable wheel format format-check \
  lint tidy install clean setup setup-tests

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14

plan: build/release/build.ninja ## build the executable and plan the DLRM-DCNv2 example into plan.json
	@cmake --build build/release --target neuroshard_cli
	$(NEUROSHARD) $(PLAN)

test: build/release/CTestTestfile.cmake ## the tests in release, and the Python package's
	@scripts/run_tests.sh release python

check: build/release/CTestTestfile.cmake build/tidy/build.ninja build/tsan/build.ninja build/asan/build.ninja ## what else must hold: layout, lint of what changed, races, TorchRec, the tests under AddressSanitizer and UBSan
	@scripts/run_tests.sh format lint tsan:core,search,collect torchrec torchrec-planner:$(OTHER_TORCHREC) asan

test-torchrec: build/release/CTestTestfile.cmake ## the tests with PyTorch, FBGEMM and TorchRec (or its releases TORCHREC), in build/torchrec
	@scripts/run_tests.sh torchrec:$(TORCHREC)

python: build/release/build.ninja ## build the Python package into a virtual environment, build/python
	@scripts/python_env.sh release

gpu: build/gpu/build.ninja ## experimental: the executable with the CUDA backend, its tests and its benchmark, in build/gpu
	@cmake --build build/gpu --target neuroshard_gpu

python-asan: build/asan/build.ninja ## the Python package's tests, and CALLS (2000) of each of its functions, under AddressSanitizer and UBSan
	@CALLS=$(CALLS) scripts/run_tests.sh python-asan

tsan: build/tsan/build.ninja ## all tests under ThreadSanitizer
	@scripts/run_tests.sh tsan

bench: build/release/CTestTestfile.cmake ## build and run the benchmarks
	@cmake --build build/release --target neuroshard_benchmarks
	@for bench in build/release/bench/*_bench; do $$bench || exit 1; done

fuzz: build/fuzz/build.ninja ## fuzz each reader for FUZZ_SECONDS (60)
	@cmake --build build/fuzz --target $(FUZZERS:%=fuzz_%)
	@for f in $(FUZZERS); do \
	  mkdir -p build/fuzz/found/$$f && \
	  build/fuzz/fuzz/fuzz_$$f -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -dict=fuzz/json.dict \
	    -artifact_prefix=build/fuzz/found/ build/fuzz/found/$$f fuzz/corpus/$$f || exit 1; \
	done

torture: build/release/CTestTestfile.cmake ## everything of docs/reliability.md: RUNS (200000) generated inputs for each reader, CALLS (2000) of each Python function, KILLS (300), requests to the system that fail, disks; within an hour
	@cmake --build build/release --target torture neuroshard_cli fault_shim
	@scripts/python_env.sh release
	@scripts/torture.py --runs $(RUNS) --calls $(CALLS) --kills $(KILLS) --sample $(SAMPLE)

faults: build/release/CTestTestfile.cmake ## kill every command that writes, 1000 times in all, and let every one of its requests to the system fail, memory's too (docs/reliability.md)
	@cmake --build build/release --target neuroshard_cli fault_shim
	@tests/faults/kill_moments.py build/release/cli/neuroshard --kills 1000
	@tests/faults/fault_injection.py build/release/cli/neuroshard build/release/tests/libfault_shim.so

format: | setup-tests ## format the sources in place
	@scripts/cxx_files.sh | xargs clang-format -i

format-check: | setup-tests ## fail if clang-format would change a source
	@scripts/run_tests.sh format

lint: build/tidy/build.ninja ## clang-tidy over what changed (scripts/lint.sh), for 6 minutes at most
	@scripts/lint.sh changed

tidy: build/tidy/build.ninja ## clang-tidy over all sources, as .clang-tidy says
	@scripts/lint.sh all

portable: build/portable/build.ninja ## link the executable for hosts that have nothing but glibc; CUDA=ON: with the CUDA backend, its tests and benchmark
	@cmake -B build/portable -DNEUROSHARD_CUDA=$(CUDA) -DNEUROSHARD_PYTHON=OFF >/dev/null
	@cmake --build build/portable --target neuroshard_portable
	@scripts/check_portable.sh build/portable/cli/neuroshard build/portable/tests/test_cuda $$(ls build/portable/bench/cuda_throughput 2>/dev/null)

wheel: | setup-tests ## build Python wheels that need nothing but glibc into build/wheel, and try them (docs/installing.md); PYTHONS="python3.11 ..."
	@scripts/wheel/build.sh $(PYTHONS)

install: build/release/build.ninja ## install the executable, the library and the models below PREFIX (/usr/local)
	@cmake -B build/release -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null
	@cmake --build build/release --target neuroshard_cli
	@cmake --install build/release --component neuroshard

clean: ## remove all builds
	rm -rf build

setup:
	@$(SETUP)

setup-tests:
	@$(SETUP) --tests

# Configuring: only the first time, or after a change of the presets; later the build does it.
build/%/build.ninja: CMakePresets.json
	cmake --preset $*
	@touch $@

# The same folder with tests and benchmarks: what has been compiled stays.
build/release/CTestTestfile.cmake: CMakePresets.json
	cmake --preset dev
	@touch build/release/build.ninja $@

build/release/build.ninja python: | setup
build/release/CTestTestfile.cmake build/asan/build.ninja build/tsan/build.ninja build/fuzz/build.ninja build/gpu/build.ninja build/portable/build.ninja build/tidy/build.ninja: | setup-tests
