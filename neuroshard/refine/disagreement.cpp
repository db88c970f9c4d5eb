// The range of the networks' predictions for a set.
#include "neuroshard/refine/disagreement.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace neuroshard {

std::function<double(std::span<const Piece>)> disagreement_about(
    std::shared_ptr<const ComputeCostModel> model, const std::vector<Table>& tables,
    std::int64_t batch_size, Optimizer optimizer) {
  Task task;
  task.batch_size = batch_size;
  task.optimizer = optimizer;
  task.tables = tables;
  return [model = std::move(model), statistics = table_statistics(task),
          settings = OperatorSettings{.batch_size = batch_size, .optimizer = optimizer}](
             std::span<const Piece> pieces) {
    std::vector<double> state(model->state_size(), 0.0);
    std::vector<double> contribution(state.size());
    for (const Piece& piece : pieces) {
      model->encode(statistics[piece.table].slice(piece.row_share, settings.batch_size),
                    piece.num_columns, settings, contribution);
      for (std::size_t i = 0; i < state.size(); ++i) state[i] += contribution[i];
    }
    std::vector<double> costs(model->num_members());
    model->member_costs(state, {}, costs);
    const auto [least, most] = std::minmax_element(costs.begin(), costs.end());
    const double mean =
        std::accumulate(costs.begin(), costs.end(), 0.0) / static_cast<double>(costs.size());
    return mean > 0.0 ? (*most - *least) / mean : 0.0;
  };
}

}  // namespace neuroshard
