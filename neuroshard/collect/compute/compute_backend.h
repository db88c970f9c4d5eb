// The interface of a backend (CPU, CUDA, FBGEMM through Python) for the loop that measures
// (collect/compute/measure_sets.h): it prepares sets of pieces, runs their passes and disturbs the
// caches.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "neuroshard/collect/compute/repeated_timing.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/core/piece.h"
#include "neuroshard/core/table.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/workload/reuse/index_batch.h"

namespace neuroshard {

/// A set of pieces that is to be measured as one device would run it.
struct PieceSet {
  std::int64_t id = 0;  ///< the caller's
  /// The tables that the pieces' `table` refers to; must outlive the measurement. A table's own
  /// embedding_dim is not used.
  std::span<const Table> tables;
  std::vector<Piece> pieces;
  Random random;                ///< its batch and its places in memory are drawn from this
  std::int64_t batch_size = 1;  ///< samples
  Optimizer optimizer = Optimizer::sgd;
  /// The tables are of this set alone, and others may come to lie where they are: a device must not
  /// remember them by address.
  bool has_own_tables = false;
  /// Empty, or the rows that each piece has: then its batch is the whole table's without the
  /// lookups of other rows. Only for devices that `can_keep_rows`.
  std::vector<RowRange> rows{};

  [[nodiscard]] const Table& table_of(const Piece& piece) const { return tables[piece.table]; }
};

struct ComputeMeasurement {
  double forward_ms = 0.0;   ///< quantile over the repetitions
  double backward_ms = 0.0;  ///< likewise
  int repetitions = 0;
  double interval = 0.0;  ///< relative half-width of the sum's 95 % interval
  /// Forward and backward of each reference set: the same quantile over the same rounds. Empty
  /// where there are none.
  std::vector<double> reference_ms{};
};

/// The outcome of a set.
struct PieceSetResult {
  std::int64_t id = 0;
  std::optional<ComputeMeasurement> measurement;
  std::string failure;  ///< why there is none
};

/// A set with its batch, ready to run. Its device must outlive it.
class PreparedSet {
 public:
  virtual ~PreparedSet() = default;

  /// Starts a pass; the future gives its time [ms] by the device's own clock once it is done. A
  /// device with a queue returns before that: its passes run in the order in which they were
  /// started, without waiting for the host in between.
  virtual std::future<double> forward() = 0;
  virtual std::future<double> backward() = 0;

  /// Bytes of distinct memory that a pass reads and writes, about.
  [[nodiscard]] virtual std::int64_t bytes_touched() const = 0;
};

/// A time that is already known.
[[nodiscard]] inline std::future<double> known_time(double milliseconds) {
  std::promise<double> time;
  time.set_value(milliseconds);
  return time.get_future();
}

/// One processor that measures; a new backend implements this. Used by one thread at a time.
class MeasuringDevice {
 public:
  virtual ~MeasuringDevice() = default;

  /// Called when a new sequence of sets begins, and before a set that has tables of its own:
  /// anything cached by the address of earlier sets' tables must be dropped, as other tables may
  /// lie there.
  virtual void forget_tables() {}
  /// Draws one batch from the tables' access distributions and prepares everything; the same for
  /// the same set. Throws OutOfMemory if the device has no room for this set; other errors are
  /// failures of the device.
  [[nodiscard]] virtual std::unique_ptr<PreparedSet> prepare(const PieceSet& set) = 0;
  /// Whether sets may have `rows`; else devices know whole tables alone.
  [[nodiscard]] virtual bool can_keep_rows() const { return false; }
  /// Sets that can be ready at the same time.
  [[nodiscard]] virtual int max_in_flight() const { return 1; }
  /// Whether there is memory to have another set ready, next to those that are.
  [[nodiscard]] virtual bool has_room() const { return true; }

  /// Bytes that must be touched between two passes of one set so that the second finds other data
  /// in the caches, as in training.
  [[nodiscard]] virtual std::int64_t bytes_between_passes() const = 0;
  /// Reads `bytes` or a little more that belong to no set; returns how many it read.
  virtual std::int64_t disturb_caches(std::int64_t bytes) = 0;

  /// How often a set runs, which depends on the scatter of this kind of device's times.
  [[nodiscard]] virtual RepetitionOptions repetitions() const = 0;
};

/// Devices of one kind that measure at the same time; at least one.
struct ComputeBackend {
  std::vector<std::unique_ptr<MeasuringDevice>> devices;
};

/// A backend of one device.
[[nodiscard]] inline std::unique_ptr<ComputeBackend> one_device(
    std::unique_ptr<MeasuringDevice> device) {
  auto backend = std::make_unique<ComputeBackend>();
  backend->devices.push_back(std::move(device));
  return backend;
}

/// The operator and the hardware, as recorded with the costs and compared when a model is used
/// elsewhere (docs/formats.md).
struct BackendDescription {
  Json hardware = Json::Object{};
  Json operator_info = Json::Object{};
};

/// A backend that takes its memory when there is something to measure.
struct ComputeBackendFactory {
  BackendDescription description;
  std::function<std::unique_ptr<ComputeBackend>()> make;
};

}  // namespace neuroshard
