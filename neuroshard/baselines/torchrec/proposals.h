// Which option each table might have: TorchRec's proposers, each a sequence of proposals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <queue>
#include <tuple>
#include <vector>

#include "neuroshard/baselines/torchrec/enumeration.h"
#include "neuroshard/baselines/torchrec/sharding_option.h"

namespace neuroshard::torchrec {

/// One option for each table.
using Proposal = std::vector<const ShardingOption*>;

class Proposer {
 public:
  virtual ~Proposer() = default;
  /// The next proposal, valid until the next call; nullptr after the last. No proposal depends on
  /// what became of those before.
  [[nodiscard]] virtual const Proposal* next() = 0;
};

/// By what a table's options are ordered, the cheapest first.
enum class OptionScore {
  slowest_shard,  ///< TorchRec's use_depth
  sum_of_shards,
};

/// All combinations, the last table's option changing fastest; none if they are more than 10,000.
class GridSearchProposer final : public Proposer {
 public:
  /// Options must outlive the proposer.
  explicit GridSearchProposer(const SearchSpace& space);
  [[nodiscard]] const Proposal* next() override;

 private:
  std::vector<Proposal> options_;  ///< of each table, the cheapest first
  std::vector<std::size_t> chosen_;
  Proposal proposal_;
  std::int64_t left_ = 0;
};

/// First every table's cheapest option. Then, again and again, the table of the largest shard (of
/// the most memory in all shards, among equals; the first table, among those) takes its next one.
class GreedyProposer final : public Proposer {
 public:
  /// Options must outlive the proposer.
  GreedyProposer(const SearchSpace& space, OptionScore score);
  [[nodiscard]] const Proposal* next() override;

 private:
  /// The table waits for its next option, if it has one.
  void push(std::size_t table);

  std::vector<Proposal> options_;  ///< of each table, the cheapest first
  std::vector<std::size_t> chosen_;
  Proposal proposal_;
  /// Bytes of the largest shard, of all shards, and the negative index of the table.
  std::priority_queue<std::tuple<std::int64_t, WideBytes, std::int64_t>> largest_;
  bool has_begun_ = false;
};

/// Every sharding type that all tables have, for all of them.
class UniformProposer final : public Proposer {
 public:
  /// Options must outlive the proposer.
  explicit UniformProposer(const SearchSpace& space) : space_(space) {}
  [[nodiscard]] const Proposal* next() override;

 private:
  const SearchSpace& space_;
  Proposal proposal_;
  int next_type_ = 0;
};

/// The proposers of EmbeddingShardingPlanner, in its order: grid search, greedy by the slowest
/// shard and by the sum of shards, uniform.
[[nodiscard]] std::vector<std::unique_ptr<Proposer>> make_proposers(const SearchSpace& space);

}  // namespace neuroshard::torchrec
