// A description of this machine: recorded with every measurement, compared when a model is used
// elsewhere.
#pragma once

#include <cstdint>
#include <string>

namespace neuroshard {

struct HardwareInfo {
  std::string name;           ///< processor, as the operating system calls it
  int num_cores = 0;          ///< that this process may use
  std::int64_t l2_bytes = 0;  ///< per core; 0 if unknown
  std::int64_t l3_bytes = 0;  ///< shared; 0 if unknown
  std::int64_t memory_bytes = 0;
};

/// The name is what the file says; where there is no such file, "unknown processor". Throws
/// MachineError if it cannot be read: what is measured would be of another machine each time that
/// it can.
[[nodiscard]] HardwareInfo cpu_info(const std::string& name_file = "/proc/cpuinfo");

}  // namespace neuroshard
