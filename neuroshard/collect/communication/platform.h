// A simulation's platform: an interconnect's preset, or a user's own SimGrid platform file.
#pragma once

#include <string>

#include "neuroshard/core/interconnect.h"

namespace neuroshard {

/// Whether this is the path of a SimGrid platform file (.xml), not the name of a preset.
[[nodiscard]] bool is_platform_file(const std::string& platform);

/// The preset's name, or that of the file without folder and ending.
[[nodiscard]] std::string platform_name(const std::string& platform);

/// The preset. Throws InputError if there is none of this name.
[[nodiscard]] const Interconnect& platform_interconnect(const std::string& platform);

}  // namespace neuroshard
