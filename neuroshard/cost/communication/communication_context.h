// What the communication network knows of an all-to-all: its topology and direction, nothing of its
// devices' columns and starts.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "neuroshard/core/interconnect.h"
#include "neuroshard/core/task.h"

namespace neuroshard {

enum class AllToAll { forward, backward };

inline constexpr std::size_t kNumContextFeatures = 6;
using CommunicationContext = std::array<float, kNumContextFeatures>;

/// The features, in order: base-2 logarithms of the number of devices, of devices per host, of
/// hosts, of the ratio of the links' rates in a host and between hosts and of devices on a card; 1
/// for the backward all-to-all.
inline constexpr std::string_view kCommunicationSchema = "communication/2";

[[nodiscard]] CommunicationContext communication_context(const Interconnect& interconnect,
                                                         const Topology& topology,
                                                         AllToAll direction);

}  // namespace neuroshard
