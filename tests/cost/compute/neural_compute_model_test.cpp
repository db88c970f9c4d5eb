// The neural cost model: exact sums of contributions, costs that never fall with a further piece,
// and warnings outside its training data.
#include "neuroshard/cost/compute/neural_compute_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include "neuroshard/cost/compute/pessimistic_compute_model.h"
#include "neuroshard/workload/reuse/index_distribution.h"
#include "tests/cost/arbitrary_network.h"
#include "tests/cost/arbitrary_task.h"
#include "tests/cost/frontier_tables.h"

namespace neuroshard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing_networks::NetworkSizes;
using testing_networks::random_model;
using testing_networks::random_network;
using testing_networks::wide_info;
using testing_tasks::make_table;
using testing_tasks::make_topology;
using State = std::vector<double>;

constexpr OperatorSettings kModelSettings{4096, Optimizer::sgd};

TableStatistics arbitrary_statistics() {
  const Table table = *testing_tasks::arbitrary_table();
  return {table.num_embeddings, table.pooling_factor, table.data_type,
          reuse_histogram(table, kModelSettings.batch_size)};
}

State contribution(const ComputeCostModel& model, const TableStatistics& table,
                   std::int64_t columns, const OperatorSettings& settings = kModelSettings) {
  State values(model.state_size(), std::numeric_limits<double>::quiet_NaN());
  model.encode(table, columns, settings, values);
  return values;
}

State arbitrary_piece(const ComputeCostModel& model,
                      const OperatorSettings& settings = kModelSettings) {
  return contribution(model, arbitrary_statistics(), 4 * *rc::gen::inRange<std::int64_t>(1, 33),
                      settings);
}

State sum(const State& a, const State& b, double sign = 1.0) {
  State result = a;
  for (std::size_t i = 0; i < a.size(); ++i) result[i] += sign * b[i];
  return result;
}

ComputeArchitecture arbitrary_architecture() {
  return *rc::gen::element(ComputeArchitecture::published, ComputeArchitecture::bounded_loads);
}

std::shared_ptr<const NeuralComputeModel> arbitrary_model(ComputeArchitecture architecture) {
  return random_model(architecture, *rc::gen::arbitrary<std::uint64_t>());
}

TEST(NeuralComputeModel, ADeviceWithoutPiecesCostsNothing) {
  for (const auto architecture :
       {ComputeArchitecture::published, ComputeArchitecture::bounded_loads}) {
    const auto model = random_model(architecture, 1);
    EXPECT_EQ(model->cost(State(model->state_size(), 0.0)), 0.0);
  }
}

TEST(NeuralComputeModel, FollowsItsFormula) {
  // One feature counts (columns), one resource: u = 0.5 log2(c), E = 2, B the bound,
  // load = E exp(B tanh((u - ln E) / B)), cost = 0.25 + 0.8 L + 0.5 relu(L - 1).
  ComputeNetwork network;
  const auto features = static_cast<int>(feature_names(network.schema).size());
  network.estimate.offset_ms = 0.5;
  network.estimate.weights_ms.assign(work_terms().size(), 0.0);
  network.estimate.weights_ms.front() = 2.0;
  network.feature_mean.assign(features, 0.0F);
  network.feature_scale.assign(features, 1.0F);
  network.encoder.push_back({features, 1, std::vector<float>(features, 0.0F), {0.0F}});
  network.encoder.push_back({features + 1, 1, std::vector<float>(features + 1, 0.0F), {0.0F}});
  const auto& names = feature_names(network.schema);
  const auto columns_at = std::find(names.begin(), names.end(), "log2_num_columns") - names.begin();
  network.encoder.back().weights[1 + columns_at] = 0.5F;  // after the hidden unit, the features
  network.head = {1, 1, {1.0F}, {-1.0F}};
  network.head_output = {0.5F};
  network.linear = {0.8F};
  network.offset = 0.25F;
  ASSERT_EQ(broken_bound(network), "");
  const NeuralComputeModel model(network, wide_info());
  const auto load_of = [](double u) {
    const double log_e = std::log(2.0);
    return 2.0 * std::exp(kLogLoadBound * std::tanh((u - log_e) / kLogLoadBound));
  };
  const TableStatistics table{100, 1.0, DataType::fp32, ReuseHistogram{1.0}};
  const State narrow = contribution(model, table, 4);
  const double load = load_of(1.0);
  EXPECT_NEAR(model.cost(narrow), 0.25 + 0.8 * load + 0.5 * (load - 1.0), 1e-5);
  const State both = sum(narrow, contribution(model, table, 16));
  const double loads = load + load_of(2.0);
  EXPECT_NEAR(model.cost(both), 0.25 + 0.8 * loads + 0.5 * (loads - 1.0), 1e-5);
}

/// Some pieces, each of which may be a part of a piece as in a relaxed plan.
State arbitrary_state(const ComputeCostModel& model,
                      const OperatorSettings& settings = kModelSettings) {
  State state(model.state_size(), 0.0);
  const int pieces = *rc::gen::inRange(1, 5);
  for (int i = 0; i < pieces; ++i) {
    state = sum(state, arbitrary_piece(model, settings), *rc::gen::element(1.0, 0.5, 0.01, 7.0));
  }
  return state;
}

RC_GTEST_PROP(NeuralComputeModelProperty, TangentsTouchTheBoundAndAreNowhereAboveIt, ()) {
  const auto plain =
      random_model(ComputeArchitecture::bounded_loads, *rc::gen::arbitrary<std::uint64_t>());
  std::vector<ComputeNetwork> members = plain->members();
  if (*rc::gen::arbitrary<bool>()) {
    for (ComputeNetwork& member : members) {
      member.widest_factors = {0.4F, 0.5F, 0.75F, 0.875F, 0.9F, 1.0F};
    }
  }
  const NeuralComputeModel model(members, wide_info());
  const OperatorSettings settings{4096,
                                  *rc::gen::element(Optimizer::sgd, Optimizer::rowwise_adagrad)};
  const State at = arbitrary_state(model, settings);
  State slopes(model.state_size(), std::numeric_limits<double>::quiet_NaN());
  const double smoothing = *rc::gen::element(0.0, 0.001, 0.1, 10.0);
  const double constant = model.tangent(at, smoothing, slopes);
  RC_ASSERT(slopes[0] == 0.0);
  RC_ASSERT(std::all_of(slopes.begin(), slopes.end(), [](double slope) { return slope >= 0.0; }));
  const auto line = [&](const State& state) {
    return std::inner_product(slopes.begin(), slopes.end(), state.begin(), constant);
  };
  const double here = model.bound(at);
  if (smoothing == 0.0) RC_ASSERT(std::abs(line(at) - here) <= 1e-9 * here);
  RC_ASSERT(line(at) <= here * (1.0 + 1e-9));
  for (int i = 0; i < 5; ++i) {
    const State other = arbitrary_state(model, settings);
    RC_ASSERT(line(other) <= model.bound(other) * (1.0 + 1e-9));
  }
}

TEST(NeuralComputeModel, AModelWithoutStructureHasNoTangent) {
  const auto model = random_model(ComputeArchitecture::published, 3);
  State slopes(model->state_size(), std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(model->tangent(State(model->state_size(), 1.0), 0.0, slopes), 0.0);
  EXPECT_EQ(slopes, State(model->state_size(), 0.0));
}

TEST(NeuralComputeModel, AllLoadsAreMultipliedByTheFactorOfTheWidestPiece) {
  for (const std::uint64_t seed : {4, 5}) {  // of two networks and of three
    const auto plain = random_model(ComputeArchitecture::bounded_loads, seed);
    std::vector<ComputeNetwork> members = plain->members();
    for (ComputeNetwork& member : members) {
      member.widest_factors = {0.4F, 0.5F, 0.75F, 0.875F, 0.9F, 1.0F};
    }
    const NeuralComputeModel model(members, wide_info());
    EXPECT_TRUE(model.has_widest_factors());
    const TableStatistics table{100'000, 5.0, DataType::fp32, ReuseHistogram{1.0}};
    const std::vector<std::pair<std::int64_t, double>> factors{
        {4, 0.4},     {32, 0.4},    {36, 0.5},  {64, 0.5},  {68, 0.75}, {128, 0.75},
        {132, 0.875}, {256, 0.875}, {260, 0.9}, {512, 0.9}, {516, 1.0}, {1024, 1.0}};
    State narrow(model.state_size(), 0.0);
    State plain_narrow(plain->state_size(), 0.0);
    double before = 0.0;
    for (const auto& [columns, factor] : factors) {  // each makes the set wider
      narrow = sum(narrow, contribution(model, table, columns));
      plain_narrow = sum(plain_narrow, contribution(*plain, table, columns));
      State scaled = plain_narrow;
      for (std::size_t i = 1; i < scaled.size(); ++i) scaled[i] *= factor;
      const double cost = model.cost(narrow);
      EXPECT_NEAR(cost, plain->cost(scaled), 1e-6 * cost) << columns;
      EXPECT_GT(cost, before);
      EXPECT_LE(model.bound(narrow), cost);
      const State alone = contribution(model, table, columns);
      EXPECT_NEAR(model.bound(alone), model.cost(alone), 1e-5 * model.cost(alone)) << columns;
      EXPECT_GE(cost - before, model.least_rise_ms(alone)) << columns;
      before = cost;
    }
    // Without the widest pieces, all are as cheap as before, bit for bit.
    State rest = narrow;
    for (std::size_t i = factors.size(); i-- > 1;) {
      rest = sum(rest, contribution(model, table, factors[i].first), -1.0);
    }
    EXPECT_EQ(rest, contribution(model, table, 4));
    EXPECT_EQ(plain->bound(plain_narrow), plain->cost(plain_narrow));
  }
}

TEST(NeuralComputeModel, RunningAnythingCostsMoreWithRowwiseAdagradWhereItsOffsetIsHigher) {
  for (const std::uint64_t seed : {3, 4, 5}) {  // of one network, of two and of three
    for (const bool has_widest : {false, true}) {
      std::vector<ComputeNetwork> members =
          random_model(ComputeArchitecture::bounded_loads, seed)->members();
      for (ComputeNetwork& member : members) {
        if (has_widest) member.widest_factors = {0.4F, 0.5F, 0.75F, 0.875F, 0.9F, 1.0F};
      }
      const NeuralComputeModel plain(members, wide_info());
      double rise = 0.0;
      for (ComputeNetwork& member : members) {
        member.rowwise_adagrad_offset = 1.5F * member.offset;
        rise += 0.5 * static_cast<double>(member.offset) / static_cast<double>(members.size());
      }
      const NeuralComputeModel model(members, wide_info());
      ASSERT_TRUE(model.has_optimizer_offsets() && !plain.has_optimizer_offsets());
      const TableStatistics table{100'000, 5.0, DataType::fp32, ReuseHistogram{1.0}};
      for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::rowwise_adagrad}) {
        const double more = optimizer == Optimizer::sgd ? 0.0 : rise;
        EXPECT_NEAR(model.mean_offset_ms(optimizer), plain.mean_offset_ms(optimizer) + more,
                    1e-6 * rise);
        State piece(model.state_size());
        model.encode(table, 64, {4096, optimizer}, piece);
        State plain_piece(plain.state_size());
        plain.encode(table, 64, {4096, optimizer}, plain_piece);
        State state(model.state_size(), 0.0);
        EXPECT_EQ(model.cost(state), 0.0);
        double with_piece = 0.0;
        model.costs_with(state, piece, {&with_piece, 1});
        State plain_state(plain.state_size(), 0.0);
        for (int pieces = 1; pieces <= 2; ++pieces) {  // once, however many pieces there are
          const double added = model.add_and_cost(state, piece);
          plain_state = sum(plain_state, plain_piece);
          EXPECT_NEAR(added, plain.cost(plain_state) + more, 1e-6 * added);
          EXPECT_DOUBLE_EQ(model.cost(state), added);
          EXPECT_NEAR(model.bound(state), plain.bound(plain_state) + more, 1e-6 * added);
          if (pieces == 1) {
            EXPECT_DOUBLE_EQ(with_piece, added);
          }
          std::vector<double> each(members.size());
          std::vector<double> plain_each(members.size());
          model.member_costs(state, {}, each);
          plain.member_costs(plain_state, {}, plain_each);
          for (std::size_t m = 0; m < members.size(); ++m) {
            const double of_member = 0.5 * static_cast<double>(members[m].offset);
            EXPECT_NEAR(each[m], plain_each[m] + (more > 0.0 ? of_member : 0.0), 1e-6 * each[m]);
          }
        }
        EXPECT_EQ(sum(sum(state, piece, -1.0), piece, -1.0), State(model.state_size(), 0.0));
      }
    }
  }
}

TEST(NeuralComputeModel, ContributionsLieOnTheGridThatIsAskedFor) {
  const auto model = random_model(ComputeArchitecture::bounded_loads, 4);
  const TableStatistics table{100'000, 20.0, DataType::fp32, ReuseHistogram{1.0}};
  for (const double grid : {kStateGrid, 0x1p-10, 1.0}) {
    State values(model->state_size());
    model->encode(table, 128, {1 << 20, Optimizer::sgd, grid}, values);
    EXPECT_EQ(values[0], 1.0);  // the number of pieces, whatever the grid
    for (const double value : values) EXPECT_EQ(std::remainder(value, grid), 0.0) << grid;
  }
}

TEST(NeuralComputeModel, NoElementIsAboveItsBound) {
  Random random(6);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto model = random_model(ComputeArchitecture::bounded_loads, seed);
    for (int i = 0; i < 50; ++i) {
      const Table table =
          testing_frontier::random_table(testing_frontier::random_use(random), random);
      const TableStatistics statistics = testing_frontier::statistics_of(table, 4096);
      const double bound = model->largest_element(statistics, table.embedding_dim, kModelSettings);
      for (const double value : contribution(*model, statistics, table.embedding_dim)) {
        EXPECT_LE(value, std::max(bound * (1.0 + 1e-4), 1.0));
      }
    }
  }
}

RC_GTEST_PROP(NeuralComputeModelProperty, SumsDoNotDependOnTheOrder, ()) {
  const auto model = arbitrary_model(arbitrary_architecture());
  std::vector<State> pieces;
  for (int i = *rc::gen::inRange(1, 40); i > 0; --i) pieces.push_back(arbitrary_piece(*model));
  State forwards(model->state_size(), 0.0);
  for (const State& piece : pieces) forwards = sum(forwards, piece);
  Random(*rc::gen::arbitrary<std::uint64_t>()).shuffle(pieces);
  State shuffled(model->state_size(), 0.0);
  for (const State& piece : pieces) shuffled = sum(shuffled, piece);
  RC_ASSERT(forwards == shuffled);
  RC_ASSERT(forwards[0] == static_cast<double>(pieces.size()));
}

RC_GTEST_PROP(NeuralComputeModelProperty, SubtractingAPieceRestoresTheState, ()) {
  const auto model = arbitrary_model(arbitrary_architecture());
  State state(model->state_size(), 0.0);
  std::vector<std::pair<State, State>> history;  // state before, piece
  for (int i = *rc::gen::inRange(1, 30); i > 0; --i) {
    history.emplace_back(state, arbitrary_piece(*model));
    state = sum(state, history.back().second);
  }
  while (!history.empty()) {
    state = sum(state, history.back().second, -1.0);
    RC_ASSERT(state == history.back().first);
    history.pop_back();
  }
  RC_ASSERT(model->cost(state) == 0.0);
}

RC_GTEST_PROP(NeuralComputeModelProperty, CostsWithAPieceAreCostsOfTheSum, ()) {
  const auto model = arbitrary_model(arbitrary_architecture());
  const State piece = arbitrary_piece(*model);
  std::vector<State> states{State(model->state_size(), 0.0)};
  for (int i = *rc::gen::inRange(1, 9); i > 0; --i) {
    states.push_back(sum(states.back(), arbitrary_piece(*model)));
  }
  State flat;
  for (const State& state : states) flat.insert(flat.end(), state.begin(), state.end());
  std::vector<double> costs(states.size());
  model->costs_with(flat, piece, costs);
  for (std::size_t i = 0; i < states.size(); ++i) {
    const double expected = model->cost(sum(states[i], piece));
    RC_ASSERT(std::abs(costs[i] - expected) <= 1e-9 * std::max(1.0, expected));
  }
}

/// Each thread has its own scratch memory for encoding, whose address must not matter.
TEST(NeuralComputeModel, AContributionDoesNotDependOnTheThread) {
  const NetworkSizes like_the_shipped{{128, 64, 16}, 32};
  for (const auto architecture :
       {ComputeArchitecture::published, ComputeArchitecture::bounded_loads}) {
    const auto model = random_model(architecture, 2, like_the_shipped);
    std::vector<State> expected;
    for (int i = 1; i <= 32; ++i) {
      expected.push_back(
          contribution(*model, {1000, 2.5, DataType::fp32, ReuseHistogram{1.0}}, 4 * i));
    }
    for (std::size_t shift = 0; shift < 8; ++shift) {
      std::vector<State> actual;
      std::thread([&] {
        const std::vector<char> before(16 * shift + 1);
        for (int i = 1; i <= 32; ++i) {
          actual.push_back(
              contribution(*model, {1000, 2.5, DataType::fp32, ReuseHistogram{1.0}}, 4 * i));
        }
      }).join();
      EXPECT_EQ(actual, expected) << shift;
    }
  }
}

RC_GTEST_PROP(NeuralComputeModelProperty, AnEnsembleIsTheMeanOfItsMembers, ()) {
  const auto model = arbitrary_model(ComputeArchitecture::bounded_loads);
  const auto count = static_cast<std::size_t>(model->num_members());
  RC_TAG(count);
  std::vector<NeuralComputeModel> alone;
  for (const ComputeNetwork& member : model->members()) alone.emplace_back(member, wide_info());
  const TableStatistics first = arbitrary_statistics();
  const TableStatistics second = arbitrary_statistics();
  const State state = contribution(*model, first, 16);
  const State piece = contribution(*model, second, 8);
  std::vector<double> each(count);
  model->member_costs(state, piece, each);
  double mean = 0.0;
  for (std::size_t m = 0; m < count; ++m) {
    const double expected =
        alone[m].cost(sum(contribution(alone[m], first, 16), contribution(alone[m], second, 8)));
    RC_ASSERT(std::abs(each[m] - expected) <= 1e-5 * std::max(1.0, expected));
    mean += each[m] / static_cast<double>(count);
  }
  const double cost = model->cost(sum(state, piece));
  RC_ASSERT(std::abs(cost - mean) <= 1e-5 * std::max(1.0, mean));
  model->member_costs(sum(state, piece), {}, each);
  const double highest = *std::max_element(each.begin(), each.end());
  for (const double pessimism : {0.0, 0.25, 1.0}) {
    const PessimisticComputeModel pessimist(model, pessimism);
    const double expected = (1.0 - pessimism) * mean + pessimism * highest;
    RC_ASSERT(std::abs(pessimist.cost(sum(state, piece)) - expected) <=
              1e-5 * std::max(1.0, expected));
    RC_ASSERT(pessimist.cost(State(model->state_size(), 0.0)) == 0.0);
  }
}

RC_GTEST_PROP(NeuralComputeModelProperty, LoadsAreNeverNegativeAndNeverFall, ()) {
  const auto model = arbitrary_model(ComputeArchitecture::bounded_loads);
  State state(model->state_size(), 0.0);
  double cost = 0.0;
  for (int i = *rc::gen::inRange(1, 30); i > 0; --i) {
    const State piece = arbitrary_piece(*model);
    for (const double value : piece) RC_ASSERT(value >= 0.0);
    state = sum(state, piece);
    const double with_piece = model->cost(state);
    RC_ASSERT(std::isfinite(with_piece));
    RC_ASSERT(with_piece >= cost);
    cost = with_piece;
  }
}

RC_GTEST_PROP(NeuralComputeModelProperty, ThePublishedNetworkIsNeverNegativeEither, ()) {
  const auto model = arbitrary_model(ComputeArchitecture::published);
  const State piece = arbitrary_piece(*model);
  RC_ASSERT(model->cost(piece) >= 0.0);
}

RC_GTEST_PROP(NeuralComputeModelProperty, TheMostExtremePiecesHaveFiniteCosts, ()) {
  const auto model = arbitrary_model(arbitrary_architecture());
  const TableStatistics table{*rc::gen::element<std::int64_t>(1, kMaxEmbeddings),
                              *rc::gen::element(1e-9, kMaxPoolingFactor), DataType::fp32,
                              ReuseHistogram{1.0}};
  State piece(model->state_size());
  model->encode(table, *rc::gen::element<std::int64_t>(1, kMaxEmbeddingDim),
                {*rc::gen::element<std::int64_t>(1, kMaxBatchSize), Optimizer::rowwise_adagrad},
                piece);
  for (const double value : piece) RC_ASSERT(std::isfinite(value));
  const double cost = model->cost(piece);
  RC_ASSERT(std::isfinite(cost) && cost >= 0.0);
}

Task covered_task() {
  Task task;
  task.batch_size = 1000;
  task.tables = {make_table("a", 1000, 16, 2.0), make_table("b", 1'000'000, 128, 50.0)};
  task.topology = make_topology(2, 2);
  return task;
}

std::vector<std::string> outside(const Task& task) {
  ComputeModelInfo info = wide_info();
  info.range.min_batch_size = 512;
  info.range.max_batch_size = 4096;
  info.range.min_columns = 4;
  const NeuralComputeModel model(random_network(ComputeArchitecture::bounded_loads, 1), info);
  std::vector<std::string> reasons = reasons_outside(*model.trained_range(), task);
  EXPECT_EQ(reasons_outside(*model.trained_range(), task, table_statistics(task)), reasons);
  return reasons;
}

TEST(NeuralComputeModel, SaysNothingInsideItsRange) {
  EXPECT_THAT(outside(covered_task()), IsEmpty());
}

TEST(NeuralComputeModel, SaysWhatItWasNotTrainedOn) {
  Task task = covered_task();
  task.batch_size = 511;
  EXPECT_THAT(outside(task), ElementsAre("batch_size: trained on 512 to 4096, got 511"));
  task.batch_size = 4097;
  task.optimizer = Optimizer::rowwise_adagrad;
  EXPECT_THAT(outside(task), ElementsAre("batch_size: trained on 512 to 4096, got 4097",
                                         "optimizer: not trained on rowwise_adagrad"));
  task = covered_task();
  task.tables[0].num_embeddings = 1'000'001;
  task.tables[1].pooling_factor = 60.0;
  EXPECT_THAT(outside(task),
              ElementsAre("num_embeddings: trained on 10 to 1000000, got 1000001 (\"a\")",
                          "pooling_factor: trained on 0.1 to 50, got 60 (\"b\")"));
  task = covered_task();
  task.tables[0].data_type = DataType::fp16;
  task.tables[1].data_type = DataType::fp16;
  EXPECT_THAT(outside(task), ElementsAre("data_type: not trained on fp16 (\"a\", \"b\")"));
}

/// What a space's end is sampled as lies a hair's breadth before it.
TEST(NeuralComputeModel, KnowsWhatLiesAHairsBreadthOutside) {
  Task task = covered_task();
  task.tables[0].pooling_factor = 50.0 * 500.0 / 499.5;
  task.tables[1].pooling_factor = 0.1 / 1.009;
  EXPECT_THAT(outside(task), IsEmpty());
  task.tables[0].pooling_factor = 50.6;
  task.tables[1].pooling_factor = 0.1 / 1.011;
  EXPECT_THAT(outside(task),
              ElementsAre("pooling_factor: trained on 0.1 to 50, got 50.6 (\"a\", \"b\")"));
}

TEST(NeuralComputeModel, NamesTheFirstTablesOutsideAndCountsTheOthers) {
  Task task = covered_task();
  task.tables.clear();
  for (int i = 0; i < 7; ++i) {
    task.tables.push_back(make_table(fmt::format("t{}", i), i < 6 ? 3 : 1000, 16, 2.0));
  }
  EXPECT_THAT(outside(task),
              ElementsAre("num_embeddings: trained on 10 to 1000000, got 3 (\"t0\", \"t1\", "
                          "\"t2\", \"t3\", \"t4\" and 1 more)"));
}

TEST(NeuralComputeModel, SaysThatRowsAreHitMoreOftenThanItKnows) {
  Task task = covered_task();
  task.tables = {make_table("hot", 10, 16, 20.0)};  // 20,000 lookups in 10 rows
  EXPECT_THAT(outside(task),
              ElementsAre("lookups per distinct row: trained on at most 1000, got 2000 (\"hot\")"));
}

TEST(NeuralComputeModel, SaysThatADeviceHasMorePiecesThanItKnows) {
  Task task = covered_task();
  for (int i = 0; i < 28; ++i) {
    task.tables.push_back(make_table(fmt::format("t{}", i), 1000, 16, 2.0));
  }
  EXPECT_THAT(outside(task), IsEmpty());  // 30 on 2 devices
  task.tables.push_back(make_table("one-more", 1000, 16, 2.0));
  EXPECT_THAT(outside(task), ElementsAre("tables: trained on at most 15 pieces on a device, got 31 "
                                         "tables for 2 devices"));
  task.topology.world_size = task.topology.local_world_size = 1;
  task.topology.memory_bytes.resize(1);
  EXPECT_THAT(outside(task), ElementsAre("tables: trained on at most 15 pieces on a device, got 31 "
                                         "tables for 1 device"));
}

TEST(NeuralComputeModel, SaysWhichDimensionItWasNotTrainedOn) {
  Task task = covered_task();
  task.tables[0].embedding_dim = 130;  // cannot be cut
  EXPECT_THAT(outside(task),
              ElementsAre("embedding_dim: trained on 4 to 128 columns, got 130 (\"a\")"));
  task.tables[0].embedding_dim = 256;
  EXPECT_THAT(outside(task),
              ElementsAre("embedding_dim: trained on pieces of 4 to 128 columns, got 256 (\"a\")"));
  task.tables[0].embedding_dim = 3;  // narrower than anything measured, and cannot be cut
  EXPECT_THAT(outside(task),
              ElementsAre("embedding_dim: trained on 4 to 128 columns, got 3 (\"a\")"));
}

TEST(ComputeArchitecture, HasNamesThatReadBack) {
  for (const auto architecture :
       {ComputeArchitecture::published, ComputeArchitecture::bounded_loads}) {
    EXPECT_EQ(compute_architecture_from_string(to_string(architecture), "p"), architecture);
  }
}

}  // namespace
}  // namespace neuroshard
