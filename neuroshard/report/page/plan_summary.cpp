// A plan as a piece of HTML: sentences, and a table whose bars are cells with a background.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "neuroshard/core/slowest_device.h"
#include "neuroshard/core/text/printable.h"
#include "neuroshard/core/units.h"
#include "neuroshard/report/page/report_page.h"

namespace neuroshard {

namespace {

/// As text between tags or in a quoted attribute.
std::string escaped(std::string_view text) {
  std::string html;
  for (const char c : printable(text)) {
    switch (c) {
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '&':
        html += "&amp;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

struct BarPart {
  const char* name;
  const char* colour;
  double ms;
};

/// In the order of an iteration; the colours are those of the page.
std::array<BarPart, 5> bar_parts_of(const ReportDevice& device) {
  const DeviceCost& cost = *device.cost;
  return {{{"backward communication", "#56b4e9", cost.backward_comm_ms},
           {"all-reduce", "#cc79a7", cost.all_reduce_ms},
           {"computation", "#e69f00", cost.compute_ms},
           {"waiting", "#b0b0b0", device.waiting_ms},
           {"forward communication", "#0072b2", cost.forward_comm_ms - device.waiting_ms}}};
}

/// A device's time as a bar of which 100 % is `longest_ms`.
std::string bar(const ReportDevice& device, double longest_ms) {
  std::string html = "<div style=\"display:flex;width:16em;height:1em\">";
  for (const BarPart& part : bar_parts_of(device)) {
    const double width = longest_ms > 0.0 ? 100.0 * part.ms / longest_ms : 0.0;
    html +=
        fmt::format("<span title=\"{}: {:.3f} ms\" style=\"width:{:.2f}%;background:{}\"></span>",
                    part.name, part.ms, width, part.colour);
  }
  return html + "</div>";
}

std::string legend(const ReportDevice& device) {
  std::string html;
  for (const BarPart& part : bar_parts_of(device)) {
    html += fmt::format("<span style=\"background:{};padding:0 .5em;margin-right:.3em\"></span>{} ",
                        part.colour, part.name);
  }
  return "<p style=\"font-size:90%\">" + html + "</p>";
}

std::string row(std::size_t number, const ReportDevice& device, double longest_ms) {
  const bool has_cost = device.cost.has_value();
  return fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{} ({:.0f}%)</td><td>{}</td></tr>",
                     number, has_cost ? fmt::format("{:.3f}", device.cost->total_ms()) : "",
                     has_cost ? bar(device, longest_ms) : "",
                     format_bytes(static_cast<double>(device.memory_bytes)),
                     100.0 * static_cast<double>(device.memory_bytes) /
                         static_cast<double>(device.memory_limit_bytes),
                     device.num_pieces);
}

double total_ms(const ReportDevice& device) { return device.cost ? device.cost->total_ms() : 0.0; }

/// The slowest ones, by their number.
std::vector<std::size_t> shown_devices(const std::vector<ReportDevice>& devices,
                                       std::size_t max_devices) {
  std::vector<std::size_t> numbers(devices.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  if (numbers.size() <= max_devices) return numbers;
  std::stable_sort(numbers.begin(), numbers.end(), [&](std::size_t a, std::size_t b) {
    return total_ms(devices[a]) > total_ms(devices[b]);
  });
  numbers.resize(max_devices);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

/// What a device that is not shown is called.
const char* hidden_device(const PlanDocument& document) {
  if (!document.predicted) return "device";
  return equally_slow(document.predicted->devices) ? "other device" : "faster device";
}

}  // namespace

std::string plan_summary_html(const ReportData& data, std::size_t max_devices) {
  const ReportPlan& plan = data.plans.front();
  std::string html = "<div>";
  for (std::size_t i = 0; i < plan.words.size(); ++i) {
    html += i == 0 ? "<p><b>" + escaped(plan.words[i]) + "</b>" : " " + escaped(plan.words[i]);
  }
  html += "</p>";
  double longest_ms = 0.0;
  for (const ReportDevice& device : plan.devices)
    longest_ms = std::max(longest_ms, total_ms(device));
  html +=
      "<table><thead><tr><th>device</th><th>ms</th><th>of it</th><th>memory</th><th>pieces</th>"
      "</tr></thead><tbody>";
  const std::vector<std::size_t> shown = shown_devices(plan.devices, max_devices);
  for (const std::size_t d : shown) html += row(d, plan.devices[d], longest_ms);
  html += "</tbody></table>";
  if (plan.devices.front().cost) html += legend(plan.devices.front());
  if (shown.size() < plan.devices.size()) {
    html += fmt::format("<p>{} not shown</p>",
                        format_count(static_cast<std::int64_t>(plan.devices.size() - shown.size()),
                                     hidden_device(plan.plan.document)));
  }
  for (const std::string& warning : plan.plan.document.warnings) {
    html += fmt::format("<p>&#9888; {}</p>", escaped(warning));
  }
  return html + "</div>\n";
}

}  // namespace neuroshard
