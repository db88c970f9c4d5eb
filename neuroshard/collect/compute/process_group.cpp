// The environment of processes that mpirun started.
#include "neuroshard/collect/compute/process_group.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace neuroshard {

namespace {

int number_in_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr) return otherwise;
  int number = otherwise;
  (void)std::from_chars(text, text + std::strlen(text), number);
  return number;
}

}  // namespace

ProcessGroup process_group() {
  return {number_in_environment("OMPI_COMM_WORLD_RANK", 0),
          number_in_environment("OMPI_COMM_WORLD_SIZE", 1),
          number_in_environment("OMPI_COMM_WORLD_LOCAL_RANK", 0),
          number_in_environment("OMPI_COMM_WORLD_LOCAL_SIZE", 1)};
}

std::string path_of_rank(const std::string& path, const ProcessGroup& group) {
  if (group.size == 1) return path;
  std::filesystem::path result(path);
  const std::string extension = result.extension();
  result.replace_extension(fmt::format(".rank-{}{}", group.rank, extension));
  return result;
}

std::vector<int> share_of_devices(const ProcessGroup& group, int count) {
  std::vector<int> devices;
  for (int device = group.local_rank; device < count; device += group.local_size) {
    devices.push_back(device);
  }
  return devices;
}

}  // namespace neuroshard
