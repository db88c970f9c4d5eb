// The compiled-in workloads against the file in data/.
#include "neuroshard/workload/published_workloads.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace neuroshard {
namespace {

std::string file_text() {
  std::ifstream file(NEUROSHARD_SOURCE_DIR "/data/published_workloads.json");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(PublishedWorkloads, CompiledInTextIsTheFile) {
  EXPECT_EQ(published_workloads_json(), file_text());
}

TEST(PublishedWorkloads, TablesAreThoseOfTheFile) {
  const nlohmann::json facts = nlohmann::json::parse(file_text()).at("workloads");
  const std::vector<Workload> workloads = published_workloads();
  ASSERT_EQ(workloads.size(), facts.size());
  for (std::size_t w = 0; w < workloads.size(); ++w) {
    EXPECT_EQ(workloads[w].name, facts[w].at("name"));
    const nlohmann::json& columns = facts[w].contains("groups") ? facts[w]["groups"] : facts[w];
    std::size_t table = 0;
    for (std::size_t group = 0; group < columns.at("num_embeddings").size(); ++group) {
      const int copies =
          columns.contains("num_tables") ? columns["num_tables"][group].get<int>() : 1;
      for (int copy = 0; copy < copies; ++copy, ++table) {
        ASSERT_LT(table, workloads[w].tables.size());
        const Table& actual = workloads[w].tables[table];
        EXPECT_EQ(actual.num_embeddings, columns["num_embeddings"][group]);
        EXPECT_EQ(actual.embedding_dim, columns["embedding_dim"][group]);
        EXPECT_EQ(actual.pooling_factor, columns["pooling_factor"][group]);
      }
    }
    EXPECT_EQ(table, workloads[w].tables.size());
  }
}

TEST(PublishedWorkloads, SettingsAreRead) {
  const std::vector<Workload> workloads = published_workloads();
  ASSERT_EQ(workloads.size(), 8U);
  EXPECT_EQ(workloads[0].name, "mlperf-dlrm-dcnv2");
  EXPECT_EQ(workloads[0].tables.size(), 26U);
  EXPECT_EQ(workloads[0].batch_size, 65'536);
  EXPECT_EQ(workloads[0].optimizer, Optimizer::rowwise_adagrad);
  EXPECT_FALSE(workloads[0].tables[0].index_distribution.has_value());
  EXPECT_EQ(workloads[0].tables[0].name, "t00");
  EXPECT_EQ(workloads[0].tables[25].name, "t25");
  for (std::size_t w = 1; w < 5; ++w) {
    EXPECT_EQ(workloads[w].batch_size, kDefaultBatchSize);
    EXPECT_EQ(workloads[w].optimizer, Optimizer::sgd);
    for (const Table& table : workloads[w].tables) {
      ASSERT_TRUE(table.index_distribution.has_value());
      EXPECT_EQ(table.index_distribution->zipf_exponent, 1.1);
    }
  }
}

TEST(PublishedWorkloads, CriteoTablesHaveOneIndexASampleAndAreTakenAsUniform) {
  const std::vector<Workload> workloads = published_workloads();
  ASSERT_EQ(workloads.size(), 8U);
  const std::array<const char*, 3> names{"criteo-kaggle", "criteo-terabyte-40m", "criteo-terabyte"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Workload& workload = workloads[5 + i];
    EXPECT_EQ(workload.name, names[i]);
    EXPECT_EQ(workload.tables.size(), 26U);
    EXPECT_TRUE(workload.accesses.ends_with("is not published with the sizes; taken as uniform"))
        << workload.accesses;
    for (const Table& table : workload.tables) {
      EXPECT_EQ(table.pooling_factor, 1.0);
      EXPECT_FALSE(table.index_distribution.has_value());
    }
  }
  EXPECT_EQ(workloads[5].batch_size, 2'048);
  EXPECT_EQ(workloads[5].optimizer, Optimizer::sgd);
  EXPECT_EQ(workloads[5].tables[8].num_embeddings, 3);
  EXPECT_EQ(workloads[6].optimizer, Optimizer::sgd);
  EXPECT_EQ(workloads[7].optimizer, Optimizer::rowwise_adagrad);
}

TEST(PublishedWorkloads, AccessesThatAreADistributionStayAsPublished) {
  const std::vector<Workload> workloads = published_workloads();
  EXPECT_EQ(workloads[0].accesses, "uniform (the benchmark's multi-hot generator)");
  EXPECT_EQ(workloads[1].accesses, "power law, alpha 1.1");
}

TEST(PublishedWorkloads, AsPoolsTheyShareNoTablesName) {
  const std::vector<Workload> workloads = published_workloads();
  const std::vector<Workload> pools = published_pools();
  ASSERT_EQ(pools.size(), workloads.size());
  std::set<std::string> names;
  std::size_t tables = 0;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    EXPECT_EQ(pools[i].name, workloads[i].name);
    ASSERT_EQ(pools[i].tables.size(), workloads[i].tables.size());
    tables += pools[i].tables.size();
    for (std::size_t t = 0; t < pools[i].tables.size(); ++t) {
      const Table& table = pools[i].tables[t];
      const Table& as_published = workloads[i].tables[t];
      names.insert(table.name);
      EXPECT_EQ(table.name, pools[i].name + "/" + as_published.name);
      EXPECT_EQ(table.num_embeddings, as_published.num_embeddings);
      EXPECT_EQ(table.pooling_factor, as_published.pooling_factor);
    }
  }
  EXPECT_EQ(names.size(), tables);
}

TEST(PublishedWorkloads, TablesAreValidAndNamesUnique) {
  for (const Workload& workload : published_workloads()) {
    std::set<std::string> names;
    for (const Table& table : workload.tables) {
      validate(table, workload.name);
      EXPECT_TRUE(names.insert(table.name).second) << table.name;
    }
  }
}

}  // namespace
}  // namespace neuroshard
