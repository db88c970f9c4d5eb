// Devices, their memory and their errors.
#include "neuroshard/collect/compute/cuda/device.h"

#include <fmt/format.h>

#include "neuroshard/core/units.h"

namespace neuroshard::cuda {

namespace {

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

int driver_version() {
  int version = 0;
  (void)cudaDriverGetVersion(&version);  // 0 without a driver
  return version;
}

/// The runtime gives the same error for a driver that is too old and for one that is missing.
[[noreturn]] void fail_without_driver() {
  const int driver = driver_version();
  if (driver == 0) throw MachineError("cuda: expected an NVIDIA driver, found none");
  throw MachineError(fmt::format("cuda: expected a driver for CUDA {}, found one for {}",
                                 version_text(CUDART_VERSION), version_text(driver)));
}

}  // namespace

void check(cudaError_t status, const char* what) {
  switch (status) {
    case cudaSuccess:
      return;
    case cudaErrorMemoryAllocation:
      (void)cudaGetLastError();  // is not to be met again by the next call
      throw OutOfDeviceMemory(fmt::format("cuda: out of device memory ({})", what));
    case cudaErrorSystemDriverMismatch:
      throw MachineError(fmt::format(
          "cuda: expected a driver whose library and kernel module are of one release, got a "
          "library for CUDA {} with another module: load the module anew, or restart the machine",
          version_text(driver_version())));
    case cudaErrorCompatNotSupportedOnDevice:
      throw MachineError(
          "cuda: expected a device that the driver's compatibility library supports, got another: "
          "leave that library out of LD_LIBRARY_PATH, or take a newer driver");
    case cudaErrorInsufficientDriver:
    case cudaErrorStubLibrary:
      fail_without_driver();
    case cudaErrorNoDevice:
      throw MachineError("cuda: expected a device, found none");
    case cudaErrorDevicesUnavailable:
      throw MachineError(
          "cuda: expected a device to itself, got one that is busy: another process holds it, or "
          "it "
          "is in a compute mode that refuses more");
    case cudaErrorNoKernelImageForDevice:
      throw MachineError(
          "cuda: expected a device that this executable has machine code for (option "
          "CMAKE_CUDA_ARCHITECTURES of its build), got another");
    default:
      throw MachineError(fmt::format("cuda: {}: {} ({}); the device may be lost", what,
                                     cudaGetErrorString(status), cudaGetErrorName(status)));
  }
}

int device_count() {
  int count = 0;
  check(cudaGetDeviceCount(&count), "devices");
  if (count == 0) check(cudaErrorNoDevice, "devices");
  return count;
}

DeviceInfo device_info(int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "device properties");
  DeviceInfo info;
  info.name = properties.name;
  info.compute_capability = 10 * properties.major + properties.minor;
  info.num_multiprocessors = properties.multiProcessorCount;
  info.l2_bytes = properties.l2CacheSize;
  info.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  info.resident_threads =
      std::int64_t{properties.multiProcessorCount} * properties.maxThreadsPerMultiProcessor;
  info.driver_version = driver_version();
  check(cudaRuntimeGetVersion(&info.runtime_version), "runtime");
  return info;
}

DeviceBuffer::~DeviceBuffer() { (void)cudaFree(data_); }

/// The old memory is freed first: there may not be room for both.
cudaError_t DeviceBuffer::try_allocate(std::size_t bytes) {
  bytes_ = 0;
  check(cudaFree(std::exchange(data_, nullptr)), "memory");
  const cudaError_t status = cudaMalloc(&data_, bytes);
  if (status == cudaSuccess) {
    bytes_ = bytes;
  } else if (status != cudaErrorMemoryAllocation) {
    check(status, "memory");
  }
  (void)cudaGetLastError();  // is not to be met again by the next call
  return status;
}

void DeviceBuffer::reserve(std::size_t bytes) {
  if (bytes <= bytes_) return;
  if (try_allocate(bytes + bytes / 4) != cudaSuccess) allocate(bytes);
}

void DeviceBuffer::allocate(std::size_t bytes) {
  if (try_allocate(bytes) == cudaSuccess) return;
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "memory");
  throw OutOfDeviceMemory(fmt::format("device memory: expected {} free, got {}",
                                      format_bytes(static_cast<double>(bytes)),
                                      format_bytes(static_cast<double>(free))));
}

}  // namespace neuroshard::cuda
