// Sequences of proposals.
#include "neuroshard/baselines/torchrec/proposals.h"

#include <algorithm>

namespace neuroshard::torchrec {

namespace {

constexpr std::int64_t kMostCombinations = 10'000;  // TorchRec's MAX_PROPOSALS

std::vector<Proposal> by_score(const SearchSpace& space, OptionScore score) {
  const auto cost = [&](const ShardingOption* option) {
    return score == OptionScore::slowest_shard ? option->perf.total() : option->total_perf_ms;
  };
  std::vector<Proposal> sorted;
  for (const std::vector<ShardingOption>& options : space) {
    Proposal& of_table = sorted.emplace_back();
    for (const ShardingOption& option : options) of_table.push_back(&option);
    std::stable_sort(
        of_table.begin(), of_table.end(),
        [&](const ShardingOption* a, const ShardingOption* b) { return cost(a) < cost(b); });
  }
  return sorted;
}

Proposal cheapest(const std::vector<Proposal>& options) {
  Proposal proposal;
  for (const Proposal& of_table : options) proposal.push_back(of_table.front());
  return proposal;
}

}  // namespace

GridSearchProposer::GridSearchProposer(const SearchSpace& space)
    : options_(by_score(space, OptionScore::slowest_shard)),
      chosen_(options_.size(), 0),
      proposal_(cheapest(options_)),
      left_(1) {
  for (const Proposal& of_table : options_) {
    left_ *= static_cast<std::int64_t>(of_table.size());
    if (left_ > kMostCombinations) {
      left_ = 0;
      return;
    }
  }
}

const Proposal* GridSearchProposer::next() {
  if (left_ == 0) return nullptr;
  --left_;
  for (std::size_t t = 0; t < proposal_.size(); ++t) proposal_[t] = options_[t][chosen_[t]];
  for (std::size_t t = chosen_.size(); t-- > 0;) {
    if (++chosen_[t] < options_[t].size()) break;
    chosen_[t] = 0;
  }
  return &proposal_;
}

GreedyProposer::GreedyProposer(const SearchSpace& space, OptionScore score)
    : options_(by_score(space, score)), chosen_(options_.size(), 0), proposal_(cheapest(options_)) {
  for (std::size_t t = 0; t < chosen_.size(); ++t) push(t);
}

void GreedyProposer::push(std::size_t table) {
  if (chosen_[table] + 1 >= options_[table].size()) return;
  const ShardingOption& option = *proposal_[table];
  largest_.emplace(option.largest_bytes, option.total_bytes, -static_cast<std::int64_t>(table));
}

const Proposal* GreedyProposer::next() {
  if (!has_begun_) {
    has_begun_ = true;
    return &proposal_;
  }
  if (largest_.empty()) return nullptr;
  const auto table = static_cast<std::size_t>(-std::get<2>(largest_.top()));
  largest_.pop();
  proposal_[table] = options_[table][++chosen_[table]];
  push(table);
  return &proposal_;
}

const Proposal* UniformProposer::next() {
  while (next_type_ < kNumShardingTypes) {
    const auto type = static_cast<ShardingType>(next_type_++);
    proposal_.clear();
    for (const std::vector<ShardingOption>& options : space_) {
      const auto found =
          std::find_if(options.begin(), options.end(),
                       [&](const ShardingOption& option) { return option.type == type; });
      if (found == options.end()) break;
      proposal_.push_back(&*found);
    }
    if (proposal_.size() == space_.size()) return &proposal_;
  }
  return nullptr;
}

std::vector<std::unique_ptr<Proposer>> make_proposers(const SearchSpace& space) {
  std::vector<std::unique_ptr<Proposer>> proposers;
  proposers.push_back(std::make_unique<GridSearchProposer>(space));
  proposers.push_back(std::make_unique<GreedyProposer>(space, OptionScore::slowest_shard));
  proposers.push_back(std::make_unique<GreedyProposer>(space, OptionScore::sum_of_shards));
  proposers.push_back(std::make_unique<UniformProposer>(space));
  return proposers;
}

}  // namespace neuroshard::torchrec
