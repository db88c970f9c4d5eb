// Which sets of table pieces are measured: drawn at random as the paper does, so that they cover
// the whole space of sets, or given by somebody else.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "neuroshard/collect/compute/process_group.h"
#include "neuroshard/core/piece.h"
#include "neuroshard/core/table.h"

namespace neuroshard {

/// Every width that cuts of a table of 128 columns can leave: the multiples of 4. The paper's are
/// the powers of two among them, as it only halves; a model that was trained on those alone was up
/// to 29 % too low about the others, whose rows straddle cache lines
/// (docs/experiments/computation_model.md).
[[nodiscard]] std::vector<std::int64_t> widths_of_pieces();

/// How sets are drawn from a pool of tables.
enum class SetSampling {
  /// As many pieces as a uniform number says, each a random table at a random width.
  uniform,
  /// The number of pieces and the bytes that a pass moves are spread evenly on logarithmic scales,
  /// by a low-discrepancy sequence, and pieces are chosen to move that many bytes; some pieces are
  /// slices of rows.
  coverage,
  /// Those of a sequence that is given, for example the devices' sets of plans.
  given,
};

/// One of twenty sets is large.
inline constexpr double kUsualLargeShare = 0.05;

/// The most columns that the tables of given sets have, where a file does not say it.
inline constexpr std::int64_t kUsualGivenMaxDim = 128;

/// Of given sets: those of devices of plans (planned_sets.h), a plan's one after the other.
inline constexpr const char* kPlannedSetsKind = "plans";

/// Which sets of pieces are measured. Sample i depends on the seed and i alone.
struct ComputeSamplingOptions {
  std::string workload;       ///< name, recorded with the data
  std::vector<Table> tables;  ///< the pool; each table occurs at each of `dims` columns
  std::vector<std::int64_t> dims = widths_of_pieces();
  int min_tables = 1;  ///< pieces in a set
  int max_tables = 15;
  /// A set's weights and state fit into this; with coverage sampling no limit, pieces beyond the
  /// arena wrap around it.
  std::int64_t memory_bytes = std::int64_t{4} << 30;
  std::int64_t batch_size = 4096;
  Optimizer optimizer = Optimizer::sgd;
  /// Share of the tables that a sample either consists of or does not touch at all, so that there
  /// is test data on combinations of tables that training has never seen; and share of the samples.
  double held_out_share = 0.1;
  std::uint64_t seed = 0;
  int in_flight = 1;  ///< samples that alternate, see measure_sets
  /// The standard reference sets (reference_sets.h) are measured all along and recorded with each
  /// sample.
  bool has_reference_sets = false;
  DataType reference_data_type = DataType::fp32;  ///< of their tables
  /// Several processes share the sequence: this one measures those samples whose id modulo `size`
  /// is its rank, into a file of its own.
  ProcessGroup group;

  /// Samples begin as long as they can be finished by then (MeasuringOptions).
  std::optional<std::chrono::steady_clock::time_point> deadline;

  /// Of this many sets that are drawn for each sample, the one of most `interest` is measured:
  /// where a model is least sure, for example. 1: the only one.
  int candidates = 1;
  std::function<double(std::span<const Piece>)> interest{};
  std::string interest_name{};  ///< recorded with the data

  SetSampling sampling = SetSampling::uniform;
  // With coverage sampling only:
  double slice_share = 0.2;           ///< of the pieces that are slices of rows
  double max_pass_bytes = 1e10;       ///< that a forward pass of a set moves (pass_bytes), at most
  double usual_max_pass_bytes = 1e9;  ///< sets that are not large stay below this
  double large_share = kUsualLargeShare;  ///< of the sets whose passes move more, 0 to 1

  // With given sampling only, which uses none of the options from `dims` to `memory_bytes`:
  std::function<std::vector<Piece>(std::int64_t id)> given{};  ///< set `id`, always the same
  std::string given_kind{};       ///< what sets these are, recorded with the data
  std::string given_by{};         ///< who made them, likewise
  bool given_has_copies = false;  ///< some sets are of replicated tables, likewise
  /// Of their tables, recorded where it is another: the sets depend on it.
  std::int64_t given_max_dim = kUsualGivenMaxDim;
};

/// The collectors' option --max-pass: sets that are not large stay below a tenth of it. Throws
/// InputError below 640 KiB.
void set_max_pass(ComputeSamplingOptions& options, std::int64_t max_pass_bytes);

/// Throws InputError for options out of range.
void validate(const ComputeSamplingOptions& options);

/// True for the tables that are kept from training, a function of the name alone so that all files
/// of one workload agree.
[[nodiscard]] bool is_held_out(const std::string& table_name, double held_out_share);

/// Bytes that a forward pass over a piece moves, as if nothing stayed in a cache: the cache lines
/// of every row that is looked up, the indices, the pooled output.
[[nodiscard]] double pass_bytes(const Table& table, const Piece& piece, std::int64_t batch_size);

/// Set `id` of the seeded sequence, of `options.tables`; pieces that do not fit are drawn again.
/// Throws InputError if `min_tables` pieces cannot be found that fit.
[[nodiscard]] std::vector<Piece> sample_pieces(const ComputeSamplingOptions& options,
                                               std::int64_t id);

}  // namespace neuroshard
