// CUDA's errors as exceptions, and properties of a device; needs the toolkit's headers.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "neuroshard/core/error.h"

namespace neuroshard::cuda {

/// A sample that asks for more memory than the device has: other samples may be smaller.
class OutOfDeviceMemory : public OutOfMemory {
 public:
  using OutOfMemory::OutOfMemory;
};

/// Throws OutOfDeviceMemory or MachineError "cuda: ..." unless `status` is success. `what` names
/// the work during which the error showed, which may come after the work that caused it.
void check(cudaError_t status, const char* what);

/// Devices that the process may use. Throws MachineError, one line that says what is missing: a
/// driver, a newer driver, a device.
[[nodiscard]] int device_count();

struct DeviceInfo {
  std::string name;
  int compute_capability = 0;  ///< 90 for 9.0
  int num_multiprocessors = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t resident_threads = 0;  ///< of all multiprocessors
  int driver_version = 0;             ///< of CUDA, that the driver supports: 13000 for 13.0
  int runtime_version = 0;
};
[[nodiscard]] DeviceInfo device_info(int device);

/// Memory of the current device.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  /// Makes room for at least `bytes` bytes. Where it must grow, it takes a quarter more, so that it
  /// seldom does, and loses its content. Throws OutOfDeviceMemory.
  void reserve(std::size_t bytes);
  /// Exactly `bytes` bytes, for buffers that will not grow. Throws OutOfDeviceMemory.
  void allocate(std::size_t bytes);

  template <class T = std::byte>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data_);
  }
  [[nodiscard]] std::size_t size() const { return bytes_; }

 private:
  cudaError_t try_allocate(std::size_t bytes);

  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A stream of the current device, which does not wait for others.
class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream"); }
  ~Stream() { (void)cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] cudaStream_t get() const { return stream_; }
  void synchronize() const { check(cudaStreamSynchronize(stream_), "kernels"); }

 private:
  cudaStream_t stream_ = nullptr;
};

/// A point in a stream's time.
class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "event"); }
  ~Event() { (void)cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(const Stream& stream) { check(cudaEventRecord(event_, stream.get()), "event"); }
  void synchronize() const { check(cudaEventSynchronize(event_), "kernels"); }
  /// Both must have come to pass.
  [[nodiscard]] double milliseconds_since(const Event& earlier) const {
    float ms = 0.0F;
    check(cudaEventElapsedTime(&ms, earlier.event_, event_), "kernels");
    return ms;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace neuroshard::cuda
