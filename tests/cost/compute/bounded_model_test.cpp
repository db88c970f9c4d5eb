// What a bounded model guarantees, on random tasks from everywhere in the format: finite positive
// costs within a factor of the physical estimate, that never fall where the work grows, and exact
// sums however long a task's pieces take; of slices of rows and copies too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "neuroshard/cost/communication/analytic_communication.h"
#include "neuroshard/cost/compute/compute_model_io.h"
#include "neuroshard/cost/compute/piece_work.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/cost/model_file.h"
#include "neuroshard/cost/simulator.h"
#include "tests/cost/arbitrary_network.h"
#include "tests/cost/frontier_tables.h"

namespace neuroshard {
namespace {

using testing_frontier::describe;
using testing_frontier::LargestFall;
using testing_frontier::random_slice;
using testing_frontier::random_task;
using testing_frontier::random_width;
using testing_frontier::spread;
using testing_frontier::spread_integer;
using testing_networks::random_model;
using State = std::vector<double>;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kTasks = 20'000;  // some ten times slower there, and they look for other faults
#else
constexpr int kTasks = 100'000;
#endif
/// Relative; features and loads are fp32.
constexpr double kRoundingError = 1e-5;

/// A piece of a table, or of a slice of its rows.
struct CheckedPiece {
  const Table* table = nullptr;
  TableStatistics statistics;
  std::int64_t columns = 0;
  Shard rows{};
};

/// A histogram is of one batch: with more lookups, ranks that follow it are used in another way,
/// and some slice less than before.
bool keeps_its_distribution(const Table& table) {
  return !table.reuse_histogram || !has_row_order(table);
}

/// Checks one model; failures are kept until the end, the worst of each kind.
class Frontier {
 public:
  explicit Frontier(const NeuralComputeModel& model) : model_(model) {
    for (const ComputeNetwork& member : model.members()) {
      double sum = 1.0;
      for (const float output : member.head_output) sum += static_cast<double>(output);
      steps_per_piece_ = std::max(steps_per_piece_, sum);
    }
  }

  void check(const Task& task, Random& random) {
    const std::vector<TableStatistics> statistics = table_statistics(task);
    const OperatorSettings settings = operator_settings(task, model_, statistics);
    coarser_ += settings.grid > kStateGrid ? 1 : 0;
    const Simulator simulator(task, unowned_model(), communication_);
    std::vector<CheckedPiece> pieces;
    for (std::size_t t = 0; t < task.tables.size(); ++t) {
      const Table& table = task.tables[t];
      CheckedPiece piece{&table, statistics[t], random_width(table, random)};
      check_growth(task, piece, settings, random);
      // Any cut of the table, some pieces from slices of its rows.
      std::int64_t left = table.embedding_dim;
      while (left > 0 && pieces.size() < 100) {
        piece.columns = std::min(random_width(table, random), left);
        piece.statistics = statistics[t];
        piece.rows = {};
        if (random.below(5) == 0) {
          piece.rows = random_slice(task, static_cast<int>(t), random);
          piece.statistics = simulator.statistics_of(piece_of(task, piece.rows));
          if (keeps_its_distribution(table)) check_growth(task, piece, settings, random);
        }
        left -= piece.columns;
        pieces.push_back(piece);
      }
      if (task.topology.world_size > 1) check_copy(simulator, static_cast<int>(t));
    }
    check_device(task, pieces, settings, random);
  }

  [[nodiscard]] double largest_fall() const {
    return std::max(
        {fewer_lookups_.fall(), smaller_batch_.fall(), columns_less_.fall(), half_columns_.fall()});
  }
  [[nodiscard]] double largest_excess() const { return std::max(below_.fall(), above_.fall()); }

  void expect_guarantees() const {
    testing::Test::RecordProperty(
        "largest_falls",
        fmt::format("{:.2e} {:.2e} {:.2e} {:.2e}", fewer_lookups_.fall(), smaller_batch_.fall(),
                    columns_less_.fall(), half_columns_.fall()));
    EXPECT_LE(fewer_lookups_.fall(), kRoundingError) << fewer_lookups_.where();
    EXPECT_LE(smaller_batch_.fall(), kRoundingError) << smaller_batch_.where();
    EXPECT_LE(columns_less_.fall(), kRoundingError) << columns_less_.where();
    EXPECT_LE(half_columns_.fall(), kRoundingError) << half_columns_.where();
    EXPECT_LE(below_.fall(), 1e-4) << below_.where();
    EXPECT_LE(above_.fall(), 1e-4) << above_.where();
    EXPECT_GT(coarser_, 0);  // tasks whose costs are astronomic occurred
  }

 private:
  /// For simulators, none of which outlives it.
  [[nodiscard]] std::shared_ptr<const NeuralComputeModel> unowned_model() const {
    return {std::shared_ptr<const NeuralComputeModel>(), &model_};
  }

  static void check_copy(const Simulator& simulator, int table) {
    const std::vector<int> tables{table};
    const Simulator::ReplicaCost cost = simulator.replica_cost(tables);
    ASSERT_TRUE(std::isfinite(cost.compute_ms) && cost.compute_ms > 0.0) << cost.compute_ms;
    ASSERT_TRUE(std::isfinite(cost.all_reduce_ms) && cost.all_reduce_ms >= 0.0)
        << cost.all_reduce_ms;
  }

  [[nodiscard]] State encoded(const TableStatistics& table, std::int64_t columns,
                              const OperatorSettings& settings) const {
    State contribution(model_.state_size(), std::nan(""));
    model_.encode(table, columns, settings, contribution);
    return contribution;
  }

  /// What rounding contributions to the grid may make of a cost.
  [[nodiscard]] double rounding(double pieces, const OperatorSettings& settings) const {
    return pieces * settings.grid * steps_per_piece_;
  }

  void check_growth(const Task& task, const CheckedPiece& piece, const OperatorSettings& settings,
                    Random& random) {
    const Table& table = *piece.table;
    const auto cost_of = [&](const TableStatistics& statistics, std::int64_t columns,
                             std::int64_t batch_size) {
      return model_.cost(
          encoded(statistics, columns, {batch_size, settings.optimizer, settings.grid}));
    };
    // Of the same rows, if the table and the batch are these.
    const auto statistics_of = [&](const Table& changed, std::int64_t batch_size) {
      if (piece.rows.num_rows == 0) return testing_frontier::statistics_of(changed, batch_size);
      return testing_frontier::statistics_of(changed, batch_size, piece.rows);
    };
    const double slack = rounding(1.0, settings);
    const double cost = cost_of(piece.statistics, piece.columns, task.batch_size);
    const auto where = [&] {
      return fmt::format("{} rows from {} of {}", piece.rows.num_rows, piece.rows.row_offset,
                         describe(table, task.batch_size, piece.columns));
    };
    columns_less_.add(cost, cost_of(piece.statistics, piece.columns + 16, task.batch_size), slack,
                      where);
    half_columns_.add(cost, cost_of(piece.statistics, 2 * piece.columns, task.batch_size), slack,
                      where);
    Table busier = table;
    busier.pooling_factor =
        std::min(table.pooling_factor * (1.0 + spread(1e-4, 1000.0, random)), kMaxPoolingFactor);
    fewer_lookups_.add(
        cost, cost_of(statistics_of(busier, task.batch_size), piece.columns, task.batch_size),
        slack, [&] { return fmt::format("to pooling {}: {}", busier.pooling_factor, where()); });
    const std::int64_t batch_size = std::min(
        task.batch_size + spread_integer(1, 1000 * task.batch_size, random), kMaxBatchSize);
    smaller_batch_.add(cost, cost_of(statistics_of(table, batch_size), piece.columns, batch_size),
                       slack, [&] { return fmt::format("to batch {}: {}", batch_size, where()); });
  }

  [[nodiscard]] double estimate_of(const CheckedPiece& piece,
                                   const OperatorSettings& settings) const {
    std::vector<double> terms(work_terms().size());
    write_work_terms(piece_work(piece.statistics, piece.columns, settings), piece.statistics,
                     settings, terms);
    return model_.members().front().estimate.piece_ms(terms);
  }

  /// Of the members', for a set whose widest piece has this many columns.
  [[nodiscard]] double least_factor(std::int64_t columns) const {
    float least = 1.0F;
    for (const ComputeNetwork& member : model_.members()) {
      if (member.widest_factors.empty()) return 1.0;
      least = std::min(least, member.widest_factors[widest_class(columns)]);
    }
    return static_cast<double>(least);
  }

  void check_device(const Task& task, const std::vector<CheckedPiece>& pieces,
                    const OperatorSettings& settings, Random& random) {
    double estimate = model_.members().front().estimate.offset_ms;
    std::vector<State> contributions;
    std::int64_t widest = 0;
    for (const CheckedPiece& piece : pieces) {
      widest = std::max(widest, piece.columns);
      estimate += estimate_of(piece, settings);
      contributions.push_back(encoded(piece.statistics, piece.columns, settings));
    }
    const auto where = [&] {
      return describe(*pieces.back().table, task.batch_size, pieces.back().columns);
    };
    const std::vector<State> states = sums(contributions);
    const double cost = model_.cost(states.back());
    ASSERT_TRUE(std::isfinite(cost) && cost > 0.0) << cost << ": " << where();
    const double slack = rounding(static_cast<double>(pieces.size()), settings);
    below_.add(estimate * least_factor(widest) / kEstimateFactor, cost, slack, where);
    ASSERT_LE(model_.bound(states.back()), cost * (1.0 + 1e-12)) << where();
    ASSERT_LE(model_.bound(states.front()), cost * (1.0 + 1e-12)) << where();
    above_.add(cost, estimate * kEstimateFactor, slack, where);
    undo(contributions, states, where());
    std::vector<State> shuffled = contributions;
    random.shuffle(shuffled);
    ASSERT_EQ(sums(shuffled).back(), states.back()) << where();
  }

  /// The state before the first piece, and after each.
  [[nodiscard]] std::vector<State> sums(const std::vector<State>& contributions) const {
    std::vector<State> states{State(model_.state_size(), 0.0)};
    for (const State& contribution : contributions) {
      State next = states.back();
      for (std::size_t i = 0; i < next.size(); ++i) next[i] += contribution[i];
      states.push_back(std::move(next));
    }
    return states;
  }

  static void undo(const std::vector<State>& contributions, const std::vector<State>& states,
                   const std::string& where) {
    State state = states.back();
    for (std::size_t piece = contributions.size(); piece-- > 0;) {
      for (std::size_t i = 0; i < state.size(); ++i) state[i] -= contributions[piece][i];
      ASSERT_EQ(state, states[piece]) << where;
    }
  }

  const NeuralComputeModel& model_;
  std::shared_ptr<const CommunicationCostModel> communication_ =
      std::make_shared<AnalyticCommunicationModel>(find_interconnect("pcie4"));
  double steps_per_piece_ = 1.0;  ///< of the grid, that a piece's rounding may change a cost by
  int coarser_ = 0;
  LargestFall fewer_lookups_, smaller_batch_, columns_less_, half_columns_, below_, above_;
};

TEST(BoundedModel, KeepsItsGuaranteesOnTheWholeFormat) {
  constexpr int kModels = 50;
  Random random(20);
  for (int m = 0; m < kModels; ++m) {
    SCOPED_TRACE(m);
    const auto model =
        random_model(ComputeArchitecture::bounded_loads, static_cast<std::uint64_t>(m));
    for (const ComputeNetwork& member : model->members()) ASSERT_EQ(broken_bound(member), "");
    Frontier frontier(*model);
    for (int t = 0; t < kTasks / kModels; ++t) {
      ASSERT_NO_FATAL_FAILURE(frontier.check(random_task(random), random));
    }
    frontier.expect_guarantees();
  }
}

/// Without the constraints, the tasks above show that the guarantees do not hold.
TEST(BoundedModel, BrokenBoundsAreNoticed) {
  const auto checked = [](const std::function<void(ComputeNetwork&)>& damage) {
    ComputeNetwork network =
        testing_networks::random_network(ComputeArchitecture::bounded_loads, 7);
    damage(network);
    EXPECT_NE(broken_bound(network), "");
    const NeuralComputeModel model(network, testing_networks::wide_info());
    Frontier frontier(model);
    Random random(22);
    for (int t = 0; t < 2'000; ++t) frontier.check(random_task(random), random);
    return std::pair(frontier.largest_fall(), frontier.largest_excess());
  };
  EXPECT_GT(checked([](ComputeNetwork& n) {
              for (float& weight : n.encoder.back().weights) weight = -weight;
            }).first,
            1e-3);
  EXPECT_GT(checked([](ComputeNetwork& n) {
              for (float& output : n.head_output) output *= 100.0F;
            }).second,
            0.1);
  EXPECT_GT(checked([](ComputeNetwork& n) {
              for (float& linear : n.linear) linear *= 0.1F;
            }).second,
            0.1);
}

/// Computation models in the model folders that are bounded.
std::vector<std::shared_ptr<const NeuralComputeModel>> shipped_models() {
  std::vector<std::shared_ptr<const NeuralComputeModel>> models;
  for (const ModelEntry& entry : list_models()) {
    if (entry.is_estimate || entry.kind != "compute") continue;
    const ModelFile file(entry.origin);
    if (file.metadata("architecture") == to_string(ComputeArchitecture::bounded_loads)) {
      models.push_back(compute_model_from(file, entry.origin));
    }
  }
  return models;
}

TEST(BoundedModel, ShippedModelsKeepTheirGuaranteesOnTheWholeFormat) {
  const auto models = shipped_models();
  ASSERT_GE(models.size(), 8u) << "of models/";
  Random random(21);
  for (const auto& model : models) {
    SCOPED_TRACE(model->name());
    Frontier frontier(*model);
    for (int t = 0; t < kTasks / static_cast<int>(models.size()); ++t) {
      ASSERT_NO_FATAL_FAILURE(frontier.check(random_task(random), random));
    }
    frontier.expect_guarantees();
  }
}

}  // namespace
}  // namespace neuroshard
