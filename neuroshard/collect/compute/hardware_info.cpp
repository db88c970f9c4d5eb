// The processor's description from the operating system.
#include "neuroshard/collect/compute/hardware_info.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>

#include "neuroshard/core/error.h"
#include "neuroshard/core/machine/parallel.h"

namespace neuroshard {

namespace {

constexpr const char* kUnknown = "unknown processor";

std::string processor_name(const std::string& path) {
  errno = 0;
  std::ifstream info(path);
  if (!info.is_open() && errno == ENOENT) return kUnknown;
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t start = line.find(": ");
    if (start != std::string::npos) return line.substr(start + 2);
  }
  if (!info.is_open() || info.bad()) {
    throw MachineError(fmt::format("{}: expected the name of the processor, got {}", path,
                                   std::generic_category().message(errno != 0 ? errno : EIO)));
  }
  return kUnknown;
}

std::int64_t system_value(int name) { return std::max<std::int64_t>(sysconf(name), 0); }

}  // namespace

HardwareInfo cpu_info(const std::string& name_file) {
  return {processor_name(name_file), available_cores(), system_value(_SC_LEVEL2_CACHE_SIZE),
          system_value(_SC_LEVEL3_CACHE_SIZE),
          system_value(_SC_PHYS_PAGES) * system_value(_SC_PAGESIZE)};
}

}  // namespace neuroshard
