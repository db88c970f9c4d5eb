// The CUDA operator on fixtures of the host: memory goes to the device, is poisoned where results
// belong, and comes back.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "neuroshard/collect/compute/cuda/cuda_operator.h"
#include "neuroshard/collect/compute/cuda/device.h"
#include "tests/collect/operator_fixture.h"

namespace neuroshard::cuda {

/// Why there is no device to test on; empty if there is one.
inline std::string missing_device() {
  try {
    (void)device_count();
    return "";
  } catch (const MachineError& error) {
    return error.what();
  }
}

#define SKIP_WITHOUT_DEVICE()                                         \
  if (const std::string reason = missing_device(); !reason.empty()) { \
    GTEST_SKIP() << reason;                                           \
  }                                                                   \
  static_assert(true, "a semicolon follows")

template <class T>
DeviceBuffer to_device(const std::vector<T>& values) {
  DeviceBuffer buffer;
  buffer.reserve(std::max<std::size_t>(values.size() * sizeof(T), 16));
  check(cudaMemcpy(buffer.as<>(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
        "test");
  return buffer;
}

template <class T>
void from_device(const DeviceBuffer& buffer, std::vector<T>& values) {
  check(cudaMemcpy(values.data(), buffer.as<>(), values.size() * sizeof(T), cudaMemcpyDeviceToHost),
        "test");
}

/// All bits set: NaN as a float, no row as a key.
inline void poison(const DeviceBuffer& buffer) {
  if (buffer.size() > 0) check(cudaMemset(buffer.as<>(), 0xFF, buffer.size()), "test");
}

class DeviceFixture {
 public:
  explicit DeviceFixture(testing_operator::Fixture& fixture) : fixture_(fixture) {
    for (std::size_t t = 0; t < fixture.rows.size(); ++t) {
      weights_.push_back(fixture.types[t] == DataType::fp32 ? to_device(fixture.weights[t])
                                                            : to_device(fixture.half_weights[t]));
      states_.push_back(to_device(fixture.states[t]));
      indices_.push_back(to_device(fixture.batches[t].indices));
      offsets_.push_back(to_device(fixture.batches[t].offsets));
      tables_.push_back({weights_[t].as<>(), states_[t].as<float>(), fixture.rows[t],
                         fixture.columns[t], fixture.types[t]});
      const auto& offsets = fixture.batches[t].offsets;
      std::int64_t longest = 0;
      for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
        longest = std::max(longest, offsets[b + 1] - offsets[b]);
      }
      lookups_.push_back({indices_[t].as<std::int64_t>(), offsets_[t].as<std::int64_t>(),
                          offsets.back(), longest});
    }
  }

  [[nodiscard]] std::vector<float> forward() {
    CudaEmbeddingOperator embedding = make({});
    std::vector<float> output(fixture_.batch_size * fixture_.total_columns());
    DeviceBuffer on_device = to_device(output);
    poison(on_device);
    embedding.forward(on_device.as<float>());
    stream_.synchronize();
    from_device(on_device, output);
    return output;
  }

  /// Updates the fixture's weights and states.
  void backward(const std::vector<float>& gradient, const OperatorOptions& options) {
    CudaEmbeddingOperator embedding = make(options);
    const DeviceBuffer on_device = to_device(gradient);
    embedding.backward(on_device.as<float>());
    stream_.synchronize();
    for (std::size_t t = 0; t < fixture_.rows.size(); ++t) {
      if (fixture_.types[t] == DataType::fp32) {
        from_device(weights_[t], fixture_.weights[t]);
      } else {
        from_device(weights_[t], fixture_.half_weights[t]);
      }
      from_device(states_[t], fixture_.states[t]);
    }
  }

 private:
  CudaEmbeddingOperator make(const OperatorOptions& options) {
    CudaEmbeddingOperator embedding(tables_, lookups_, fixture_.batch_size, options,
                                    device_info(0).resident_threads, workspace_, stream_);
    for (const DeviceBuffer* buffer :
         {&workspace_.pooling_partials, &workspace_.keys, &workspace_.other_keys,
          &workspace_.sort_scratch, &workspace_.partial_keys, &workspace_.partial_values}) {
      poison(*buffer);
    }
    return embedding;
  }

  testing_operator::Fixture& fixture_;
  std::vector<DeviceBuffer> weights_, states_, indices_, offsets_;
  std::vector<OperatorTable> tables_;
  std::vector<DeviceLookups> lookups_;
  CudaWorkspace workspace_;
  Stream stream_;
};

}  // namespace neuroshard::cuda
