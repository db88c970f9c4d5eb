// The published facts that are compiled into the library: workloads and locality statistics.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "neuroshard/workload/workload.h"

namespace neuroshard {

/// For published workloads that give no batch size.
inline constexpr std::int64_t kDefaultBatchSize = 65'536;

/// Aggregates over all tables of one batch of Meta's public embedding lookup data set.
struct LocalityFacts {
  std::string name;  ///< the published file's
  int num_tables = 0;
  std::int64_t batch_size = 0;
  double num_indices = 0.0;
  double num_distinct_rows = 0.0;
  double mean_pooling_factor = 0.0;
  ReuseHistogram share_of_rows{};     ///< of the distinct rows; rounded to 0.001
  ReuseHistogram share_of_indices{};  ///< of all lookups; rounded to 0.001
};

/// The text of data/published_workloads.json as it was when the library was built.
[[nodiscard]] std::string_view published_workloads_json();

/// The workloads whose tables are published one by one.
[[nodiscard]] std::vector<Workload> published_workloads();

/// The same with their tables' names unique among all of them: "criteo-kaggle/t00".
[[nodiscard]] std::vector<Workload> published_pools();

/// The data sets of which only aggregates are published.
[[nodiscard]] std::vector<LocalityFacts> published_locality();

}  // namespace neuroshard
