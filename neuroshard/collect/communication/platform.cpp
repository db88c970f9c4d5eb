// Platforms by name or file.
#include "neuroshard/collect/communication/platform.h"

#include <filesystem>

namespace neuroshard {

bool is_platform_file(const std::string& platform) { return platform.ends_with(".xml"); }

std::string platform_name(const std::string& platform) {
  return is_platform_file(platform) ? std::filesystem::path(platform).stem().string() : platform;
}

const Interconnect& platform_interconnect(const std::string& platform) {
  return find_interconnect(platform, "platform", ", or a SimGrid platform file (.xml)");
}

}  // namespace neuroshard
