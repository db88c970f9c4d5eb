// The catalog: published workloads from the compiled-in facts, generated ones from their functions.
#include "neuroshard/workload/workload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "neuroshard/core/error.h"
#include "neuroshard/core/text/suggestion.h"
#include "neuroshard/workload/generate/coverage_workload.h"
#include "neuroshard/workload/generate/generated_workloads.h"
#include "neuroshard/workload/published_workloads.h"

namespace neuroshard {

namespace {

WorkloadInfo info_of(const Workload& workload, bool is_seeded) {
  return {.name = workload.name,
          .source = workload.source,
          .num_tables = static_cast<int>(workload.tables.size()),
          .batch_size = workload.batch_size,
          .optimizer = workload.optimizer,
          .is_seeded = is_seeded};
}

}  // namespace

std::vector<WorkloadInfo> list_workloads() {
  std::vector<WorkloadInfo> infos;
  for (const Workload& workload : published_workloads()) infos.push_back(info_of(workload, false));
  infos.push_back(info_of(dlrm_2021(0), true));
  infos.push_back(info_of(dlrm_2022(0), true));
  infos.push_back(info_of(coverage_workload(0), true));
  return infos;
}

Workload find_workload(const std::string& name, std::uint64_t seed) {
  if (name == kDlrm2021) return dlrm_2021(seed);
  if (name == kDlrm2022) return dlrm_2022(seed);
  if (name == kCoverage) return coverage_workload(seed);
  std::vector<std::string> known;
  for (Workload& workload : published_workloads()) {
    if (workload.name == name) return std::move(workload);
    known.push_back(workload.name);
  }
  for (const auto& generated : {kDlrm2021, kDlrm2022, kCoverage}) known.emplace_back(generated);
  throw InputError("workload", fmt::format("one of {}", fmt::join(known, ", ")),
                   fmt::format("\"{}\"{}", name, suggestion(name, known)));
}

}  // namespace neuroshard
