// Bindings of the collector: the seeded sequence of samples, their file, and the loop that measures
// them, on a device that Python has; and of the fit of costs to what it measured.
#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "module.h"
#include "neuroshard/collect/compute/compute_backend.h"
#include "neuroshard/collect/compute/compute_collector.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/machine/memory_limit.h"
#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/io/task_io.h"
#include "neuroshard/refine/planned_sets.h"
#include "neuroshard/workload/generate/nonnegative_least_squares.h"
#include "neuroshard/workload/reuse/index_batch.h"

namespace neuroshard::python {

namespace {

using Indices = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;

/// An array that keeps the vector.
Indices to_array(std::vector<std::int64_t> values) {
  auto kept = std::make_unique<std::vector<std::int64_t>>(std::move(values));
  const std::size_t shape[] = {kept->size()};
  std::int64_t* data = kept->data();
  const nb::capsule owner(kept.release(), [](void* pointer) noexcept {
    delete static_cast<std::vector<std::int64_t>*>(pointer);
  });
  return {data, 1, shape, owner};
}

/// Row indices and batch_size + 1 offsets of one batch of lookups in a table.
IndexBatch draw_batch(const Table& table, std::int64_t batch_size, std::uint64_t seed) {
  IndexBatch batch;
  Random random(seed);
  IndexSampler(table, batch_size).draw(batch_size, random, batch);
  return batch;
}

std::pair<Indices, Indices> to_arrays(IndexBatch batch) {
  return {to_array(std::move(batch.indices)), to_array(std::move(batch.offsets))};
}

/// Pieces as Python sees them: table, columns, share of the rows.
using Triples = std::vector<std::tuple<int, std::int64_t, double>>;

Triples to_triples(const std::vector<Piece>& pieces) {
  Triples triples;
  for (const Piece& piece : pieces) {
    triples.emplace_back(piece.table, piece.num_columns, piece.row_share);
  }
  return triples;
}

/// The reason where Python's error is a lack of memory; nothing where it is another, such as a lost
/// GPU, after which no set can be measured.
std::optional<std::string> lack_of_memory(const nb::python_error& error) {
  const std::string text = nb::cast<std::string>(nb::str(error.value()));
  const std::string line = text.substr(0, text.find('\n'));
  if (error.matches(PyExc_MemoryError)) return line.empty() ? "no memory" : line;
  const nb::object ours = nb::module_::import_("neuroshard.errors").attr("MachineError");
  if (error.matches(ours)) {
    return line.starts_with("memory: ") ? std::optional(line) : std::nullopt;
  }
  if (!error.matches(PyExc_RuntimeError)) return std::nullopt;
  // PyTorch has no exception type for a lack of host memory, and FBGEMM none at all.
  for (const char* words : {"out of memory", "not enough memory", "allocate memory"}) {
    if (text.find(words) != std::string::npos) return line;
  }
  return std::nullopt;
}

/// What `work` gives; OutOfMemory where Python lacks memory for it.
template <typename Work>
auto with_memory(const Work& work) {
  try {
    return work();
  } catch (const nb::python_error& error) {
    const std::optional<std::string> reason = lack_of_memory(error);
    if (!reason) throw;
    throw OutOfMemory(*reason);
  }
}

/// A set that Python has prepared: an object with forward() and backward(), which return
/// milliseconds, and bytes_touched.
class PythonSet final : public PreparedSet {
 public:
  explicit PythonSet(nb::object set)
      : set_(std::move(set)), bytes_touched_(nb::cast<std::int64_t>(set_.attr("bytes_touched"))) {}

  std::future<double> forward() override { return known_time(run("forward")); }
  std::future<double> backward() override { return known_time(run("backward")); }
  [[nodiscard]] std::int64_t bytes_touched() const override { return bytes_touched_; }

 private:
  double run(const char* pass) {
    return with_memory([&] { return nb::cast<double>(set_.attr(pass)()); });
  }

  nb::object set_;
  std::int64_t bytes_touched_;
};

/// A device of Python's (class Device in neuroshard/collect.py). All calls hold the interpreter's
/// lock.
class PythonDevice final : public MeasuringDevice {
 public:
  PythonDevice(nb::object device, RepetitionOptions repetitions)
      : device_(std::move(device)), repetitions_(repetitions) {}

  std::unique_ptr<PreparedSet> prepare(const PieceSet& set) override {
    Random random = set.random;
    const std::uint64_t seed = random();
    return with_memory([&]() -> std::unique_ptr<PreparedSet> {
      std::vector<IndexBatch> batches(set.pieces.size());
      without_gil([&] {
        pool_.for_each(batches.size(), [&](std::size_t i, int) {
          batches[i] = draw_batch(set.table_of(set.pieces[i]), set.batch_size, seed + i);
        });
      });
      nb::list pieces;
      for (std::size_t i = 0; i < set.pieces.size(); ++i) {
        auto [indices, offsets] = to_arrays(std::move(batches[i]));
        pieces.append(nb::make_tuple(set.table_of(set.pieces[i]).num_embeddings,
                                     set.pieces[i].num_columns, indices, offsets));
      }
      return std::make_unique<PythonSet>(
          device_.attr("prepare")(pieces, std::string(to_string(set.optimizer)), seed));
    });
  }
  [[nodiscard]] int max_in_flight() const override { return std::numeric_limits<int>::max(); }
  [[nodiscard]] bool has_room() const override {
    return nb::cast<bool>(device_.attr("has_room")());
  }
  [[nodiscard]] std::int64_t bytes_between_passes() const override {
    return nb::cast<std::int64_t>(device_.attr("bytes_between_passes"));
  }
  std::int64_t disturb_caches(std::int64_t bytes) override {
    return nb::cast<std::int64_t>(device_.attr("disturb_caches")(bytes));
  }
  [[nodiscard]] RepetitionOptions repetitions() const override { return repetitions_; }

 private:
  nb::object device_;
  RepetitionOptions repetitions_;
  ThreadPool pool_;  ///< draws batches; idle while passes are timed
};

class Collection {
 public:
  /// The tables, batch size and optimizer are the task's.
  Collection(const std::string& task_text, std::string workload, std::vector<std::int64_t> dims,
             int min_tables, int max_tables, std::int64_t memory_bytes, double held_out_share,
             std::uint64_t seed) {
    Task task = parse_task(task_text, "task");
    sampling_.workload = std::move(workload);
    sampling_.tables = std::move(task.tables);
    sampling_.batch_size = task.batch_size;
    sampling_.optimizer = task.optimizer;
    if (!dims.empty()) sampling_.dims = std::move(dims);
    sampling_.min_tables = min_tables;
    sampling_.max_tables = max_tables;
    sampling_.memory_bytes = memory_bytes;
    sampling_.held_out_share = held_out_share;
    sampling_.seed = seed;
  }

  /// From now on, sets cover the whole space.
  void cover(double slice_share, std::int64_t max_pass_bytes, double large_share) {
    sampling_.sampling = SetSampling::coverage;
    sampling_.large_share = large_share;
    sampling_.slice_share = slice_share;
    set_max_pass(sampling_, max_pass_bytes);
  }

  /// From now on, sets are those of the devices of plans by this model, a name or a file.
  void plan(const std::string& model) {
    use_planned_sets(sampling_, find_planning_model(model), 0);
  }

  /// From now on, the standard reference sets are measured too, in the tables' data type.
  void measure_reference_sets() {
    sampling_.has_reference_sets = true;
    sampling_.reference_data_type = sampling_.tables.front().data_type;
  }

  /// From now on, sets are these, of pieces of the tables; as many as a file may have samples.
  void give(const std::vector<Triples>& sets, const std::string& kind, const std::string& by) {
    std::vector<std::vector<Piece>> given;
    for (const Triples& set : sets) {
      std::vector<Piece>& pieces = given.emplace_back();
      for (const auto& [table, num_columns, row_share] : set) {
        if (table < 0 || table >= static_cast<int>(sampling_.tables.size())) {
          throw InputError("table", "an index below " + std::to_string(sampling_.tables.size()),
                           std::to_string(table));
        }
        pieces.push_back({table, num_columns, row_share});
      }
    }
    sampling_.sampling = SetSampling::given;
    sampling_.given = [given = std::move(given)](std::int64_t id) {
      return given.at(static_cast<std::size_t>(id));
    };
    sampling_.given_kind = kind;
    sampling_.given_by = by;
    sampling_.candidates = 1;
  }

  [[nodiscard]] Triples pieces(std::int64_t id) const {
    return to_triples(sample_pieces(sampling_, id));
  }

  /// Row indices and batch_size + 1 offsets of one batch of lookups in a table.
  [[nodiscard]] std::pair<Indices, Indices> draw(int table, std::uint64_t seed) const {
    if (table < 0 || table >= static_cast<int>(sampling_.tables.size())) {
      throw InputError("table", "an index below " + std::to_string(sampling_.tables.size()),
                       std::to_string(table));
    }
    return to_arrays(without_gil([&] {
      return draw_batch(sampling_.tables[static_cast<std::size_t>(table)], sampling_.batch_size,
                        seed);
    }));
  }

  [[nodiscard]] const ComputeSamplingOptions& sampling() const { return sampling_; }

 private:
  ComputeSamplingOptions sampling_;
};

/// Collections and their files' paths, measured together; each file should have `num_samples` in
/// the end. `make_device` is called once if there is anything to measure; a GPU repeats less often.
std::int64_t collect(const std::vector<std::pair<const Collection*, std::string>>& collections,
                     std::int64_t num_samples, const std::string& hardware,
                     const std::string& operator_info, double quantile, bool on_gpu, int in_flight,
                     const std::function<nb::object()>& make_device,
                     const std::function<void(std::int64_t, std::int64_t, double)>& on_progress) {
  if (!(quantile > 0.0 && quantile < 1.0)) {
    throw InputError("quantile", "a number between 0 and 1", std::to_string(quantile));
  }
  std::vector<ComputeCollection> files;
  RepetitionOptions repetitions;
  repetitions.quantile = quantile;
  for (const auto& [collection, path] : collections) {
    files.push_back({collection->sampling(), num_samples, path});
    files.back().sampling.in_flight = in_flight;
    if (files.back().sampling.sampling != SetSampling::uniform) {
      repetitions = coverage_repetitions(quantile);
    }
  }
  if (on_gpu) repetitions = gpu_repetitions(quantile);
  const ComputeBackendFactory backend{
      {parse_json(hardware, "hardware"), parse_json(operator_info, "operator")},
      [&] { return one_device(std::make_unique<PythonDevice>(make_device(), repetitions)); }};
  return collect_compute_costs(files, backend, [&](const CollectionProgress& progress) {
    on_progress(progress.done, progress.requested, progress.seconds_left);
  });
}

/// The x >= 0 of least |rows x - targets|. Throws InputError unless rows have one length and there
/// are as many as targets.
std::vector<double> least_squares(const std::vector<std::vector<double>>& rows,
                                  const std::vector<double>& targets) {
  using Eigen::Index;
  const bool fits = !rows.empty() && rows.size() == targets.size() &&
                    std::all_of(rows.begin(), rows.end(), [&](const std::vector<double>& row) {
                      return row.size() == rows.front().size();
                    });
  if (!fits) throw InputError("rows", "as many as targets, of one length", "others");
  const auto size = [](const auto& values) { return static_cast<Index>(values.size()); };
  Eigen::MatrixXd matrix(size(rows), size(rows.at(0)));
  for (Index i = 0; i < matrix.rows(); ++i) {
    const std::vector<double>& row = rows[static_cast<std::size_t>(i)];
    matrix.row(i) = Eigen::Map<const Eigen::RowVectorXd>(row.data(), matrix.cols());
  }
  const Eigen::VectorXd x = nonnegative_least_squares(
      matrix, Eigen::Map<const Eigen::VectorXd>(targets.data(), matrix.rows()));
  return {x.begin(), x.end()};
}

}  // namespace

void bind_collecting(nb::module_& module) {
  nb::class_<Collection>(module, "Collection")
      .def(nb::init<const std::string&, std::string, std::vector<std::int64_t>, int, int,
                    std::int64_t, double, std::uint64_t>())
      .def("cover", &Collection::cover)
      .def("plan", &Collection::plan)
      .def("give", &Collection::give)
      .def("measure_reference_sets", &Collection::measure_reference_sets)
      .def("pieces", &Collection::pieces)
      .def("draw", &Collection::draw);
  module.def("collect", &collect);
  module.def("nonnegative_least_squares", &least_squares);
  module.def("cpu_hardware", [] { return to_line(cpu_hardware_json()); });
  module.def("beyond_any_cache", &CacheDisturbance::beyond_any_cache);
  module.def("available_memory_bytes", &available_memory_bytes);
}

}  // namespace neuroshard::python
