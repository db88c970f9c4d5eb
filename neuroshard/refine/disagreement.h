// Where a computation model is least sure: how far the networks of its ensemble are apart.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "neuroshard/core/piece.h"
#include "neuroshard/core/table.h"
#include "neuroshard/cost/compute/compute_cost_model.h"

namespace neuroshard {

/// Of a set of pieces of `tables`, slices of rows among them: the range of the predictions of the
/// model's networks relative to their mean. 0 for a model of a single network. Threads may share
/// the function.
[[nodiscard]] std::function<double(std::span<const Piece>)> disagreement_about(
    std::shared_ptr<const ComputeCostModel> model, const std::vector<Table>& tables,
    std::int64_t batch_size, Optimizer optimizer);

}  // namespace neuroshard
