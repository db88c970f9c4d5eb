// The list of the standard reference sets.
#include "neuroshard/collect/compute/reference_sets.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <utility>

#include "neuroshard/collect/compute/cpu/embedding_operator.h"
#include "neuroshard/core/numbers/random.h"

namespace neuroshard {

namespace {

/// Tables that are all alike.
struct ReferenceKind {
  int num_tables;
  std::int64_t num_embeddings;
  std::int64_t num_columns;
  double pooling_factor;
  double zipf_exponent;
  std::int64_t batch_size;
};

/// Files name them: a change needs another name.
constexpr std::array<ReferenceKind, 8> kReferenceKinds{{
    {1, 2'000'000, 64, 20.0, 0.0, 2048},  // rows from memory
    {8, 1'000'000, 32, 10.0, 1.05, 512},  // a hot part in the caches
    {20, 100'000, 16, 5.0, 0.8, 512},     // narrow rows
    {1, 1'000, 128, 50.0, 0.0, 1024},     // rows from the caches, many hits on each
    {4, 2'000'000, 128, 1.0, 0.0, 4096},  // mostly output
    {12, 50'000, 8, 30.0, 0.6, 512},      // mostly indices
    {2, 1'000'000, 256, 5.0, 1.2, 2048},  // wide rows
    {30, 10'000, 64, 2.0, 0.5, 256},      // many small tables
}};

}  // namespace

ReferenceSets make_reference_sets(const Json& operator_info, DataType data_type) {
  ReferenceSets reference_sets;
  reference_sets.name = "reference-1";
  const Json* name = operator_info.find("name");
  if (name != nullptr && name->text() != nullptr && *name->text() != kOperatorName) {
    reference_sets.name += ", " + *name->text();
  }
  for (const char* field : {"arena_bytes", "quantile"}) {
    if (const Json* value = operator_info.find(field)) {
      reference_sets.name += fmt::format(", {} {}", field, describe(*value));
    }
  }
  if (data_type != DataType::fp32) {
    reference_sets.name += fmt::format(", data_type {}", to_string(data_type));
  }
  std::vector<int> first_table;
  for (const ReferenceKind& kind : kReferenceKinds) {
    first_table.push_back(static_cast<int>(reference_sets.tables.size()));
    for (int i = 0; i < kind.num_tables; ++i) {
      Table& table = reference_sets.tables.emplace_back();
      // Where its hot rows lie depends on the name.
      table.name = fmt::format("control-{}", reference_sets.tables.size());
      table.num_embeddings = kind.num_embeddings;
      table.embedding_dim = kind.num_columns;
      table.pooling_factor = kind.pooling_factor;
      table.data_type = data_type;
      table.index_distribution = IndexDistribution{.zipf_exponent = kind.zipf_exponent};
    }
  }
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::rowwise_adagrad}) {
    for (std::size_t k = 0; k < kReferenceKinds.size(); ++k) {
      std::vector<Piece> pieces;
      for (int i = 0; i < kReferenceKinds[k].num_tables; ++i) {
        pieces.push_back({first_table[k] + i, kReferenceKinds[k].num_columns});
      }
      const auto number = static_cast<std::int64_t>(reference_sets.sets.size());
      reference_sets.sets.push_back({-1 - number,  // never the number of a sample
                                     reference_sets.tables, std::move(pieces),
                                     Random::for_stream(0, static_cast<std::uint64_t>(number)),
                                     kReferenceKinds[k].batch_size, optimizer});
    }
  }
  return reference_sets;
}

}  // namespace neuroshard
