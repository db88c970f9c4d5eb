// Workloads as text.
#include "neuroshard/report/workload_report.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "neuroshard/core/units.h"
#include "neuroshard/report/text_table.h"
#include "neuroshard/workload/generate/aggregate_statistics.h"

namespace neuroshard {

namespace {

/// "1", "2", "3-4", ..., "> 32768": how often a row of this bin is hit.
std::string hits_of(int bin) {
  const std::int64_t high = std::int64_t{1} << bin;
  if (bin < 2) return fmt::format("{}", high);
  if (bin < kReuseBins - 1) return fmt::format("{}-{}", high / 2 + 1, high);
  return fmt::format("> {}", high / 2);
}

/// Empty bins are left out.
std::string reuse_table(const AggregateStatistics& statistics) {
  TextTable table;
  for (const char* title : {"rows hit", "share of rows", "share of lookups"}) {
    table.add_column(title);
  }
  for (int bin = 0; bin < kReuseBins; ++bin) {
    if (statistics.share_of_rows[bin] <= 0.0) continue;
    table.add_row({hits_of(bin), fmt::format("{:.4f}", statistics.share_of_rows[bin]),
                   fmt::format("{:.4f}", statistics.share_of_indices[bin])});
  }
  return table.to_string();
}

/// "hashed", or of how many tables each: "hashed 20, by_frequency 4, measured 2".
std::string row_orders(const std::vector<Table>& tables) {
  int measured = 0;
  int by_frequency = 0;
  for (const Table& table : tables) {
    if (!table.row_access.empty()) {
      ++measured;
    } else if (table.row_order == RowOrder::by_frequency) {
      ++by_frequency;
    }
  }
  const int hashed = static_cast<int>(tables.size()) - measured - by_frequency;
  std::string text;
  for (const auto& [name, count] :
       {std::pair("hashed", hashed), {"by_frequency", by_frequency}, {"measured", measured}}) {
    if (count == static_cast<int>(tables.size())) return name;
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
  }
  return text;
}

}  // namespace

std::string workloads_table(const std::vector<WorkloadInfo>& workloads) {
  TextTable table;
  table.add_column("name", TextTable::Align::left);
  table.add_column("tables");
  table.add_column("batch size");
  table.add_column("optimizer", TextTable::Align::left);
  table.add_column("source", TextTable::Align::left);
  for (const WorkloadInfo& info : workloads) {
    table.add_row({info.name, fmt::format("{}", info.num_tables),
                   fmt::format("{}", info.batch_size), std::string(to_string(info.optimizer)),
                   info.source});
  }
  return table.to_string();
}

std::string workload_text(const Workload& workload, std::int64_t batch_size) {
  const AggregateStatistics statistics = aggregate_statistics(workload.tables, batch_size);
  return fmt::format(
             "{}: {}\n"
             "accesses             {}\n"
             "row order            {}\n"
             "tables               {}\n"
             "rows                 {}\n"
             "weights              {}\n"
             "mean pooling factor  {:.3f}\n"
             "batch size           {}\n"
             "lookups per batch    {:.0f}\n"
             "distinct rows        {:.0f}\n\n",
             workload.name, workload.source, workload.accesses, row_orders(workload.tables),
             workload.tables.size(), statistics.num_embeddings,
             format_bytes(static_cast<double>(statistics.weight_bytes)),
             statistics.mean_pooling_factor, batch_size, statistics.num_indices,
             statistics.distinct_rows) +
         reuse_table(statistics);
}

std::string workload_tables_table(const Workload& workload) {
  TextTable table;
  table.add_column("table", TextTable::Align::left);
  for (const char* title : {"num_embeddings", "embedding_dim", "pooling_factor"}) {
    table.add_column(title);
  }
  for (const Table& t : workload.tables) {
    table.add_row({t.name, fmt::format("{}", t.num_embeddings), fmt::format("{}", t.embedding_dim),
                   fmt::format("{:.4g}", t.pooling_factor)});
  }
  return table.to_string();
}

}  // namespace neuroshard
