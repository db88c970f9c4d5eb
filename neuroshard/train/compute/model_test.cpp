// Predictions against measured costs.
#include "neuroshard/train/compute/model_test.h"

#include <algorithm>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/io/compute_costs_io.h"

namespace neuroshard {

ModelTest test_compute_model(const ComputeCostModel& model, const std::string& path) {
  const ComputeCosts costs = read_compute_costs(path);
  if (costs.samples.empty()) throw InputError(path, "measured samples", "none");
  const ComputeCostsHeader& header = costs.header;
  std::vector<double> predicted;
  std::vector<double> measured;
  std::vector<double> ratios;
  std::vector<double> state(model.state_size());
  std::vector<double> contribution(model.state_size());
  for (const ComputeCostSample& sample : costs.samples) {
    std::fill(state.begin(), state.end(), 0.0);
    for (const Piece& piece : sample.pieces) {
      const MeasuredTable& table = header.tables[piece.table];
      model.encode(
          {table.num_embeddings, table.pooling_factor, table.data_type, table.reuse_histogram},
          piece.num_columns, {header.batch_size, header.optimizer}, contribution);
      for (std::size_t i = 0; i < state.size(); ++i) state[i] += contribution[i];
    }
    predicted.push_back(model.cost(state));
    measured.push_back(sample.forward_ms + sample.backward_ms);
    ratios.push_back(measured.back() / std::max(predicted.back(), 1e-9));
  }
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return {prediction_metrics(predicted, measured), *middle - 1.0};
}

}  // namespace neuroshard
