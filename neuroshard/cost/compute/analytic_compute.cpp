// The presets of devices and the traffic of the fused embedding operator.
#include "neuroshard/cost/compute/analytic_compute.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>

#include "neuroshard/core/error.h"

namespace neuroshard {

namespace {

// L2 bandwidths are bytes per clock (V100 2,048; A100 5,120: NVIDIA A100 whitepaper) times boost
// clock; for Hopper NVIDIA states none, so A100's bytes per clock are assumed, at the 1,980 MHz of
// SXM modules (PCI Express cards: 1,755): of these 10,138 GB/s an H200 was measured to reach 9,769
// (docs/experiments/gpu_estimates.md). A GPU moves sectors of 32 bytes, CDNA 3 lines of 128, a CPU
// lines of 64.
constexpr double kGpuOperatorMs = 0.05;  // about ten kernel launches of 5 us
constexpr double kGpuTableMs = 0.001;    // per-table part of set-up and tail
constexpr double kCpuOperatorMs = 0.02;  // starting and joining the threads
constexpr double kCpuTableMs = 0.005;
constexpr std::array<ComputeHardware, 7> kHardware{{
    {.name = "v100",
     .memory_gb_per_s = 900.0,
     .cache_gb_per_s = 3133.0,  // 2,048 bytes/clock * 1.53 GHz
     .cache_bytes = 6e6,
     .access_bytes = 32.0,
     .operator_overhead_ms = kGpuOperatorMs,
     .table_overhead_ms = kGpuTableMs,
     .source = "NVIDIA Tesla V100 SXM2 data sheet; L2: V100 and A100 architecture whitepapers"},
    {.name = "a100-40gb",
     .memory_gb_per_s = 1555.0,
     .cache_gb_per_s = 7219.0,  // 5,120 bytes/clock * 1.41 GHz
     .cache_bytes = 40e6,
     .access_bytes = 32.0,
     .operator_overhead_ms = kGpuOperatorMs,
     .table_overhead_ms = kGpuTableMs,
     .source = "NVIDIA A100 SXM4 40 GB data sheet; L2: A100 architecture whitepaper"},
    {.name = "a100-80gb",
     .memory_gb_per_s = 2039.0,
     .cache_gb_per_s = 7219.0,
     .cache_bytes = 40e6,
     .access_bytes = 32.0,
     .operator_overhead_ms = kGpuOperatorMs,
     .table_overhead_ms = kGpuTableMs,
     .source = "NVIDIA A100 SXM4 80 GB data sheet; L2: A100 architecture whitepaper"},
    {.name = "h100-sxm",
     .memory_gb_per_s = 3350.0,
     .cache_gb_per_s = 10138.0,  // assumed: 5,120 bytes/clock * 1.98 GHz
     .cache_bytes = 50e6,
     .access_bytes = 32.0,
     .operator_overhead_ms = kGpuOperatorMs,
     .table_overhead_ms = kGpuTableMs,
     .source =
         "NVIDIA H100 SXM5 data sheet and H100 architecture whitepaper; L2 bandwidth assumed"},
    {.name = "h200",
     .memory_gb_per_s = 4800.0,
     .cache_gb_per_s = 10138.0,  // the same chip as H100, measured to reach 0.96 of it
     .cache_bytes = 50e6,
     .access_bytes = 32.0,
     .operator_overhead_ms = kGpuOperatorMs,
     .table_overhead_ms = kGpuTableMs,
     .source = "NVIDIA H200 SXM data sheet; L2 as H100, bandwidth assumed"},
    {.name = "mi300x",
     .memory_gb_per_s = 5300.0,
     .cache_gb_per_s = 17200.0,  // Infinity Cache
     .cache_bytes = 256.0 * 0x1p20,
     .access_bytes = 128.0,
     .operator_overhead_ms = kGpuOperatorMs,
     .table_overhead_ms = kGpuTableMs,
     .source = "AMD Instinct MI300X data sheet, CDNA 3 whitepaper (Infinity Cache)"},
    {.name = "cpu",
     .memory_gb_per_s = 204.8,  // 8 channels * 3,200 MT/s * 8 bytes
     .cache_gb_per_s = 800.0,   // assumed
     .cache_bytes = 32.0 * 0x1p20,
     .access_bytes = 64.0,
     .operator_overhead_ms = kCpuOperatorMs,
     .table_overhead_ms = kCpuTableMs,
     .source = "a generic server: 8 channels of DDR4-3200 (JEDEC), 32 MiB of cache assumed"},
}};

/// Hits of a row of each bin: the mean of the bin's limits; the last bin has no upper limit, and
/// is taken as if it had one of 65,536.
constexpr std::array<double, kReuseBins> kHitsOfBin = [] {
  std::array<double, kReuseBins> hits{};
  hits[0] = 1.0;
  for (int bin = 1; bin < kReuseBins; ++bin) {
    const double upper = static_cast<double>(std::int64_t{1} << bin);
    hits[bin] = 0.5 * (0.5 * upper + 1.0 + upper);
  }
  hits[kReuseBins - 1] = 49'152.0;
  return hits;
}();

struct RowReuse {
  double distinct_rows = 0.0;
  double cached_lookups = 0.0;  ///< repeated lookups whose rows the cache keeps
};

/// Distinct rows of `num_lookups` lookups, and how many of the others a cache with room for
/// `cached_rows` rows serves.
RowReuse row_reuse(const TableStatistics& table, double num_lookups, double cached_rows) {
  double mean_hits = 0.0;
  for (int bin = 0; bin < kReuseBins; ++bin) {
    mean_hits += table.reuse_histogram[bin] * kHitsOfBin[bin];
  }
  RowReuse reuse;
  reuse.distinct_rows = std::min({num_lookups / std::max(mean_hits, 1.0), num_lookups,
                                  static_cast<double>(table.num_embeddings)});
  const double repeated = num_lookups - reuse.distinct_rows;
  double served = 0.0;  // unnormalised: the clamp above may change the number of lookups per row
  double all = 0.0;
  for (int bin = kReuseBins - 1; bin > 0; --bin) {
    const double rows = reuse.distinct_rows * table.reuse_histogram[bin];
    const double kept = std::min(rows, cached_rows);
    cached_rows -= kept;
    served += kept * (kHitsOfBin[bin] - 1.0);
    all += rows * (kHitsOfBin[bin] - 1.0);
  }
  reuse.cached_lookups = all > 0.0 ? repeated * served / all : 0.0;
  return reuse;
}

/// Bytes of sorting n lookups by row: radix sort, 8 bits a pass.
double sort_bytes(double num_lookups, std::int64_t num_embeddings) {
  constexpr double kPairBytes = 12.0;
  const int bits = std::bit_width(static_cast<std::uint64_t>(num_embeddings - 1));
  return 2.0 * kPairBytes * num_lookups * ((bits + 7) / 8);
}

}  // namespace

std::span<const ComputeHardware> compute_hardware() { return kHardware; }

const ComputeHardware& find_compute_hardware(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ComputeHardware& hardware : kHardware) {
    if (hardware.name == name) return hardware;
    names.push_back(hardware.name);
  }
  throw InputError("hardware", fmt::format("one of {}", fmt::join(names, ", ")),
                   fmt::format("\"{}\"", name));
}

PieceTraffic piece_traffic(const TableStatistics& table, std::int64_t num_columns,
                           const OperatorSettings& settings, const ComputeHardware& hardware) {
  const auto moved = [&](double bytes) {
    return std::ceil(bytes / hardware.access_bytes) * hardware.access_bytes;
  };
  const double batch = static_cast<double>(settings.batch_size);
  const double columns = static_cast<double>(num_columns);
  const double pooled = batch * static_cast<double>(table.num_features);  // rows of the output
  const double lookups = batch * table.pooling_factor;
  const double row = moved(columns * static_cast<double>(element_bytes(table.data_type)));
  const RowReuse reuse = row_reuse(table, lookups, hardware.cache_bytes / row);
  const double uncached = lookups - reuse.distinct_rows - reuse.cached_lookups;

  PieceTraffic traffic;
  traffic.memory_bytes =
      (reuse.distinct_rows + uncached) * row + 4.0 * pooled * columns + 8.0 * lookups;
  traffic.cache_bytes = reuse.cached_lookups * row;

  const double gradients = 4.0 * pooled * columns;
  const double further_reads = std::max(lookups - pooled, 0.0) * 4.0 * columns;
  const double in_cache = std::min(1.0, hardware.cache_bytes / gradients);
  traffic.memory_bytes += gradients + (1.0 - in_cache) * further_reads;
  traffic.cache_bytes += in_cache * further_reads;

  traffic.memory_bytes += 2.0 * reuse.distinct_rows * row;
  if (settings.optimizer == Optimizer::rowwise_adagrad) {
    traffic.memory_bytes += 2.0 * reuse.distinct_rows * moved(4.0);
  }
  traffic.memory_bytes += sort_bytes(lookups, table.num_embeddings);
  return traffic;
}

AnalyticComputeModel::AnalyticComputeModel(const ComputeHardware& hardware, double effective_share)
    : hardware_(hardware),
      name_(fmt::format("analytic-{}", hardware.name)),
      effective_share_(effective_share) {
  const auto require = [&](bool ok, const char* field, const char* expected, double actual) {
    if (!ok) {
      throw InputError(fmt::format("hardware {}.{}", hardware.name, field), expected,
                       fmt::format("{}", actual));
    }
  };
  const auto require_above_zero = [&](double value, const char* field) {
    require(std::isfinite(value) && value > 0.0, field, "a number above 0", value);
  };
  const auto require_not_below_zero = [&](double value, const char* field) {
    require(std::isfinite(value) && value >= 0.0, field, "a number of at least 0", value);
  };
  require_above_zero(hardware.memory_gb_per_s, "memory_gb_per_s");
  require_above_zero(hardware.cache_gb_per_s, "cache_gb_per_s");
  require_above_zero(hardware.access_bytes, "access_bytes");
  require_not_below_zero(hardware.cache_bytes, "cache_bytes");
  require_not_below_zero(hardware.operator_overhead_ms, "operator_overhead_ms");
  require_not_below_zero(hardware.table_overhead_ms, "table_overhead_ms");
  require(effective_share > 0.0 && effective_share <= 1.0, "effective_share",
          "a share above 0, at most 1", effective_share);
}

std::string AnalyticComputeModel::name() const { return name_; }

void AnalyticComputeModel::encode(const TableStatistics& table, std::int64_t num_columns,
                                  const OperatorSettings& settings,
                                  std::span<double> contribution) const {
  assert(contribution.size() == state_size());
  const PieceTraffic traffic = piece_traffic(table, num_columns, settings, hardware_);
  const double ms = (traffic.memory_bytes / hardware_.memory_gb_per_s +
                     traffic.cache_bytes / hardware_.cache_gb_per_s) /
                    (1e6 * effective_share_);  // 1 GB/s = 1e6 bytes/ms
  contribution[0] = 1.0;
  contribution[1] = hardware_.table_overhead_ms + ms;
  round_to_grid(contribution, settings.grid);
  contribution[0] = 1.0;
}

void AnalyticComputeModel::costs_with(std::span<const double> states, std::span<const double> piece,
                                      std::span<double> costs) const {
  assert(states.size() == costs.size() * state_size());
  assert(piece.empty() || piece.size() == state_size());
  const double more_pieces = piece.empty() ? 0.0 : piece[0];
  const double more_ms = piece.empty() ? 0.0 : piece[1];
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const bool has_pieces = states[2 * i] + more_pieces > 0.0;
    costs[i] = has_pieces ? hardware_.operator_overhead_ms + (states[2 * i + 1] + more_ms) : 0.0;
  }
}

double AnalyticComputeModel::tangent(std::span<const double> /*state*/, double /*smoothing*/,
                                     std::span<double> slopes) const {
  slopes[0] = 0.0;
  slopes[1] = 1.0;
  return hardware_.operator_overhead_ms;
}

}  // namespace neuroshard
