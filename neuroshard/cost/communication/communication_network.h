// The communication network: how much each bound on the last end counts on a topology.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "neuroshard/cost/communication/rendezvous_schedule.h"
#include "neuroshard/cost/compute/compute_network.h"

namespace neuroshard {

/// A network of the topology alone gives weights w_k > 0 that add up to 1, and with the names of
/// AllToAllEnds,
///
///   end_d = last_start + share_d * sum_k w_k rest_k.
///
/// Within one topology the weights are constants, and no last_start + rest_k ever falls when
/// columns are added to a device or when one starts later; so neither does the last end, and with
/// it the cost of a plan, whatever was learned. It does not depend on which device is which, and
/// lies between the last end of LinkSchedule and last_start + 8 times the longest time of any link:
/// from the first start to the last end an all-to-all takes at most 9 times as long as LinkSchedule
/// says, and a plan costs at most 16 times as much.
struct CommunicationNetwork {
  std::vector<float> feature_mean;   ///< subtracted from each feature of the context,
  std::vector<float> feature_scale;  ///< then multiplied
  std::vector<DenseLayer> layers;    ///< ReLU after each but the last, of kNumLastEnds outputs
};

using MixtureWeights = std::array<double, kNumLastEnds>;

/// The softmax of the network's outputs; as many features as the network has means.
[[nodiscard]] MixtureWeights mixture_weights(const CommunicationNetwork& network,
                                             std::span<const float> context);

/// From the last start to the last device's end [ms].
[[nodiscard]] double mixed(const AllToAllEnds& ends, const MixtureWeights& weights);

}  // namespace neuroshard
