// Annealed moves, exchanges, cuts and merges of pieces between two devices.
#pragma once

#include <cstdint>
#include <memory>

#include "neuroshard/search/improve/improvement_chain.h"

namespace neuroshard {

/// A chain that goes to every neighbour (local_search.h) whose energy is no higher than Metropolis'
/// rule allows, at a temperature that falls over the chain's length.
[[nodiscard]] std::unique_ptr<ImprovementChain> make_annealing(const Simulator& simulator,
                                                               const ShardingPlan& plan,
                                                               const ChainSettings& settings,
                                                               std::uint64_t stream);

}  // namespace neuroshard
