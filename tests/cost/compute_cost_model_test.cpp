// A property of every computation cost model: adding and pricing a piece in one call gives the same
// as adding it and then pricing.
#include "neuroshard/cost/compute/compute_cost_model.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <memory>
#include <vector>

#include "neuroshard/cost/compute/analytic_compute.h"
#include "neuroshard/cost/compute/pessimistic_compute_model.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/workload/reuse/index_distribution.h"
#include "tests/cost/arbitrary_network.h"
#include "tests/cost/arbitrary_task.h"

namespace neuroshard {
namespace {

using testing_networks::NetworkSizes;
using testing_networks::random_model;
using testing_tasks::make_topology;
using Model = std::shared_ptr<const ComputeCostModel>;

constexpr OperatorSettings kSettings{4096, Optimizer::sgd};

/// One of each kind; the neural ones have 1 to 3 members, and heads of any size.
std::vector<Model> arbitrary_models() {
  static const Model shipped = load_cost_models({}, make_topology(2, 2)).compute;
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const NetworkSizes sizes{.head = *rc::gen::inRange(1, 40)};
  const double pessimism = *rc::gen::element(0.0, 0.25, 1.0);
  std::vector<Model> models{
      std::make_shared<AnalyticComputeModel>(find_compute_hardware("h100-sxm")), shipped,
      random_model(ComputeArchitecture::resource_loads, seed, sizes),
      random_model(ComputeArchitecture::published, seed, sizes)};
  for (std::size_t i = 0; i < 4; ++i) {
    models.push_back(std::make_shared<PessimisticComputeModel>(models[i], pessimism));
  }
  return models;
}

/// Pieces of tables as they may be.
struct Piece {
  TableStatistics table;
  std::int64_t columns = 0;
};

std::vector<Piece> arbitrary_pieces() {
  std::vector<Piece> pieces;
  for (int i = *rc::gen::inRange(1, 12); i > 0; --i) {
    const Table table = *testing_tasks::arbitrary_table();
    pieces.push_back({{table.num_embeddings, table.pooling_factor, table.data_type,
                       reuse_histogram(table, kSettings.batch_size)},
                      4 * *rc::gen::inRange<std::int64_t>(1, 33)});
  }
  return pieces;
}

RC_GTEST_PROP(ComputeCostModelProperty, AddingAndPricingInOneGoIsTheSame, ()) {
  const std::vector<Piece> pieces = arbitrary_pieces();
  for (const Model& model : arbitrary_models()) {
    std::vector<double> state(model->state_size(), 0.0);
    std::vector<double> expected = state;
    std::vector<double> contribution(state.size());
    for (const Piece& piece : pieces) {
      model->encode(piece.table, piece.columns, kSettings, contribution);
      for (std::size_t i = 0; i < state.size(); ++i) expected[i] += contribution[i];
      const double cost = model->add_and_cost(state, contribution);
      RC_ASSERT(state == expected);
      RC_ASSERT(std::bit_cast<std::uint64_t>(cost) ==
                std::bit_cast<std::uint64_t>(model->cost(expected)));
    }
  }
}

}  // namespace
}  // namespace neuroshard
