// An estimate of the fused embedding operator from data sheets: bytes over bandwidth.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "neuroshard/cost/compute/compute_cost_model.h"

namespace neuroshard {

/// A device's memory as its vendor states it. Bandwidths in 1e9 bytes/s.
struct ComputeHardware {
  std::string_view name;
  double memory_gb_per_s = 0.0;
  double cache_gb_per_s = 0.0;        ///< of the cache that all cores share
  double cache_bytes = 0.0;           ///< size of that cache
  double access_bytes = 0.0;          ///< granularity of memory traffic
  double operator_overhead_ms = 0.0;  ///< forward and backward launch together; an assumption
  double table_overhead_ms = 0.0;     ///< per piece in the operator; an assumption
  std::string_view source;            ///< where the numbers are from
};

/// All presets.
[[nodiscard]] std::span<const ComputeHardware> compute_hardware();

/// The preset of this name. Throws InputError listing the names.
[[nodiscard]] const ComputeHardware& find_compute_hardware(std::string_view name);

/// Share of the stated bandwidths that gathers of whole rows reach; an assumption.
inline constexpr double kEffectiveMemoryShare = 0.75;

/// Bytes that one piece moves in one iteration, by where from.
struct PieceTraffic {
  double memory_bytes = 0.0;
  double cache_bytes = 0.0;
};

/// Traffic of a piece of c columns of element size e, n = batch * pooling factor lookups, which are
/// pooled into p = batch * num_features rows of output:
///
///   D          distinct rows = n / (mean hits per distinct row), at most n and num_embeddings;
///              a bin's rows are taken to be hit the mean of the bin's limits times,
///              the last bin's 49,152 times
///   g(x)       x rounded up to access_bytes
///   cached     the hottest bins' rows are kept as long as their g(c e) fit into the cache, the
///              bin at the edge in part; `repeated` are the n - D lookups of rows read before,
///              `hits` those of them whose rows are kept
///   forward    memory: D g(c e) + (repeated - hits) g(c e) + 4 p c (pooled) + 8 n (indices)
///              cache:  hits g(c e)
///   gradients  memory: 4 p c, and of the n - p further reads (0 if that is less) of 4 c bytes, one
///              per lookup, the share of the 4 p c bytes that is beyond the cache; cache: the
///              others
///   update     memory: 2 D g(c e), and with row-wise Adagrad 2 D g(4)
///   sort       memory: 2 * 12 n bytes per pass over (8-byte row, 4-byte bag), 8 bits of the row
///              number a pass
[[nodiscard]] PieceTraffic piece_traffic(const TableStatistics& table, std::int64_t num_columns,
                                         const OperatorSettings& settings,
                                         const ComputeHardware& hardware);

/// Always an estimate: additive, as if nothing overlapped. A state is {pieces, their ms};
///   piece's ms = table_overhead + traffic over the effective bandwidths,
///   cost       = operator_overhead + sum of the pieces' ms   (0 without pieces).
class AnalyticComputeModel : public ComputeCostModel {
 public:
  /// Throws InputError unless the bandwidths and access_bytes are above 0, the rest at least 0 and
  /// the share in (0, 1].
  explicit AnalyticComputeModel(const ComputeHardware& hardware,
                                double effective_share = kEffectiveMemoryShare);

  /// "analytic-<hardware>".
  [[nodiscard]] std::string name() const override;
  [[nodiscard]] bool is_estimate() const override { return true; }
  [[nodiscard]] bool is_convex_increasing() const override { return true; }
  [[nodiscard]] double tangent(std::span<const double> state, double smoothing,
                               std::span<double> slopes) const override;
  [[nodiscard]] double least_rise_ms(std::span<const double> piece) const override {
    return piece[1];
  }
  [[nodiscard]] std::size_t state_size() const override { return 2; }
  void encode(const TableStatistics& table, std::int64_t num_columns,
              const OperatorSettings& settings, std::span<double> contribution) const override;
  void costs_with(std::span<const double> states, std::span<const double> piece,
                  std::span<double> costs) const override;

 private:
  ComputeHardware hardware_;
  std::string name_;
  double effective_share_;
};

}  // namespace neuroshard
