// The communication network laid out for evaluation: as few operations as its formula allows.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "neuroshard/cost/communication/communication_network.h"

namespace neuroshard {

/// Differs from the network's formula in three ways, none of which changes the result beyond
/// rounding: the features' standardisation is part of the first layer; the head's products with the
/// mean and the largest code are computed once for all devices; layers are padded.
class CommunicationInference {
 public:
  /// Scratch memory of an evaluation; to be reused, one per thread.
  struct Scratch {
    std::vector<float> rows;
    std::vector<float> next_rows;
    std::vector<float> pooled;   ///< mean and largest code
    std::vector<float> context;  ///< the head's first layer applied to them, with its bias
  };

  explicit CommunicationInference(const CommunicationNetwork& network);

  /// y of each device of one all-to-all. `features`: the devices' features one after the other, as
  /// many as the network has for each element of `y`.
  void run(std::span<const float> features, std::span<float> y, Scratch& scratch) const;

 private:
  struct Layer {
    std::size_t inputs = 0;
    std::size_t outputs = 0;     ///< without padding
    std::size_t padded = 0;      ///< with it
    std::vector<float> weights;  ///< inputs x padded outputs, row-major
    std::vector<float> bias;     ///< padded
  };
  /// Of the inputs [first, first + count) of a layer.
  static Layer laid_out(const DenseLayer& layer, int first, int count);
  /// The pooled codes, through the part of the head's first layer that sees them.
  void pool(std::size_t devices, Scratch& scratch) const;
  static void apply(const Layer& layer, const std::vector<float>& bias, bool relu,
                    std::size_t devices, Scratch& scratch);

  std::vector<Layer> encoder_;
  std::vector<Layer> head_;  ///< the first one without its context
  Layer head_context_;
};

}  // namespace neuroshard
