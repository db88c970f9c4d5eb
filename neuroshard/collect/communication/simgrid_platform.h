// The clusters that SimGrid simulates: built of a preset's links, or read from a platform file and
// refused before SimGrid, which ends its process over many a mistake, meets what it cannot
// simulate.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "neuroshard/core/interconnect.h"

namespace simgrid::s4u {
class Engine;
class Host;
}  // namespace simgrid::s4u

namespace neuroshard {

/// Throws OutOfMemory, with figures, if a simulation of `world_size` devices, which all send to
/// each other at once, would take more memory than there is.
void require_memory(int world_size);

/// One host of SimGrid's per device, with the links of the preset.
[[nodiscard]] std::vector<simgrid::s4u::Host*> build_platform(const Interconnect& interconnect,
                                                              int world_size, int local_world_size);

/// The first `world_size` hosts of a platform file (.xml) by name, 2 before 10. Throws InputError
/// if the file is malformed, has fewer hosts or more than kMaxWorldSize, links beyond the limits of
/// core/interconnect.h, hosts without speed, profiles of times at which any of these change, or no
/// route between two of the hosts.
[[nodiscard]] std::vector<simgrid::s4u::Host*> load_platform(simgrid::s4u::Engine& engine,
                                                             const std::string& platform,
                                                             int world_size);

/// Runs `trial`, which loads the platform file and sends messages, in a process of its own. Throws
/// InputError with what the trial threw, or with what SimGrid said when it ended that process.
void require_survival(const std::string& platform, const std::function<void()>& trial);

}  // namespace neuroshard
