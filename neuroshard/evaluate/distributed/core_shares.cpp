// Dividing the cores of a host among its processes.
#include "neuroshard/evaluate/distributed/core_shares.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace neuroshard {

namespace {

/// The cores that this process may run on; all of the host if the system does not say.
std::vector<int> allowed_cores() {
  std::vector<int> cores;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const bool known = sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
  const long online = known ? CPU_SETSIZE : std::max(1L, sysconf(_SC_NPROCESSORS_ONLN));
  for (int core = 0; core < static_cast<int>(online); ++core) {
    if (!known || CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  if (cores.empty()) cores.push_back(0);
  return cores;
}

/// "0 1 2\nhost", to be sent.
std::string text_of(const ProcessPlace& place) {
  return fmt::format("{}\n{}", fmt::join(place.cores, " "), place.host);
}

ProcessPlace place_of(const std::string& text) {
  ProcessPlace place;
  std::istringstream lines(text);
  std::string cores;
  std::getline(lines, cores);
  std::getline(lines, place.host);
  std::istringstream numbers(cores);
  for (int core = 0; numbers >> core;) place.cores.push_back(core);
  return place;
}

std::vector<int> own_cores(std::span<const ProcessPlace> processes, std::size_t rank) {
  const ProcessPlace& own = processes[rank];
  std::size_t alike = 0;
  std::size_t before = 0;
  for (std::size_t p = 0; p < processes.size(); ++p) {
    if (processes[p].host != own.host || processes[p].cores != own.cores) continue;
    ++alike;
    if (p < rank) ++before;
  }
  const std::size_t count = std::max<std::size_t>(1, own.cores.size() / alike);
  std::vector<int> cores;
  for (std::size_t i = 0; i < count; ++i) {
    cores.push_back(own.cores[(before * count + i) % own.cores.size()]);
  }
  return cores;
}

}  // namespace

CoreShare core_share(std::span<const ProcessPlace> processes, int rank) {
  CoreShare share;
  std::set<std::pair<std::string_view, int>> taken;
  for (std::size_t p = 0; p < processes.size(); ++p) {
    std::vector<int> cores = own_cores(processes, p);
    for (const int core : cores) {
      if (!taken.emplace(processes[p].host, core).second) share.oversubscribed = true;
    }
    if (p == static_cast<std::size_t>(rank)) share.cores = std::move(cores);
  }
  return share;
}

CoreShare take_share_of_cores(MpiTransport& transport) {
  const ProcessPlace own{MpiTransport::host_name(), allowed_cores()};
  std::vector<ProcessPlace> processes;
  for (const std::string& text : transport.all_gather(text_of(own))) {
    processes.push_back(place_of(text));
  }
  CoreShare share = core_share(processes, transport.rank());
  cpu_set_t mine;
  CPU_ZERO(&mine);
  for (const int core : share.cores) CPU_SET(core, &mine);
  sched_setaffinity(0, sizeof(mine), &mine);  // a hint: without it the kernel places threads
  return share;
}

}  // namespace neuroshard
