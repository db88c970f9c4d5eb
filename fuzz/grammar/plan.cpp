// The grammar of plans: rectangles that tile their tables, or nearly so.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "fuzz/grammar/damage.h"
#include "fuzz/grammar/grammar.h"

namespace neuroshard::fuzz {

namespace {

struct Rectangle {
  std::size_t table = 0;
  std::int64_t row = 0;
  std::int64_t rows = 0;
  std::int64_t column = 0;
  std::int64_t columns = 0;
};

/// Cuts one in two, of its columns at multiples of 4 or of its rows.
void cut(std::vector<Rectangle>& rectangles, std::size_t at, Random& random) {
  Rectangle& first = rectangles[at];
  Rectangle second = first;
  if (once_in(2, random)) {
    if (first.columns < 8 || first.columns % 4 != 0) return;
    const std::int64_t left = 4 * random.integer(1, first.columns / 4 - 1);
    first.columns = left;
    second.column += left;
    second.columns -= left;
  } else {
    if (first.rows < 2) return;
    const std::int64_t above = random.integer(1, first.rows - 1);
    first.rows = above;
    second.row += above;
    second.rows -= above;
  }
  rectangles.push_back(second);
}

/// A rectangle that overlaps others, leaves a gap, or lies beyond its table.
void shift(Rectangle& rectangle, Random& random) {
  std::int64_t* const values[] = {&rectangle.row, &rectangle.rows, &rectangle.column,
                                  &rectangle.columns};
  constexpr std::int64_t kSteps[] = {1, -1, 4, -4, 1000, std::int64_t{1} << 42};
  *one_of(values, random) += one_of(kSteps, random);
}

JsonText shard(const Rectangle& rectangle, const TaskSketch& task, Random& random) {
  JsonText json = object({{"table", text(task.names[rectangle.table])}});
  if (rectangle.rows != task.rows[rectangle.table] || once_in(20, random)) {
    json.add("row_offset", number(rectangle.row));
    json.add("num_rows", number(rectangle.rows));
  }
  json.add("column_offset", number(rectangle.column));
  json.add("num_columns", number(rectangle.columns));
  json.add("device", number(random.integer(0, task.devices - 1)));
  return json;
}

JsonText shards(const TaskSketch& task, const std::vector<bool>& is_replicated, Random& random) {
  std::vector<Rectangle> rectangles;
  for (std::size_t t = 0; t < task.names.size(); ++t) {
    if (is_replicated[t]) continue;
    rectangles.push_back({t, 0, task.rows[t], 0, task.columns[t]});
  }
  for (std::uint64_t i = random.below(8); i > 0 && !rectangles.empty(); --i) {
    cut(rectangles, random.below(rectangles.size()), random);
  }
  if (!rectangles.empty() && once_in(5, random)) {
    switch (random.below(3)) {
      case 0:
        shift(rectangles[random.below(rectangles.size())], random);
        break;
      case 1: {
        const Rectangle twice = one_of(rectangles, random);
        rectangles.push_back(twice);
        break;
      }
      default:
        rectangles.pop_back();
    }
  }
  random.shuffle(rectangles);
  JsonText json = array({});
  for (const Rectangle& rectangle : rectangles) {
    json.elements.push_back(shard(rectangle, task, random));
  }
  return json;
}

JsonText predicted(const TaskSketch& task, Random& random) {
  const auto ms = [&] { return number(once_in(10, random) ? 0.0 : random.uniform(0.0, 20.0)); };
  JsonText devices = array({});
  for (std::int64_t d = 0; d < std::min<std::int64_t>(task.devices, 300); ++d) {
    JsonText device = object({{"compute_ms", ms()},
                              {"forward_comm_ms", ms()},
                              {"backward_comm_ms", ms()},
                              {"memory_bytes", number(integer_between(0, 1 << 30, random))},
                              {"num_columns", number(integer_between(0, 4096, random))}});
    if (once_in(8, random)) device.add("all_reduce_ms", ms());
    devices.elements.push_back(std::move(device));
  }
  return object({{"cost_ms", ms()}, {"devices", std::move(devices)}});
}

JsonText models(Random& random) {
  constexpr std::string_view kCompute[] = {"a100-40gb", "analytic-a100-80gb", "cpu-xeon-2core",
                                           "unknown"};
  constexpr std::string_view kCommunication[] = {"pcie4", "analytic-pcie4", "ethernet-25g"};
  JsonText compute = object({{"name", text(one_of(kCompute, random))}});
  if (once_in(3, random)) compute.add("sha256", text(std::string(64, '0')));
  if (once_in(6, random))
    compute.add("file", text(once_in(2, random) ? "/nowhere.safetensors" : odd_name(random)));
  JsonText communication = object({{"name", text(one_of(kCommunication, random))}});
  if (once_in(3, random)) communication.add("is_simulated", token("true"));
  return object({{"compute", std::move(compute)}, {"communication", std::move(communication)}});
}

JsonText search(Random& random) {
  JsonText options = object({{"steps", number(integer_between(0, 1000, random))},
                             {"time_limit", text("100ms")},
                             {"improvement", text(once_in(2, random) ? "brief" : "thorough")},
                             {"pessimism", number(random.uniform())},
                             {"least_gain", number(random.uniform())},
                             {"seed", number(integer_between(0, 1 << 30, random))},
                             {"threads", number(std::int64_t{1})}});
  if (once_in(4, random)) options.add("stop_by_clock", token("true"));
  const auto level = [&](std::int64_t number_of_level) {
    return object({{"level", number(number_of_level)},
                   {"states_tried", number(std::int64_t{3})},
                   {"states_feasible", number(std::int64_t{1})},
                   {"best_cost_ms", number(random.uniform(1.0, 2.0))},
                   {"unplaced_bytes", number(std::int64_t{0})},
                   {"plans_priced", number(integer_between(0, 1 << 20, random))},
                   {"head_evaluations", number(std::int64_t{1})},
                   {"pieces_encoded", number(std::int64_t{1})}});
  };
  return object({{"algorithm", text(once_in(2, random) ? "neuroshard" : "random")},
                 {"version", text("0.1.0")},
                 {"seed", number(std::int64_t{1})},
                 {"options", std::move(options)},
                 {"statistics", object({{"levels", array({level(0), level(1)})},
                                        {"rounds", array({})},
                                        {"stopped_by_clock", token("false")}})},
                 {"lower_bound_ms", number(random.uniform(0.0, 3.0))},
                 {"expected_ms", number(random.uniform(0.0, 30.0))},
                 {"wall_ms", number(random.uniform(0.0, 1000.0))}});
}

JsonText moves(const TaskSketch& task, Random& random) {
  const std::int64_t bytes = integer_between(1, 1 << 20, random);
  JsonText pairs = array({});
  if (task.devices > 1) {
    pairs.elements.push_back(object({{"from", number(std::int64_t{0})},
                                     {"to", number(std::int64_t{1})},
                                     {"bytes", number(bytes)},
                                     {"ms", number(random.uniform())}}));
  }
  const std::int64_t moved = task.devices > 1 ? bytes : 0;
  return object({{"older_plan_sha256", text("5f")},
                 {"max_move", number(random.uniform())},
                 {"placed_bytes", number(2 * bytes)},
                 {"moved_bytes", number(moved)},
                 {"ms", number(random.uniform())},
                 {"pairs", std::move(pairs)}});
}

}  // namespace

std::string make_plan(Random& random) {
  TaskSketch task = sketch_task(random);
  // Most plans of large devices and tables are without interest: memory alone makes them invalid.
  if (!once_in(3, random))
    task.json.at("topology").at("memory_bytes") = token("1152921504606846976");
  std::vector<bool> is_replicated;
  JsonText copies = array({});
  for (const std::string& name : task.names) {
    is_replicated.push_back(once_in(8, random));
    if (is_replicated.back()) copies.elements.push_back(text(name));
  }
  JsonText plan = object({{"format", text("neuroshard/plan/1")}, {"task", task.json}});
  plan.add("shards", shards(task, is_replicated, random));
  if (!copies.elements.empty()) plan.add("replicated_tables", std::move(copies));
  if (once_in(2, random)) plan.add("predicted", predicted(task, random));
  if (once_in(2, random)) plan.add("model", models(random));
  if (once_in(2, random)) plan.add("search", search(random));
  if (once_in(6, random)) plan.add("warnings", array({text(odd_name(random))}));
  if (once_in(6, random)) plan.add("moves", moves(task, random));
  return damaged_text(std::move(plan), random);
}

}  // namespace neuroshard::fuzz
