// Explanations in words.
#include "neuroshard/report/explanation_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "neuroshard/core/table_pins.h"
#include "neuroshard/core/text/printable.h"
#include "neuroshard/core/units.h"
#include "neuroshard/report/plan_report.h"
#include "neuroshard/report/planning_report.h"
#include "neuroshard/report/text_table.h"

namespace neuroshard {

namespace {

/// Devices that a sentence names.
constexpr std::size_t kMostDevices = 8;

/// No "-0.000" of what rounding alone makes negative.
std::string signed_ms(double ms) {
  std::string text = fmt::format("{:.3f}", ms);
  return text == "-0.000" ? "0.000" : text;
}

/// "computes for 1.000 ms (the mean device for ...) and communicates for ...".
std::string work_text(const Explanation& explanation) {
  const DeviceCost& device = explanation.slowest;
  std::string text = fmt::format("computes for {:.3f} ms", device.compute_ms);
  if (explanation.num_devices == 1) return text;
  if (!explanation.equally_slow) {
    text += fmt::format(" (the mean device for {:.3f} ms)", explanation.mean_compute_ms);
  }
  text += fmt::format(" and communicates for {:.3f} ms backward and {:.3f} ms forward",
                      device.backward_comm_ms, device.forward_comm_ms);
  if (device.all_reduce_ms > 0.0) {
    text += fmt::format(", with an all-reduce of {:.3f} ms between them", device.all_reduce_ms);
  }
  return text;
}

std::string limit_text(const Explanation& explanation) {
  const std::string limit = to_string(explanation.bottleneck);
  std::string text =
      fmt::format("The plan is predicted to cost {:.3f} ms an iteration. ", explanation.cost_ms);
  if (explanation.num_devices == 1) {
    text += fmt::format("It is limited by the {} of its one device, which {}.\n", limit,
                        work_text(explanation));
  } else if (explanation.equally_slow) {
    text += fmt::format("Its {} devices take equally long. It is limited by their {}: each {}.\n",
                        explanation.num_devices, limit, work_text(explanation));
  } else {
    text += fmt::format(
        "It is limited by the {} of device {}, the slowest, which {}. The device that is ready "
        "first waits {:.3f} ms before all can enter the forward all-to-all.\n",
        limit, explanation.slowest_device, work_text(explanation), explanation.waiting_ms);
  }
  if (explanation.replica_compute_ms > 0.0) {
    text += fmt::format(
        "Of the computation, {:.3f} ms on every device are of the tables that are on all of "
        "them.\n",
        explanation.replica_compute_ms);
  }
  return text;
}

std::string fullest_device_text(const Explanation& explanation) {
  const std::vector<int>& full = explanation.full_devices;
  if (full.empty()) return "No device has less than a twentieth of its memory left.\n";
  if (full.size() > kMostDevices) {
    return fmt::format("{} devices have less than a twentieth of their memory left.\n",
                       full.size());
  }
  std::string devices = devices_text(full);
  devices.front() = 'D';
  return fmt::format("{} {} less than a twentieth of {} memory left.\n", devices,
                     full.size() == 1 ? "has" : "have", full.size() == 1 ? "its" : "their");
}

TextTable table_of_parts(const char* first) {
  TextTable table;
  table.add_column(first, TextTable::Align::left);
  for (const char* title : {"pieces", "columns", "memory", "lookups a sample", "alone ms",
                            "device faster by ms", "plan cheaper by ms"}) {
    table.add_column(title);
  }
  return table;
}

std::vector<std::string> row_of(std::string first, const TableOnDevice& part) {
  return {std::move(first),
          fmt::format("{}", part.pieces),
          fmt::format("{}", part.num_columns),
          format_bytes(static_cast<double>(part.bytes)),
          fmt::format("{:.2f}", part.lookups),
          fmt::format("{:.3f}", part.alone_ms),
          signed_ms(part.less_device_ms),
          signed_ms(part.less_plan_ms)};
}

std::string tables_text(const Explanation& explanation, std::size_t max_tables) {
  if (explanation.tables.empty()) {
    return fmt::format("Device {} has no table of its own.\n", explanation.slowest_device);
  }
  TextTable table = table_of_parts("table");
  const std::size_t shown = std::min(explanation.tables.size(), max_tables);
  for (std::size_t i = 0; i < shown; ++i) {
    table.add_row(row_of(explanation.tables[i].table, explanation.tables[i]));
  }
  const bool is_slowest = explanation.num_devices > 1 && !explanation.equally_slow;
  std::string text = fmt::format(
      "The tables {} device {}{}, and what would be gained without each, everything else left "
      "where it is:\n{}",
      is_slowest ? "that make" : "of", explanation.slowest_device, is_slowest ? " slow" : "",
      table.to_string());
  if (shown < explanation.tables.size()) {
    const auto hidden = static_cast<std::int64_t>(explanation.tables.size() - shown);
    text += fmt::format("({} of lower cost not shown)\n", format_count(hidden, "table"));
  }
  return text;
}

std::string bound_text(const Explanation& explanation) {
  if (explanation.lower_bound_ms <= 0.0) return "A lower bound is not known for this model.\n";
  const std::string left_out = left_out_of_bound(explanation.bound_scope);
  const std::string others = not_of_bound(explanation.bound_scope);
  return fmt::format(
      "No plan{} is predicted to cost less than {:.3f} ms, {:.1f}% below this one. The bound "
      "{}takes "
      "all devices for one that is divided evenly, so there need not be a plan that cheap{}.\n",
      plans_of_cuts(explanation.bound_scope.cuts), explanation.lower_bound_ms,
      100.0 * (1.0 - explanation.lower_bound_ms / explanation.cost_ms),
      left_out.empty() ? "" : "leaves out " + left_out + ", and ",
      others.empty() ? "" : "; " + others);
}

/// "3.2% less", "3.2% more".
std::string relative_text(double ms, double reference_ms) {
  const double share = ms / reference_ms - 1.0;
  return fmt::format("{:.1f}% {}", 100.0 * std::abs(share), share > 0.0 ? "more" : "less");
}

std::string alternatives_text(const Explanation& explanation) {
  if (explanation.alternatives.empty()) return "";
  TextTable table;
  table.add_column("with", TextTable::Align::left);
  table.add_column("cost ms");
  table.add_column("than this plan", TextTable::Align::left);
  for (const Alternative& alternative : explanation.alternatives) {
    if (alternative.found) {
      table.add_row({alternative.change, fmt::format("{:.3f}", alternative.cost_ms),
                     relative_text(alternative.cost_ms, explanation.cost_ms)});
    } else {
      table.add_row({alternative.change, "none", alternative.reason});
    }
  }
  return fmt::format(
      "What would help most, each planned again by a short search that begins with this plan and "
      "with none:\n{}",
      table.to_string());
}

/// Where a table lies: "32 columns from 0 on device 3".
std::string shard_text(const Shard& shard, const Table& table) {
  const std::string rows =
      shard.has_all_rows()
          ? ""
          : fmt::format("rows {} to {}, ", shard.row_offset, shard.row_offset + shard.num_rows - 1);
  const std::string columns = shard.num_columns == table.embedding_dim
                                  ? fmt::format("all {} columns", shard.num_columns)
                                  : fmt::format("columns {} to {}", shard.column_offset,
                                                shard.column_offset + shard.num_columns - 1);
  return fmt::format("{}{} on device {}", rows, columns, shard.device);
}

std::string place_text(const std::vector<Shard>& shards, const Table& table) {
  if (shards.empty()) return "    whole on every device\n";
  std::string text;
  for (std::size_t i = 0; i < std::min(shards.size(), kMostDevices); ++i) {
    text += fmt::format("    {}\n", shard_text(shards[i], table));
  }
  if (shards.size() > kMostDevices) {
    text += fmt::format("    and {} more\n", shards.size() - kMostDevices);
  }
  return text;
}

/// Of the plan and of the plan with the choice: the slowest device's times.
std::string slowest_text(int number, const DeviceCost& device, int num_devices, bool equally_slow) {
  const std::string which = num_devices == 1 ? std::string("one device")
                            : equally_slow
                                ? fmt::format("the {} devices take equally long", num_devices)
                                : fmt::format("device {} is the slowest", number);
  return fmt::format(
      "{}: computation {:.3f} ms, all-reduce {:.3f}, backward {:.3f}, forward {:.3f}", which,
      device.compute_ms, device.all_reduce_ms, device.backward_comm_ms, device.forward_comm_ms);
}

bool slices_share_device(const std::vector<Shard>& shards) {
  return std::any_of(shards.begin(), shards.end(), [&](const Shard& one) {
    return std::any_of(shards.begin(), shards.end(), [&](const Shard& other) {
      return one.device == other.device && one.row_offset < other.row_offset;
    });
  });
}

Json device_json(int number, const DeviceCost& device) {
  return Json::Object{{"device", number},
                      {"compute_ms", device.compute_ms},
                      {"all_reduce_ms", device.all_reduce_ms},
                      {"forward_comm_ms", device.forward_comm_ms},
                      {"backward_comm_ms", device.backward_comm_ms},
                      {"memory_bytes", device.memory_bytes}};
}

Json part_json(const TableOnDevice& part) {
  return Json::Object{{"table", part.table},
                      {"device", part.device},
                      {"pieces", part.pieces},
                      {"num_columns", part.num_columns},
                      {"memory_bytes", part.bytes},
                      {"lookups", part.lookups},
                      {"alone_ms", part.alone_ms},
                      {"less_compute_ms", part.less_compute_ms},
                      {"less_device_ms", part.less_device_ms},
                      {"less_plan_ms", part.less_plan_ms}};
}

Json parts_json(const std::vector<TableOnDevice>& parts) {
  Json::Array result;
  for (const TableOnDevice& part : parts) result.push_back(part_json(part));
  return result;
}

Json shards_json(const std::vector<Shard>& shards, const Table& table) {
  Json::Array result;
  for (const Shard& shard : shards) {
    result.push_back(Json::Object{{"row_offset", shard.row_offset},
                                  {"num_rows", shard.rows_of(table)},
                                  {"column_offset", shard.column_offset},
                                  {"num_columns", shard.num_columns},
                                  {"device", shard.device}});
  }
  return result;
}

template <typename Answer>
void add_models_and_warnings(const Answer& answer, Json& json) {
  json.set("compute_model", answer.models.compute->name());
  json.set("communication_model", answer.models.communication->name());
  json.set("communication_is_simulated", answer.models.communication->is_simulated());
  json.set("warnings", Json::Array(answer.warnings.begin(), answer.warnings.end()));
}

const Table& table_named(const Task& task, const std::string& name) {
  return *std::find_if(task.tables.begin(), task.tables.end(),
                       [&](const Table& table) { return table.name == name; });
}

const char* name_of(Choice::Kind kind) {
  switch (kind) {
    case Choice::Kind::rows:
      return "rows";
    case Choice::Kind::columns:
      return "columns";
    case Choice::Kind::replicated:
      return "replicated";
    default:
      return "device";
  }
}

}  // namespace

std::string explanation_text(const Explanation& explanation, std::size_t max_tables) {
  return limit_text(explanation) + fullest_device_text(explanation) + "\n" +
         tables_text(explanation, max_tables) + "\n" + bound_text(explanation) + "\n" +
         alternatives_text(explanation) + "\n" + models_line(explanation.models);
}

std::string table_explanation_text(const TableExplanation& explanation) {
  std::string text = fmt::format(
      "Table \"{}\" has {} rows of {} columns and {:.4g} lookups a sample. Without it the plan "
      "would "
      "be predicted to cost {:.3f} ms, {:.3f} ms less, everything else left where it is.\n",
      printable(explanation.table), explanation.num_embeddings, explanation.embedding_dim,
      explanation.pooling_factor, explanation.cost_ms - explanation.less_plan_ms,
      explanation.less_plan_ms);
  if (explanation.is_replicated) {
    return text +
           fmt::format(
               "It is whole on every device, each of which looks up its own share of the "
               "batch; its gradients take {:.3f} ms of the all-reduce.\n",
               explanation.all_reduce_ms) +
           models_line(explanation.models);
  }
  const auto slowest = std::find_if(
      explanation.parts.begin(), explanation.parts.end(),
      [&](const TableOnDevice& part) { return part.device == explanation.slowest_device; });
  if (explanation.equally_slow) {
    text += fmt::format("The {} devices take equally long.\n", explanation.num_devices);
  } else if (explanation.num_devices > 1) {
    text +=
        slowest != explanation.parts.end()
            ? fmt::format("Device {}, the slowest, has a part of it.\n", explanation.slowest_device)
            : fmt::format("It has no part on device {}, the slowest.\n",
                          explanation.slowest_device);
  }
  TextTable table = table_of_parts("device");
  for (const TableOnDevice& part : explanation.parts) {
    table.add_row(row_of(fmt::format("{}", part.device), part));
  }
  return text + table.to_string() + models_line(explanation.models);
}

std::string why_not_text(const WhyNot& why_not, const Task& task) {
  const Table& table = table_named(task, why_not.choice.table);
  const int num_devices = task.topology.world_size;
  const double more_ms = why_not.choice_ms - why_not.cost_ms;
  const std::string choice =
      fmt::format("table \"{}\" {}", printable(table.name), choice_text(why_not.choice));
  std::string text;
  if (why_not.is_met_already) text = fmt::format("The plan has {} already. ", choice);
  if (why_not.is_met_already && more_ms >= 0.0) {
    text += fmt::format(
        "A short search found no better plan with it; this one is predicted to cost {:.3f} ms.\n",
        why_not.cost_ms);
  } else {
    text += fmt::format(
        "With {}, the best plan that a short search found is predicted to cost {:.3f} ms, {:.3f} "
        "ms ({:.1f}%) {} than this plan's {:.3f} ms.\n",
        choice, why_not.choice_ms, std::abs(more_ms), 100.0 * std::abs(more_ms) / why_not.cost_ms,
        more_ms > 0.0 ? "more" : "less", why_not.cost_ms);
  }
  text += fmt::format(
      "this plan: {}\n{}",
      slowest_text(why_not.slowest_device, why_not.slowest, num_devices, why_not.equally_slow),
      place_text(why_not.shards, table));
  if (!why_not.is_met_already || more_ms < 0.0) {
    text += fmt::format("with it:   {}\n{}",
                        slowest_text(why_not.choice_slowest_device, why_not.choice_slowest,
                                     num_devices, why_not.choice_equally_slow),
                        place_text(why_not.choice_shards, table));
  }
  if (why_not.choice.kind == Choice::Kind::rows && slices_share_device(why_not.choice_shards)) {
    text += "Slices may share a device, as some of these do.\n";
  }
  return text + models_line(why_not.models);
}

Json explanation_json(const Explanation& explanation) {
  Json::Array alternatives;
  for (const Alternative& alternative : explanation.alternatives) {
    Json json = Json::Object{{"change", alternative.change}, {"found", alternative.found}};
    if (alternative.found) {
      json.set("cost_ms", alternative.cost_ms);
    } else {
      json.set("reason", alternative.reason);
    }
    alternatives.push_back(std::move(json));
  }
  Json::Array full;
  for (const int device : explanation.full_devices) full.emplace_back(device);
  Json json =
      Json::Object{{"format", "neuroshard/explanation/1"},
                   {"cost_ms", explanation.cost_ms},
                   {"lower_bound_ms",
                    explanation.lower_bound_ms > 0.0 ? Json(explanation.lower_bound_ms) : Json()},
                   {"bottleneck", to_string(explanation.bottleneck)}};
  json.set("slowest", device_json(explanation.slowest_device, explanation.slowest));
  json.set("equally_slow", explanation.equally_slow);
  json.set("mean_compute_ms", explanation.mean_compute_ms);
  json.set("waiting_ms", explanation.waiting_ms);
  json.set("replica_compute_ms", explanation.replica_compute_ms);
  json.set("full_devices", std::move(full));
  json.set("tables", parts_json(explanation.tables));
  json.set("alternatives", std::move(alternatives));
  add_models_and_warnings(explanation, json);
  return json;
}

Json table_explanation_json(const TableExplanation& explanation) {
  Json json = Json::Object{{"format", "neuroshard/table-explanation/1"},
                           {"table", explanation.table},
                           {"is_replicated", explanation.is_replicated},
                           {"num_embeddings", explanation.num_embeddings},
                           {"embedding_dim", explanation.embedding_dim},
                           {"pooling_factor", explanation.pooling_factor},
                           {"cost_ms", explanation.cost_ms},
                           {"less_plan_ms", explanation.less_plan_ms},
                           {"all_reduce_ms", explanation.all_reduce_ms},
                           {"slowest_device", explanation.slowest_device},
                           {"equally_slow", explanation.equally_slow},
                           {"parts", parts_json(explanation.parts)}};
  add_models_and_warnings(explanation, json);
  return json;
}

Json why_not_json(const WhyNot& why_not, const Task& task) {
  const Table& table = table_named(task, why_not.choice.table);
  Json json = Json::Object{{"format", "neuroshard/why-not/1"},
                           {"table", why_not.choice.table},
                           {"choice", name_of(why_not.choice.kind)}};
  if (why_not.choice.kind != Choice::Kind::replicated) json.set("number", why_not.choice.number);
  json.set("is_met_already", why_not.is_met_already);
  json.set("cost_ms", why_not.cost_ms);
  json.set("choice_ms", why_not.choice_ms);
  json.set("is_replicated", why_not.is_replicated);
  json.set("shards", shards_json(why_not.shards, table));
  json.set("choice_shards", shards_json(why_not.choice_shards, table));
  json.set("slowest", device_json(why_not.slowest_device, why_not.slowest));
  json.set("equally_slow", why_not.equally_slow);
  json.set("choice_slowest", device_json(why_not.choice_slowest_device, why_not.choice_slowest));
  json.set("choice_equally_slow", why_not.choice_equally_slow);
  add_models_and_warnings(why_not, json);
  return json;
}

}  // namespace neuroshard
