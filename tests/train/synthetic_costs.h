// Files of computation costs that follow a known formula, for tests of training.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "neuroshard/collect/compute/compute_collector.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/io/compute_costs_io.h"

namespace neuroshard::testing_costs {

inline constexpr double kHeldOutShare = 0.3;

/// Tables "t0", "t1", ...: some of them are held out at kHeldOutShare, by their names.
inline ComputeCostsHeader make_header(int num_tables = 20, double held_out_share = kHeldOutShare) {
  ComputeCostsHeader header;
  header.hardware.set("kind", "cpu").set("name", "test processor").set("num_cores", 2);
  header.operator_info.set("name", "test").set("version", 1).set("num_threads", 2);
  header.batch_size = 1024;
  header.sampling = Json().set("held_out_share", held_out_share);
  Random random(99);
  for (int t = 0; t < num_tables; ++t) {
    MeasuredTable table{fmt::format("t{}", t),
                        random.integer(100, 100'000),
                        random.uniform(0.5, 20.0),
                        DataType::fp32,
                        {}};
    table.reuse_histogram[0] = random.uniform(0.2, 0.8);
    table.reuse_histogram[4] = 1.0 - table.reuse_histogram[0];
    header.tables.push_back(std::move(table));
  }
  return header;
}

/// A launch, lookups times columns, and a cost for each piece: a formula that a network can learn.
inline double true_cost(const ComputeCostsHeader& header, const std::vector<Piece>& pieces) {
  double cost = 0.05;
  for (const Piece& piece : pieces) {
    const double lookups =
        static_cast<double>(header.batch_size) * header.tables[piece.table].pooling_factor;
    cost += 0.02 + 2e-6 * lookups * static_cast<double>(piece.num_columns);
  }
  return cost;
}

/// Tables of one kind, as the collector draws them: all held out or none.
inline std::vector<int> tables_of_kind(const ComputeCostsHeader& header, bool held_out) {
  std::vector<int> tables;
  for (std::size_t t = 0; t < header.tables.size(); ++t) {
    if (is_held_out(header.tables[t].name, kHeldOutShare) == held_out) {
      tables.push_back(static_cast<int>(t));
    }
  }
  return tables;
}

inline ComputeCostSample make_sample(const ComputeCostsHeader& header, std::vector<Piece> pieces,
                                     std::int64_t index) {
  ComputeCostSample sample;
  sample.pieces = std::move(pieces);
  const double cost = true_cost(header, sample.pieces);
  sample.forward_ms = 0.4 * cost;
  sample.backward_ms = 0.6 * cost;
  sample.info.id = index;
  return sample;
}

/// Writes `count` samples of 1 to 6 pieces; every fifth is of held-out tables.
inline void write_costs(const std::string& path, const ComputeCostsHeader& header, int count,
                        std::uint64_t seed = 1) {
  const std::vector<int> pools[2] = {tables_of_kind(header, false), tables_of_kind(header, true)};
  ComputeCostsWriter writer(path, header);
  Random random(seed);
  std::set<std::vector<Piece>> drawn;  // no set twice
  for (int i = 0; i < count; ++i) {
    const std::vector<int>& pool = pools[i % 5 == 4 ? 1 : 0];
    std::vector<Piece> pieces;
    std::vector<Piece> in_order;
    do {
      pieces.clear();
      for (std::int64_t piece = random.integer(1, 6); piece > 0; --piece) {
        pieces.push_back({pool[random.below(pool.size())], std::int64_t{4} << random.below(6)});
      }
      in_order = pieces;
      std::sort(in_order.begin(), in_order.end());
    } while (!drawn.insert(in_order).second);
    writer.append(make_sample(header, std::move(pieces), i));
  }
}

}  // namespace neuroshard::testing_costs
