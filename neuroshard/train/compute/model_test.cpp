// Predictions against measured costs.
#include "neuroshard/train/compute/model_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/median.h"
#include "neuroshard/cost/cost_value.h"
#include "neuroshard/io/compute_costs_io.h"
#include "neuroshard/train/compute/compute_dataset.h"

namespace neuroshard {

namespace {

/// A sample's cost [ms], as measured or at the usual speed; `path` is its file.
double cost_of(const ComputeCostSample& sample, const ComputeCosts& costs,
               const std::optional<UsualSpeed>& usual, const std::string& path) {
  if (!usual) return sample.forward_ms + sample.backward_ms;
  if (costs.header.reference_sets.empty()) {
    throw InputError(path + ": reference_sets", "those of the model's samples", "none");
  }
  return usual_cost_ms(sample, costs.header.reference_sets, *usual, path);
}

/// The second measurements by the samples' numbers.
class SecondMeasurements {
 public:
  SecondMeasurements(const ComputeCosts& first, const ModelTestOptions& options)
      : path_(options.again), usual_(options.usual) {
    const std::string& path = options.again;
    if (path.empty()) return;
    costs_ = read_compute_costs(path);
    const auto same = [](const MeasuredTable& a, const MeasuredTable& b) {
      return a.name == b.name && a.num_embeddings == b.num_embeddings &&
             a.pooling_factor == b.pooling_factor && a.data_type == b.data_type;
    };
    const auto& tables = first.header.tables;
    if (costs_.header.batch_size != first.header.batch_size ||
        costs_.header.optimizer != first.header.optimizer ||
        !std::equal(tables.begin(), tables.end(), costs_.header.tables.begin(),
                    costs_.header.tables.end(), same)) {
      throw InputError(path, "the batch size, optimizer and tables of the first measurement",
                       "others");
    }
    for (const ComputeCostSample& sample : costs_.samples) {
      if (sample.info.id) by_id_[*sample.info.id] = &sample;
    }
  }

  /// The sample's cost by both measurements, of which `first_ms` is the first; nothing if the
  /// second is missing or disagrees.
  [[nodiscard]] std::optional<double> joined_cost(const ComputeCostSample& sample,
                                                  double first_ms) const {
    if (path_.empty()) return first_ms;
    const auto found = sample.info.id ? by_id_.find(*sample.info.id) : by_id_.end();
    if (found == by_id_.end()) return std::nullopt;
    if (found->second->pieces != sample.pieces) {
      throw InputError(fmt::format("{}: sample {}", path_, *sample.info.id),
                       "the pieces of the first measurement", "others");
    }
    const double second_ms = cost_of(*found->second, costs_, usual_, path_);
    if (std::max(first_ms, second_ms) >
        (1.0 + kLargestDisagreement) * std::min(first_ms, second_ms)) {
      return std::nullopt;
    }
    return std::sqrt(first_ms * second_ms);
  }

 private:
  std::string path_;
  const std::optional<UsualSpeed>& usual_;
  ComputeCosts costs_;
  std::map<std::int64_t, const ComputeCostSample*> by_id_;
};

void evaluate(ModelTest& test) {
  std::vector<double> predicted;
  std::vector<double> measured;
  std::vector<double> ratios;
  for (const TestedSample& sample : test.samples) {
    predicted.push_back(sample.predicted_ms);
    measured.push_back(sample.measured_ms);
    ratios.push_back(sample.measured_ms / std::max(sample.predicted_ms, kLeastPredicted_ms));
  }
  test.metrics = prediction_metrics(predicted, measured);
  test.bias = median(std::move(ratios)) - 1.0;
}

}  // namespace

ModelTest tested(std::vector<TestedSample> samples) {
  ModelTest test;
  test.samples = std::move(samples);
  evaluate(test);
  return test;
}

ModelTest test_compute_model(const ComputeCostModel& model, const std::string& path,
                             const ModelTestOptions& options) {
  const ComputeCosts costs = read_compute_costs(path);
  const SecondMeasurements second(costs, options);
  const ComputeCostsHeader& header = costs.header;
  ModelTest test;
  test.is_of_plans = has_planned_sets(header);
  std::vector<double> state(model.state_size());
  std::vector<double> contribution(model.state_size());
  for (std::size_t i = 0; i < costs.samples.size(); ++i) {
    const ComputeCostSample& sample = costs.samples[i];
    const std::optional<double> measured =
        second.joined_cost(sample, cost_of(sample, costs, options.usual, path));
    if (!measured) {
      ++test.left_out;
      continue;
    }
    std::fill(state.begin(), state.end(), 0.0);
    for (const Piece& piece : sample.pieces) {
      model.encode(
          measured_statistics(header.tables[piece.table], piece.row_share, header.batch_size),
          piece.num_columns, {header.batch_size, header.optimizer}, contribution);
      for (std::size_t k = 0; k < state.size(); ++k) state[k] += contribution[k];
    }
    if (!sample.info.id) test.is_of_plans = false;  // nothing tells which are neighbours
    const std::int64_t id = sample.info.id.value_or(static_cast<std::int64_t>(i) + 2);
    const double predicted = model.cost(state);
    if (!is_cost(predicted)) {
      throw not_a_cost(model.name(), fmt::format("sample {} of {}", id, path), predicted);
    }
    test.samples.push_back({id, predicted, *measured});
  }
  if (test.samples.empty()) throw InputError(path, "measured samples", "none");
  evaluate(test);
  return test;
}

ModelTest joined(std::span<const FileTest> tests) {
  ModelTest all;
  for (const FileTest& test : tests) {
    all.left_out += test.result.left_out;
    all.samples.insert(all.samples.end(), test.result.samples.begin(), test.result.samples.end());
  }
  if (!all.samples.empty()) evaluate(all);
  return all;
}

std::optional<DeviceScatter> device_scatter(std::span<const FileTest> tests) {
  std::vector<PlannedCost> costs;
  for (std::size_t file = 0; file < tests.size(); ++file) {
    if (!tests[file].result.is_of_plans) continue;
    for (const TestedSample& sample : tests[file].result.samples) {
      costs.push_back({planned_place(file, sample.id), sample.predicted_ms, sample.measured_ms});
    }
  }
  return device_scatter(std::move(costs));
}

}  // namespace neuroshard
