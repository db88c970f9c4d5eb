// Bindings of the collector: the seeded sequence of samples, their file, and when one is done.
#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "module.h"
#include "neuroshard/collect/compute/compute_collector.h"
#include "neuroshard/collect/compute/repeated_timing.h"
#include "neuroshard/core/error.h"
#include "neuroshard/io/task_io.h"
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

/// A sample as Python sees it: its number, its pieces (table, columns), the seed of its batch.
using Sample = std::tuple<std::int64_t, std::vector<std::pair<int, std::int64_t>>, std::uint64_t>;
/// Its number; forward and backward times, repetitions and interval, or the reason for none.
using OnDone = std::function<void(std::int64_t, double, double, int, double, const std::string&)>;

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

  [[nodiscard]] std::vector<std::pair<int, std::int64_t>> pieces(std::int64_t index) const {
    std::vector<std::pair<int, std::int64_t>> pairs;
    for (const SampledPiece& piece : sample_pieces(sampling_, index)) {
      pairs.emplace_back(piece.table, piece.num_columns);
    }
    return pairs;
  }

  /// Row indices and batch_size + 1 offsets of one batch of lookups in a table.
  [[nodiscard]] std::pair<Indices, Indices> draw(int table, std::uint64_t seed) const {
    if (table < 0 || table >= static_cast<int>(sampling_.tables.size())) {
      throw InputError("table", "an index below " + std::to_string(sampling_.tables.size()),
                       std::to_string(table));
    }
    IndexBatch batch;
    without_gil([&] {
      Random random(seed);
      IndexSampler(sampling_.tables[static_cast<std::size_t>(table)], sampling_.batch_size)
          .draw(sampling_.batch_size, random, batch);
    });
    return {to_array(std::move(batch.indices)), to_array(std::move(batch.offsets))};
  }

  std::int64_t collect(
      const std::string& path, std::int64_t num_samples, const std::string& hardware,
      const std::string& operator_info, const std::function<void()>& prepare,
      const std::function<void(std::function<std::optional<Sample>()>, OnDone)>& measure,
      const std::function<void(std::int64_t, std::int64_t, double)>& on_progress) const {
    MeasuredOperator measured;
    measured.hardware = parse_json(hardware, "hardware");
    measured.operator_info = parse_json(operator_info, "operator");
    measured.prepare = prepare;
    measured.measure = [&](const auto& next, const auto& done) {
      measure(
          [&]() -> std::optional<Sample> {
            std::optional<SampledSet> set = next();
            if (!set) return std::nullopt;
            Sample sample{set->index, {}, set->random()};
            for (const SampledPiece& piece : set->pieces) {
              std::get<1>(sample).emplace_back(piece.table, piece.num_columns);
            }
            return sample;
          },
          [&](std::int64_t index, double forward_ms, double backward_ms, int repetitions,
              double interval, const std::string& failure) {
            PieceSetResult result{index, std::nullopt, failure};
            if (failure.empty()) {
              result.measurement = {forward_ms, backward_ms, repetitions, interval};
            }
            done(result);
          });
    };
    return collect_compute_costs(
        sampling_, measured, num_samples, path, [&](const CollectionProgress& progress) {
          on_progress(progress.done, progress.requested, progress.seconds_left);
        });
  }

 private:
  ComputeSamplingOptions sampling_;
};

RepeatedTiming make_timing(double quantile) {
  RepetitionOptions options;
  options.quantile = quantile;
  return RepeatedTiming(options);
}

double quantile_of(const std::vector<double>& values, double quantile) {
  return estimate_quantile(values, quantile).value;
}

}  // namespace

void bind_collecting(nb::module_& module) {
  nb::class_<Collection>(module, "Collection")
      .def(nb::init<const std::string&, std::string, std::vector<std::int64_t>, int, int,
                    std::int64_t, double, std::uint64_t>())
      .def("pieces", &Collection::pieces)
      .def("draw", &Collection::draw)
      .def("collect", &Collection::collect);
  nb::class_<RepeatedTiming>(module, "RepeatedTiming")
      .def("__init__", [](RepeatedTiming* self,
                          double quantile) { new (self) RepeatedTiming(make_timing(quantile)); })
      .def("add", &RepeatedTiming::add)
      .def("done", &RepeatedTiming::done)
      .def("warming_up", &RepeatedTiming::warming_up)
      .def("interval", [](const RepeatedTiming& self) { return self.estimate().interval; });
  module.def("quantile", quantile_of);
  module.def("cpu_hardware", [] { return to_line(cpu_hardware_json()); });
  module.def("beyond_any_cache", &CacheDisturbance::beyond_any_cache);
}

}  // namespace neuroshard::python
