// Large-neighbourhood search: takes several pieces at a time off their devices and places them
// anew.
#pragma once

#include <cstdint>
#include <memory>

#include "neuroshard/search/improve/improvement_chain.h"

namespace neuroshard {

/// A chain that takes a few pieces at a time from one to three devices, mostly including the
/// slowest, and gives each, cut or whole, to the device that is cheapest with it among at most 16
/// that it is tried on. It accepts the result by Metropolis' rule, at much lower temperatures than
/// annealing.
[[nodiscard]] std::unique_ptr<ImprovementChain> make_large_neighbourhood(
    const Simulator& simulator, const ShardingPlan& plan, const ChainSettings& settings,
    std::uint64_t stream);

}  // namespace neuroshard
