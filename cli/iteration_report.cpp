// The table of a plan's iterations and its critical path.
#include "cli/iteration_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "neuroshard/report/text_table.h"

namespace neuroshard::cli {

CriticalPath critical_path(const std::vector<DeviceIteration>& devices) {
  const auto entry = [](const DeviceIteration& d) { return d.backward_comm_ms + d.compute_ms(); };
  const auto last_to_enter =
      std::max_element(devices.begin(), devices.end(),
                       [&](const auto& a, const auto& b) { return entry(a) < entry(b); });
  const auto last_to_end =
      std::max_element(devices.begin(), devices.end(),
                       [](const auto& a, const auto& b) { return a.total_ms() < b.total_ms(); });
  return {static_cast<std::size_t>(last_to_enter - devices.begin()),
          static_cast<std::size_t>(last_to_end - devices.begin()), entry(*last_to_enter)};
}

void print_iterations(const PlanCost& predicted, const std::vector<DeviceIteration>& devices,
                      const char* how) {
  TextTable table;
  table.add_column("device");
  for (const char* phase : {"backward comm", "compute", "forward comm", "total"}) {
    table.add_column(phase);
    table.add_column(how);
  }
  table.add_column("", TextTable::Align::left);
  const CriticalPath path = critical_path(devices);
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const DeviceCost& expected = predicted.devices[d];
    const DeviceIteration& actual = devices[d];
    const auto ms = [](double value) { return fmt::format("{:.3f}", value); };
    std::string mark;
    if (d == path.last_to_enter) mark += "<- the others wait for it";
    if (d == path.last_to_end) mark += mark.empty() ? "<- ends last" : ", ends last";
    table.add_row({fmt::format("{}", d), ms(expected.backward_comm_ms), ms(actual.backward_comm_ms),
                   ms(expected.compute_ms), ms(actual.compute_ms()), ms(expected.forward_comm_ms),
                   ms(actual.forward_comm_ms), ms(expected.total_ms()), ms(actual.total_ms()),
                   mark});
  }
  fmt::print("{}\n", table.to_string());
  fmt::print(
      "critical path: device {} enters the forward all-to-all last, {:.3f} ms after the "
      "start; device {} ends last\n",
      path.last_to_enter, path.entered_ms, path.last_to_end);
}

}  // namespace neuroshard::cli
