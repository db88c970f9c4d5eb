// The cost over sizes of clusters.
#include "neuroshard/report/capacity_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "neuroshard/core/units.h"
#include "neuroshard/report/planning_report.h"
#include "neuroshard/report/text_table.h"

namespace neuroshard {

namespace {

/// Characters of the longest bar.
constexpr double kBarWidth = 50.0;

std::string memory_text(std::int64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

const CapacityPoint& point_of(const Capacity& capacity, std::size_t row, std::size_t column) {
  return capacity.points[row * capacity.memory_bytes.size() + column];
}

std::string cost_table(const Capacity& capacity) {
  TextTable table;
  table.add_column("devices");
  for (const std::int64_t bytes : capacity.memory_bytes) table.add_column(memory_text(bytes));
  for (std::size_t row = 0; row < capacity.devices.size(); ++row) {
    std::vector<std::string> cells{fmt::format("{}", capacity.devices[row])};
    for (std::size_t column = 0; column < capacity.memory_bytes.size(); ++column) {
      const CapacityPoint& point = point_of(capacity, row, column);
      cells.push_back(point.found ? fmt::format("{:.3f}", point.cost_ms) : "-");
    }
    table.add_row(std::move(cells));
  }
  return table.to_string();
}

/// Sizes of memory from `first` to `last` with which as many devices cost the same.
std::string memory_range_text(const Capacity& capacity, std::size_t first, std::size_t last) {
  std::string least = memory_text(capacity.memory_bytes[first]);
  if (first == last) return least;
  return fmt::format("{} to {}", least, memory_text(capacity.memory_bytes[last]));
}

/// A bar for each cost: neighbouring sizes of memory with the same have one.
std::string chart(const Capacity& capacity) {
  double most = 0.0;
  for (const CapacityPoint& point : capacity.points) {
    if (point.found) most = std::max(most, point.cost_ms);
  }
  if (most == 0.0) return "";
  TextTable table;
  table.add_column("devices");
  table.add_column("memory of each", TextTable::Align::left);
  table.add_column("cost ms");
  table.add_column("", TextTable::Align::left);
  for (std::size_t row = 0; row < capacity.devices.size(); ++row) {
    std::string devices = fmt::format("{}", capacity.devices[row]);  // once
    const std::size_t sizes = capacity.memory_bytes.size();
    for (std::size_t first = 0, last = 0; first < sizes; first = last + 1) {
      const CapacityPoint& point = point_of(capacity, row, first);
      const auto is_alike = [&](std::size_t column) {
        const CapacityPoint& other = point_of(capacity, row, column);
        return other.found == point.found && (!other.found || other.cost_ms == point.cost_ms);
      };
      for (last = first; last + 1 < sizes && is_alike(last + 1);) ++last;
      const double width = point.found ? kBarWidth * point.cost_ms / most : 0.0;
      const auto length = static_cast<std::size_t>(std::max(std::lround(width), 1L));
      table.add_row({std::exchange(devices, ""), memory_range_text(capacity, first, last),
                     point.found ? fmt::format("{:.3f}", point.cost_ms) : "-",
                     point.found          ? std::string(length, '#')
                     : point.is_ruled_out ? point.reason
                                          : "does not fit"});
    }
  }
  return "\n" + table.to_string();
}

std::string size_text(const CapacityPoint& point) {
  return fmt::format("{} of {} ({:.3f} ms; the fullest holds {})",
                     format_count(point.devices, "device"), memory_text(point.memory_bytes),
                     point.cost_ms, memory_text(point.used_bytes));
}

std::string smallest_cluster_text(const Capacity& capacity) {
  if (!capacity.smallest) {
    return fmt::format(
        "\nno plan fits; with the most devices: {}\n",
        point_of(capacity, capacity.devices.size() - 1, capacity.memory_bytes.size() - 1).reason);
  }
  return fmt::format("\nthe smallest that fits: {}\nthe lowest cost:        {}\n",
                     size_text(capacity.points[*capacity.smallest]),
                     size_text(capacity.points[*capacity.cheapest]));
}

Json point_json(const CapacityPoint& point) {
  Json json = Json::Object{
      {"devices", point.devices}, {"memory_bytes", point.memory_bytes}, {"found", point.found}};
  if (point.found) {
    json.set("cost_ms", point.cost_ms);
    json.set("used_bytes", point.used_bytes);
  } else {
    json.set("reason", point.reason);
  }
  return json;
}

}  // namespace

std::string capacity_text(const Capacity& capacity) {
  return fmt::format("predicted cost in ms, by devices and memory of each; -: no plan fits\n{}{}{}",
                     cost_table(capacity), chart(capacity), smallest_cluster_text(capacity)) +
         models_line(capacity.models);
}

Json capacity_json(const Capacity& capacity) {
  Json::Array points;
  for (const CapacityPoint& point : capacity.points) points.push_back(point_json(point));
  Json json =
      Json::Object{{"format", "neuroshard/capacity/1"},
                   {"compute_model", capacity.models.compute->name()},
                   {"communication_model", capacity.models.communication->name()},
                   {"communication_is_simulated", capacity.models.communication->is_simulated()}};
  json.set("points", std::move(points));
  const auto choice = [&](std::optional<std::size_t> number) {
    return number ? point_json(capacity.points[*number]) : Json();
  };
  json.set("smallest", choice(capacity.smallest));
  json.set("cheapest", choice(capacity.cheapest));
  json.set("warnings", Json::Array(capacity.warnings.begin(), capacity.warnings.end()));
  return json;
}

}  // namespace neuroshard
