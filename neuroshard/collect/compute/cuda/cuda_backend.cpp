// The devices of a host, measuring in parallel.
#include "neuroshard/collect/compute/cuda/cuda_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <numeric>
#include <span>
#include <thread>

#include "neuroshard/collect/compute/cuda/cuda_operator.h"
#include "neuroshard/collect/compute/cuda/device.h"
#include "neuroshard/collect/compute/cuda/device_worker.h"
#include "neuroshard/collect/compute/process_group.h"
#include "neuroshard/core/error.h"

namespace neuroshard {

namespace {

using cuda::DeviceInfo;
using cuda::DeviceWorker;

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Json hardware_json(const DeviceInfo& info) {
  return Json::Object{{"kind", "cuda"},
                      {"name", info.name},
                      {"compute_capability", fmt::format("{}.{}", info.compute_capability / 10,
                                                         info.compute_capability % 10)},
                      {"num_multiprocessors", info.num_multiprocessors},
                      {"l2_bytes", info.l2_bytes},
                      {"memory_bytes", info.memory_bytes}};
}

Json operator_json(const CudaBackendOptions& options, const DeviceInfo& info) {
  return Json::Object{{"name", cuda::kCudaOperatorName},
                      {"version", cuda::kCudaOperatorVersion},
                      {"cuda", version_text(info.runtime_version)},
                      {"quantile", options.repetitions.quantile},
                      {"disturbance", options.disturbance},
                      {"arena_bytes", options.arena_bytes}};
}

/// Now, and in parallel: a device without room for the arena must not show after the first hour.
std::unique_ptr<ComputeBackend> make_workers(const std::vector<int>& devices,
                                             const CudaBackendOptions& options) {
  auto backend = std::make_unique<ComputeBackend>();
  backend->devices.resize(devices.size());
  std::vector<std::exception_ptr> failures(devices.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          backend->devices[i] = std::make_unique<DeviceWorker>(devices[i], options);
        } catch (...) {
          failures[i] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return backend;
}

void require_devices(std::span<const int> devices, int count) {
  for (auto device = devices.begin(); device != devices.end(); ++device) {
    if (*device < 0 || *device >= count) {
      throw InputError("--gpus", fmt::format("devices from 0 to {}", count - 1),
                       fmt::format("{}", *device));
    }
    if (std::find(devices.begin(), device, *device) != device) {
      throw InputError("--gpus", "each device once", fmt::format("{} twice", *device));
    }
  }
}

}  // namespace

std::vector<int> devices_of_process(const std::vector<int>& listed) {
  const ProcessGroup group = process_group();
  const int count = cuda::device_count();
  std::vector<int> all = listed;
  if (all.empty()) {
    all.resize(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), 0);
  }
  require_devices(all, count);
  std::vector<int> devices;
  for (const int place : share_of_devices(group, static_cast<int>(all.size()))) {
    devices.push_back(all[static_cast<std::size_t>(place)]);
  }
  if (devices.empty()) {
    throw InputError("mpi",
                     fmt::format("at most one process per device, {} on this host", all.size()),
                     fmt::format("{}", group.local_size));
  }
  return devices;
}

ComputeBackendFactory cuda_backend(const CudaBackendOptions& options) {
  std::vector<int> devices = options.devices.empty() ? devices_of_process() : options.devices;
  require_devices(devices, cuda::device_count());
  if (options.arena_bytes < (std::int64_t{1} << 20)) {
    throw InputError("arena", "at least 1 MiB", fmt::format("{} bytes", options.arena_bytes));
  }
  const DeviceInfo info = cuda::device_info(devices.front());
  for (const int device : devices) {
    const std::string name = cuda::device_info(device).name;
    if (name != info.name) {
      throw InputError("--gpus", "devices of one kind, " + info.name, name);
    }
  }
  return {{hardware_json(info), operator_json(options, info)},
          [devices, options] { return make_workers(devices, options); }};
}

}  // namespace neuroshard
