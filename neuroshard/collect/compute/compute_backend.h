// What measures the fused operator: the interface that CPUs and GPUs have in common.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "neuroshard/core/random.h"
#include "neuroshard/core/table.h"
#include "neuroshard/io/json/json.h"

namespace neuroshard {

/// `num_columns` columns of a table; the table's own embedding_dim is not looked at.
struct TablePiece {
  const Table* table = nullptr;
  std::int64_t num_columns = 0;
};

struct ComputeMeasurement {
  double forward_ms = 0.0;   ///< quantile over the repetitions
  double backward_ms = 0.0;  ///< likewise
  int repetitions = 0;
  double interval = 0.0;  ///< relative half-width of the sum's 95 % interval
};

/// A set of pieces that is to be measured as one device would run it.
struct PieceSet {
  std::int64_t id = 0;  ///< the caller's
  std::vector<TablePiece> pieces;
  Random random;  ///< its batch and its places in the arena are drawn from this
};

/// What became of a set.
struct PieceSetResult {
  std::int64_t id = 0;
  std::optional<ComputeMeasurement> measurement;
  std::string failure;  ///< why there is none
};

/// What is measured, and on what: recorded with the costs, and compared when a model is used
/// elsewhere (docs/formats.md).
struct BackendDescription {
  Json hardware = Json::Object{};
  Json operator_info = Json::Object{};
};

/// A set with its batch, ready to run: for callers that time passes among other things.
class PreparedSet {
 public:
  virtual ~PreparedSet() = default;
  /// Return when the pass is done.
  virtual void forward() = 0;
  virtual void backward() = 0;
};

class ComputeBackend {
 public:
  virtual ~ComputeBackend() = default;

  /// Draws one batch from the tables' access distributions for each set and times forward and
  /// backward on it, with the caches disturbed before each. Deterministic in all but the times.
  /// `in_flight` sets may take turns. `next` gives the sets until it gives none, `on_done` is
  /// called as each is done, in no particular order; neither is called by two threads at once. A
  /// set that the machine has no memory for is a result with a `failure`; other failures of the
  /// machine are thrown.
  virtual void measure(const std::function<std::optional<PieceSet>()>& next, int in_flight,
                       std::int64_t batch_size, Optimizer optimizer,
                       const std::function<void(const PieceSetResult&)>& on_done) = 0;

  /// One set at a time; the backend must outlive it.
  [[nodiscard]] virtual std::unique_ptr<PreparedSet> prepare_set(PieceSet set,
                                                                 std::int64_t batch_size,
                                                                 Optimizer optimizer) = 0;
};

/// A backend that takes its memory when there is something to measure.
struct ComputeBackendFactory {
  BackendDescription description;
  std::function<std::unique_ptr<ComputeBackend>()> make;
};

}  // namespace neuroshard
