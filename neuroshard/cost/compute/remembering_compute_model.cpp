// Encodings by what they depend on.
#include "neuroshard/cost/compute/remembering_compute_model.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>

#include "neuroshard/core/numbers/random.h"

namespace neuroshard {

std::size_t RememberingComputeModel::Hash::operator()(const Key& key) const {
  std::uint64_t hash = 0;
  for (const std::uint64_t bits : key) hash = (std::rotl(hash, 5) ^ bits) * 0x9e3779b97f4a7c15ULL;
  return mix64(hash);
}

RememberingComputeModel::Key RememberingComputeModel::key_of(const TableStatistics& table,
                                                             std::int64_t num_columns,
                                                             const OperatorSettings& settings) {
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  Key key{static_cast<std::uint64_t>(table.num_embeddings),
          bits(table.pooling_factor),
          static_cast<std::uint64_t>(table.data_type),
          static_cast<std::uint64_t>(table.num_features),
          bits(table.distinct_rows),
          bits(table.hottest_row_share),
          static_cast<std::uint64_t>(num_columns),
          static_cast<std::uint64_t>(settings.batch_size),
          static_cast<std::uint64_t>(settings.optimizer),
          bits(settings.grid)};
  const auto histogram = key.end() - kReuseBins;
  std::transform(table.reuse_histogram.begin(), table.reuse_histogram.end(), histogram, bits);
  return key;
}

void RememberingComputeModel::encode(const TableStatistics& table, std::int64_t num_columns,
                                     const OperatorSettings& settings,
                                     std::span<double> contribution) const {
  assert(contribution.size() == state_size());
  const Key key = key_of(table, num_columns, settings);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = contributions_.find(key); known != contributions_.end()) {
      std::copy(known->second.begin(), known->second.end(), contribution.begin());
      return;
    }
  }
  model_->encode(table, num_columns, settings, contribution);
  const std::lock_guard lock(mutex_);
  if (contributions_.size() >= kMostKept) return;
  contributions_.try_emplace(key, contribution.begin(), contribution.end());
}

double RememberingComputeModel::largest_element(const TableStatistics& table,
                                                std::int64_t num_columns,
                                                const OperatorSettings& settings) const {
  const Key key = key_of(table, num_columns, settings);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = largest_.find(key); known != largest_.end()) return known->second;
  }
  const double largest = model_->largest_element(table, num_columns, settings);
  const std::lock_guard lock(mutex_);
  if (largest_.size() < kMostKept) largest_.try_emplace(key, largest);
  return largest;
}

}  // namespace neuroshard
