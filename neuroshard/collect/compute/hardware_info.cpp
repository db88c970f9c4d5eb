// The processor's description from the operating system.
#include "neuroshard/collect/compute/hardware_info.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "neuroshard/core/parallel.h"

namespace neuroshard {

namespace {

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t start = line.find(": ");
    if (start != std::string::npos) return line.substr(start + 2);
  }
  return "unknown processor";
}

std::int64_t system_value(int name) { return std::max<std::int64_t>(sysconf(name), 0); }

}  // namespace

HardwareInfo cpu_info() {
  return {processor_name(), available_cores(), system_value(_SC_LEVEL2_CACHE_SIZE),
          system_value(_SC_LEVEL3_CACHE_SIZE),
          system_value(_SC_PHYS_PAGES) * system_value(_SC_PAGESIZE)};
}

}  // namespace neuroshard
