// Improvement by taking several pieces at a time and giving them anew.
#pragma once

#include <cstdint>
#include <memory>

#include "neuroshard/search/improve/improvement_chain.h"

namespace neuroshard {

/// A chain that takes a few pieces at a time from one to three devices, mostly the slowest among
/// them, and gives each, cut or whole, to the device that is cheapest with it, of at most 16 that
/// it is tried on. It goes to what results by Metropolis' rule, much colder than annealing.
[[nodiscard]] std::unique_ptr<ImprovementChain> make_large_neighbourhood(
    const Simulator& simulator, const ShardingPlan& plan, const ChainSettings& settings,
    std::uint64_t stream);

}  // namespace neuroshard
