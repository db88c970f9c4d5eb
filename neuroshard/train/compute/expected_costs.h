// What sets that nobody measured on a machine should cost there, by those that somebody did.
#pragma once

#include <span>
#include <vector>

#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/cost/compute/neural_compute_model.h"
#include "neuroshard/train/compute/compute_dataset.h"

namespace neuroshard {

/// Costs [ms] of the sets of `unmeasured`: those by `model`, which knows another machine, times
/// what a Gaussian process makes of by how much the costs of the samples `known` of `measured`
/// differ from the model's. It goes by the size of the set, the number of its pieces, the batch,
/// the kinds of its work by the model's estimate, and how far the model is from that. Near measured
/// sets it follows them, far from all of them it changes the model's cost by what all have in
/// common. Of more than 3,000 known samples the first 3,000 count.
[[nodiscard]] std::vector<double> expected_costs(const NeuralComputeModel& model,
                                                 const ComputeDataset& measured,
                                                 std::span<const int> known,
                                                 const ComputeDataset& unmeasured,
                                                 ThreadPool& pool);

}  // namespace neuroshard
