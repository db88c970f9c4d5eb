// Reading the compiled-in facts. They are part of the build, so their form is not checked.
#include "neuroshard/workload/published_workloads.h"

#include <algorithm>
#include <charconv>

#include "neuroshard/io/json/json_reader.h"
#include "neuroshard/workload/table_names.h"

namespace neuroshard {

namespace {

constexpr std::string_view kLocation = "published workloads";

Optimizer read_optimizer(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '_');
  return optimizer_from_string(name).value();
}

constexpr std::string_view kPowerLaw = "power law, alpha ";

/// "power law, alpha 1.1" as a distribution. Any other text ("uniform (...)", or words that give no
/// number) is no distribution, which means uniform.
std::optional<IndexDistribution> read_distribution(const std::string& text) {
  if (!text.starts_with(kPowerLaw)) return std::nullopt;
  IndexDistribution distribution;
  // Not by std::stod, which knows the decimal point of the process's language.
  const std::string number = text.substr(kPowerLaw.size());
  (void)std::from_chars(number.data(), number.data() + number.size(), distribution.zipf_exponent);
  return distribution;
}

/// The published words, and what is assumed where they name no distribution.
std::string read_accesses(const std::string& text) {
  const bool is_distribution = text.starts_with(kPowerLaw) || text.starts_with("uniform");
  return is_distribution ? text : text + "; taken as uniform";
}

/// Tables from the columns of `facts`; `num_tables`, if there, repeats each.
std::vector<Table> read_tables(const JsonReader& facts, const Table& common) {
  const JsonReader rows = facts.field("num_embeddings");
  const JsonReader columns = facts.field("embedding_dim");
  const JsonReader pooling_factors = facts.field("pooling_factor");
  const std::optional<JsonReader> copies = facts.optional_field("num_tables");
  std::vector<Table> tables;
  for (std::size_t group = 0; group < rows.array_size(); ++group) {
    Table table = common;
    table.num_embeddings = rows.element(group).integer();
    table.embedding_dim = columns.element(group).integer();
    table.pooling_factor = pooling_factors.element(group).number();
    const std::int64_t count = copies ? copies->element(group).integer() : 1;
    tables.insert(tables.end(), static_cast<std::size_t>(count), table);
  }
  name_tables(tables);
  return tables;
}

Workload read_workload(const JsonReader& facts) {
  const std::optional<JsonReader> data_type = facts.optional_field("data_type");
  const std::optional<JsonReader> batch_size = facts.optional_field("batch_size");
  const std::optional<JsonReader> groups = facts.optional_field("groups");
  const std::string& accesses = facts.field("index_distribution").text();
  Table common;
  common.data_type = data_type_from_string(data_type ? data_type->text() : "fp32").value();
  common.index_distribution = read_distribution(accesses);
  return {.name = facts.field("name").text(),
          .source = facts.field("source").text(),
          .accesses = read_accesses(accesses),
          .batch_size = batch_size ? batch_size->integer() : kDefaultBatchSize,
          .optimizer = read_optimizer(facts.field("optimizer").text()),
          .tables = read_tables(groups ? *groups : facts, common)};
}

ReuseHistogram read_histogram(const JsonReader& array) {
  ReuseHistogram histogram{};
  for (std::size_t bin = 0; bin < histogram.size(); ++bin) {
    histogram[bin] = array.element(bin).number();
  }
  return histogram;
}

LocalityFacts read_locality(const JsonReader& facts) {
  return {.name = facts.field("name").text(),
          .num_tables = static_cast<int>(facts.field("num_tables").integer()),
          .batch_size = facts.field("batch_size").integer(),
          .num_indices = facts.field("num_indices").number(),
          .num_distinct_rows = facts.field("num_distinct_rows").number(),
          .mean_pooling_factor = facts.field("mean_pooling_factor").number(),
          .share_of_rows = read_histogram(facts.field("share_of_rows")),
          .share_of_indices = read_histogram(facts.field("share_of_indices"))};
}

}  // namespace

std::vector<Workload> published_workloads() {
  const Json document = parse_json(published_workloads_json(), kLocation);
  const JsonReader facts(document, kLocation);
  const JsonReader all = facts.field("workloads");
  std::vector<Workload> workloads;
  for (std::size_t i = 0; i < all.array_size(); ++i) {
    workloads.push_back(read_workload(all.element(i)));
  }
  return workloads;
}

std::vector<Workload> published_pools() {
  std::vector<Workload> pools = published_workloads();
  for (Workload& pool : pools) {
    for (Table& table : pool.tables) table.name = pool.name + "/" + table.name;
  }
  return pools;
}

std::vector<LocalityFacts> published_locality() {
  const Json document = parse_json(published_workloads_json(), kLocation);
  const JsonReader facts(document, kLocation);
  const JsonReader locality = facts.field("locality");
  const JsonReader all = locality.field("data_sets");
  std::vector<LocalityFacts> data_sets;
  for (std::size_t i = 0; i < all.array_size(); ++i) {
    data_sets.push_back(read_locality(all.element(i)));
  }
  return data_sets;
}

}  // namespace neuroshard
