// Reading the compiled-in facts. They are part of the build, so their form is not checked.
#include "neuroshard/workload/published_workloads.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "neuroshard/workload/table_names.h"

namespace neuroshard {

namespace {

using nlohmann::json;

Optimizer read_optimizer(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '_');
  return optimizer_from_string(name).value();
}

constexpr std::string_view kPowerLaw = "power law, alpha ";

/// "power law, alpha 1.1" as a distribution. Any other text ("uniform (...)", or words that give no
/// number) is no distribution, which means uniform.
std::optional<IndexDistribution> read_distribution(const std::string& text) {
  if (!text.starts_with(kPowerLaw)) return std::nullopt;
  return IndexDistribution{.zipf_exponent = std::stod(text.substr(kPowerLaw.size())),
                           .access_classes = {}};
}

/// The published words, and what is assumed where they name no distribution.
std::string read_accesses(const std::string& text) {
  const bool is_distribution = text.starts_with(kPowerLaw) || text.starts_with("uniform");
  return is_distribution ? text : text + "; taken as uniform";
}

/// Tables from the columns of `facts`; `num_tables`, if there, repeats each.
std::vector<Table> read_tables(const json& facts, const Table& common) {
  std::vector<Table> tables;
  const std::size_t num_groups = facts.at("num_embeddings").size();
  for (std::size_t group = 0; group < num_groups; ++group) {
    Table table = common;
    table.num_embeddings = facts.at("num_embeddings")[group];
    table.embedding_dim = facts.at("embedding_dim")[group];
    table.pooling_factor = facts.at("pooling_factor")[group];
    const std::size_t copies =
        facts.contains("num_tables") ? facts["num_tables"][group].get<std::size_t>() : 1;
    tables.insert(tables.end(), copies, table);
  }
  name_tables(tables);
  return tables;
}

Workload read_workload(const json& facts) {
  Table common;
  common.data_type = data_type_from_string(facts.value("data_type", "fp32")).value();
  common.index_distribution = read_distribution(facts.at("index_distribution"));
  return {.name = facts.at("name"),
          .source = facts.at("source"),
          .accesses = read_accesses(facts.at("index_distribution")),
          .batch_size = facts.value("batch_size", kDefaultBatchSize),
          .optimizer = read_optimizer(facts.at("optimizer")),
          .tables = read_tables(facts.value("groups", facts), common)};
}

}  // namespace

std::vector<Workload> published_workloads() {
  const json facts = json::parse(published_workloads_json());
  std::vector<Workload> workloads;
  for (const json& workload : facts.at("workloads")) workloads.push_back(read_workload(workload));
  return workloads;
}

std::vector<LocalityFacts> published_locality() {
  const json facts = json::parse(published_workloads_json());
  std::vector<LocalityFacts> data_sets;
  for (const json& data_set : facts.at("locality").at("data_sets")) {
    data_sets.push_back({.name = data_set.at("name"),
                         .num_tables = data_set.at("num_tables"),
                         .batch_size = data_set.at("batch_size"),
                         .num_indices = data_set.at("num_indices"),
                         .num_distinct_rows = data_set.at("num_distinct_rows"),
                         .mean_pooling_factor = data_set.at("mean_pooling_factor"),
                         .share_of_rows = data_set.at("share_of_rows"),
                         .share_of_indices = data_set.at("share_of_indices")});
  }
  return data_sets;
}

}  // namespace neuroshard
