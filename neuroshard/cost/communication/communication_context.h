// What the communication network knows of an all-to-all: its topology and direction, nothing of its
// devices' columns and starts.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "neuroshard/core/interconnect.h"
#include "neuroshard/core/task.h"

namespace neuroshard {

enum class AllToAll { forward, backward };

inline constexpr std::size_t kNumContextFeatures = 6;
using CommunicationContext = std::array<float, kNumContextFeatures>;

/// Names of the features, in order; "communication/2" is this list.
[[nodiscard]] const std::vector<std::string>& communication_context_names();
inline constexpr std::string_view kCommunicationSchema = "communication/2";

[[nodiscard]] CommunicationContext communication_context(const Interconnect& interconnect,
                                                         const Topology& topology,
                                                         AllToAll direction);

}  // namespace neuroshard
