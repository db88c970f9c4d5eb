// The devices of a host, measuring in parallel.
#include "neuroshard/collect/compute/cuda/cuda_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

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

/// The one set that a worker has ready.
class CudaPreparedSet final : public PreparedSet {
 public:
  explicit CudaPreparedSet(DeviceWorker& worker) : worker_(worker) {}
  void forward() override {
    worker_.forward();
    worker_.synchronize();
  }
  void backward() override {
    worker_.backward();
    worker_.synchronize();
  }

 private:
  DeviceWorker& worker_;
};

class CudaBackend final : public ComputeBackend {
 public:
  CudaBackend(std::vector<int> devices, CudaBackendOptions options)
      : devices_(std::move(devices)), options_(std::move(options)) {
    // Now, and in parallel: a device without room for the arena must not show after the first hour.
    workers_.resize(devices_.size());
    on_each_device([&](std::size_t i) {
      workers_[i] = std::make_unique<DeviceWorker>(devices_[i], options_);
    });
  }

  void measure(const std::function<std::optional<PieceSet>()>& next, int /*in_flight*/,
               std::int64_t batch_size, Optimizer optimizer,
               const std::function<void(const PieceSetResult&)>& on_done) override {
    std::mutex mutex;
    bool stopped = false;  // by a failure of any device
    on_each_device([&](std::size_t i) {
      DeviceWorker& worker = *workers_[i];
      worker.forget_tables();  // others may lie at their addresses now
      try {
        while (true) {
          std::optional<PieceSet> set;
          {
            const std::lock_guard lock(mutex);
            if (!stopped) set = next();
          }
          if (!set) break;
          const PieceSetResult result = measure_one(worker, *set, batch_size, optimizer);
          const std::lock_guard lock(mutex);
          on_done(result);
        }
      } catch (...) {
        const std::lock_guard lock(mutex);
        stopped = true;
        throw;
      }
    });
  }

  std::unique_ptr<PreparedSet> prepare_set(PieceSet set, std::int64_t batch_size,
                                           Optimizer optimizer) override {
    cuda::check(cudaSetDevice(devices_.front()), "device");
    DeviceWorker& worker = *workers_.front();
    worker.forget_tables();
    worker.prepare(set, batch_size, optimizer);
    return std::make_unique<CudaPreparedSet>(worker);
  }

 private:
  static PieceSetResult measure_one(DeviceWorker& worker, const PieceSet& set,
                                    std::int64_t batch_size, Optimizer optimizer) {
    const std::int64_t id = set.id;
    try {
      worker.prepare(set, batch_size, optimizer);
      return {id, worker.time_passes(), ""};
    } catch (const cuda::OutOfDeviceMemory& error) {
      return {id, std::nullopt, error.what()};
    }
  }

  /// Runs body(i) for every device in a thread of its own; throws the first failure after all have
  /// ended.
  template <class Body>
  void on_each_device(const Body& body) const {
    std::vector<std::exception_ptr> failures(devices_.size());
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < devices_.size(); ++i) {
        threads.emplace_back([&, i] {
          try {
            cuda::check(cudaSetDevice(devices_[i]), "device");
            body(i);
          } catch (...) {
            failures[i] = std::current_exception();
          }
        });
      }
    }
    for (const std::exception_ptr& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
  }

  std::vector<int> devices_;
  CudaBackendOptions options_;
  std::vector<std::unique_ptr<DeviceWorker>> workers_;
};

}  // namespace

std::vector<int> devices_of_process() {
  const ProcessGroup group = process_group();
  std::vector<int> devices = share_of_devices(group, cuda::device_count());
  if (devices.empty()) {
    throw InputError(
        "mpi", fmt::format("at most one process per device, {} on this host", cuda::device_count()),
        fmt::format("{}", group.local_size));
  }
  return devices;
}

ComputeBackendFactory cuda_backend(const CudaBackendOptions& options) {
  const int count = cuda::device_count();
  std::vector<int> devices = options.devices.empty() ? devices_of_process() : options.devices;
  for (const int device : devices) {
    if (device < 0 || device >= count) {
      throw InputError("--gpus", fmt::format("devices from 0 to {}", count - 1),
                       fmt::format("{}", device));
    }
  }
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
          [devices, options] { return std::make_unique<CudaBackend>(devices, options); }};
}

}  // namespace neuroshard
