// Random placements and lags.
#include "neuroshard/collect/communication/communication_case.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "neuroshard/core/numbers/random.h"

namespace neuroshard {

namespace {

constexpr std::array<std::int64_t, 6> kDims{4, 8, 16, 32, 64, 128};
constexpr double kFewestTablesPerDevice = 2.5;
constexpr double kMostTablesPerDevice = 15.0;
constexpr double kShareWithoutLags = 0.1;
constexpr double kMostPartialBytes = 0x1p28;

std::vector<std::int64_t> draw_columns(int world_size, Random& random) {
  const double per_device =
      kFewestTablesPerDevice + (kMostTablesPerDevice - kFewestTablesPerDevice) * random.uniform();
  const std::int64_t num_tables = std::llround(per_device * world_size);
  const double error_share = random.uniform();
  std::vector<std::int64_t> columns(world_size, 0);
  std::set<std::pair<std::int64_t, int>> by_columns;
  for (int d = 0; d < world_size; ++d) by_columns.emplace(0, d);
  for (std::int64_t t = 0; t < num_tables; ++t) {
    const std::int64_t dim = kDims[random.below(kDims.size())];
    const int device = random.uniform() < error_share ? static_cast<int>(random.below(world_size))
                                                      : by_columns.begin()->second;
    by_columns.erase({columns[device], device});
    columns[device] += dim;
    by_columns.emplace(columns[device], device);
  }
  return columns;
}

std::vector<double> draw_starts(int world_size, double max_start_ms, Random& random) {
  std::vector<double> starts(world_size, 0.0);
  if (random.uniform() < kShareWithoutLags) return starts;
  const double bound = max_start_ms * random.uniform();
  for (double& start : starts) start = bound * random.uniform();
  const double earliest = *std::min_element(starts.begin(), starts.end());
  // Whole microseconds, as in the file.
  for (double& start : starts) start = std::round((start - earliest) * 1e3) * 1e-3;
  return starts;
}

}  // namespace

CommunicationCase sample_communication_case(const CommunicationSamplingOptions& options,
                                            std::int64_t index) {
  Random random = Random::for_stream(options.seed, static_cast<std::uint64_t>(index));
  CommunicationCase result;
  result.columns = draw_columns(options.world_size, random);
  result.start_ms = draw_starts(options.world_size, options.max_start_ms, random);
  return result;
}

std::int64_t sample_all_reduce_bytes(std::uint64_t seed, std::int64_t index) {
  Random random = Random::for_stream(seed, static_cast<std::uint64_t>(index));
  return 4 * std::llround(std::exp2(random.uniform(8.0, 26.0)));
}

PartialSumsCase sample_partial_sums(const CommunicationSamplingOptions& options,
                                    std::int64_t index) {
  Random random = Random::for_stream(options.seed, static_cast<std::uint64_t>(index));
  PartialSumsCase result;
  result.slices = static_cast<int>(random.integer(2, 8));
  result.columns = kDims[random.below(kDims.size())];
  result.num_samples = local_batch_size(options.batch_size, options.world_size, 0);
  const auto of_a_sample =
      static_cast<double>(result.bytes()) / static_cast<double>(result.num_samples);
  const auto most_samples = static_cast<std::int64_t>(kMostPartialBytes / of_a_sample);
  result.num_samples = std::min(result.num_samples, most_samples);
  const auto of_one_table = static_cast<double>(result.bytes());
  const double most = std::max(kMostPartialBytes / of_one_table, 1.0);
  result.num_tables = std::llround(std::exp2(random.uniform(0.0, std::log2(most))));
  return result;
}

std::int64_t local_batch_size(std::int64_t batch_size, int world_size, int rank) {
  return batch_size / world_size + (rank < batch_size % world_size ? 1 : 0);
}

}  // namespace neuroshard
