// Sentences from a plan's predicted costs.
#include "neuroshard/report/page/plan_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "neuroshard/core/slowest_device.h"
#include "neuroshard/core/text/printable.h"
#include "neuroshard/core/units.h"
#include "neuroshard/plan/bound_scope.h"
#include "neuroshard/report/plan_report.h"

namespace neuroshard {

namespace {

/// Devices whose work is within this share of the slowest's is called balanced.
constexpr double kBalanced = 0.02;
/// Tables that are named, and the least share of a device's lookups that one must have.
constexpr std::size_t kMaxNamedTables = 3;
constexpr double kNamedShare = 0.05;
/// Sums of the same times in another order differ by less.
constexpr double kSameMoment = 1e-9;

std::string milliseconds(double ms) { return fmt::format("{:.{}f} ms", ms, ms < 1.0 ? 3 : 2); }

std::string per_cent(double share) { return fmt::format("{:.0f}%", 100.0 * share); }

struct Part {
  const char* name;
  double ms;
};

constexpr std::size_t kWaiting = 4;

/// A device's total, taken apart; the part kWaiting is not its own work.
std::vector<Part> parts_of(const ReportDevice& device) {
  return {{"computation", device.cost->compute_ms},
          {"backward communication", device.cost->backward_comm_ms},
          {"forward communication", device.cost->forward_comm_ms - device.waiting_ms},
          {"the all-reduce of replicated tables", device.cost->all_reduce_ms},
          {"waiting for other devices", device.waiting_ms}};
}

/// "69% of it computation": the larger of computation and all communication, or the waiting.
std::string most_of(const ReportDevice& device) {
  const DeviceCost& cost = *device.cost;
  const double communication_ms =
      cost.backward_comm_ms + cost.forward_comm_ms - device.waiting_ms + cost.all_reduce_ms;
  Part most{"computation", cost.compute_ms};
  for (const Part& part :
       {Part{"communication", communication_ms}, Part{"waiting for others", device.waiting_ms}}) {
    if (part.ms > most.ms) most = part;
  }
  return fmt::format("{} of it {}", per_cent(most.ms / cost.total_ms()), most.name);
}

std::string headline(const std::vector<ReportDevice>& devices, std::size_t slowest) {
  const ReportDevice& device = devices[slowest];
  const double total_ms = device.cost->total_ms();
  return fmt::format("{} takes {} for an iteration{}.",
                     devices.size() == 1 ? "The only device"
                                         : fmt::format("Device {} of {} is the slowest: it",
                                                       slowest, devices.size()),
                     milliseconds(total_ms), total_ms > 0.0 ? ", " + most_of(device) : "");
}

/// Where none is slower than another.
std::string headline_of_equals(const std::vector<ReportDevice>& devices) {
  return fmt::format("Each of the {} devices takes {} for an iteration.", devices.size(),
                     milliseconds(devices.front().cost->total_ms()));
}

/// The largest parts, until they are nine tenths of the total; `whose` begins the sentence.
std::string makeup(const ReportDevice& device, std::string_view whose) {
  std::vector<Part> parts = parts_of(device);
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.ms > b.ms; });
  const double total = device.cost->total_ms();
  std::vector<std::string> texts;
  double told = 0.0;
  for (const Part& part : parts) {
    if (told >= 0.9 * total) break;
    texts.push_back(
        fmt::format("{} is {} ({})", per_cent(part.ms / total), part.name, milliseconds(part.ms)));
    told += part.ms;
  }
  return fmt::format("{} {}.", whose, fmt::join(texts, ", "));
}

/// What the device does itself: its time without the waiting.
double work_ms(const ReportDevice& device) { return device.cost->total_ms() - device.waiting_ms; }

/// In which part of its own work it is furthest above the others; empty if in none by much.
std::string largest_difference(const std::vector<ReportDevice>& devices, std::size_t slowest) {
  const auto others = static_cast<double>(devices.size() - 1);
  const std::vector<Part> own = parts_of(devices[slowest]);
  std::size_t most = kWaiting;
  double excess_ms = 0.005 * devices[slowest].cost->total_ms();
  double mean_ms = 0.0;
  for (std::size_t p = 0; p < own.size(); ++p) {
    double sum = 0.0;
    for (const ReportDevice& device : devices) sum += parts_of(device)[p].ms;
    const double mean_of_others = (sum - own[p].ms) / others;
    if (p == kWaiting || own[p].ms - mean_of_others <= excess_ms) continue;
    most = p;
    excess_ms = own[p].ms - mean_of_others;
    mean_ms = mean_of_others;
  }
  if (most == kWaiting) return "";
  return fmt::format(" It differs most in {}: {}, on the other devices {} on average.",
                     own[most].name, milliseconds(own[most].ms), milliseconds(mean_ms));
}

/// How evenly the work is spread, and in what this device has more of it.
std::string difference(const std::vector<ReportDevice>& devices, std::size_t slowest) {
  double least_ms = work_ms(devices[slowest]);
  for (const ReportDevice& device : devices) least_ms = std::min(least_ms, work_ms(device));
  const double share = 1.0 - least_ms / work_ms(devices[slowest]);
  const std::string spread =
      share <= kBalanced
          ? fmt::format(
                "The devices are balanced: waiting aside, the least busy one has {:.1f}% less to "
                "do.",
                100.0 * share)
          : fmt::format("Waiting aside, the least busy device has {} less to do.", per_cent(share));
  return spread + largest_difference(devices, slowest);
}

/// Who waits for whom before the forward all-to-all.
std::string waiting(const std::vector<ReportDevice>& devices, std::size_t slowest) {
  const auto entered = [&](std::size_t d) { return entered_ms(*devices[d].cost); };
  std::size_t last = 0;
  for (std::size_t d = 1; d < devices.size(); ++d) {
    if (entered(d) > entered(last)) last = d;
  }
  if (entered(slowest) >= entered(last) * (1.0 - kSameMoment)) last = slowest;
  const std::string when = fmt::format(
      "the last to enter the forward all-to-all, {} after the start", milliseconds(entered(last)));
  if (last == slowest) return fmt::format("The others wait for it: it is {}.", when);
  return fmt::format("It waits {} for device {}, which is {}.",
                     milliseconds(devices[slowest].waiting_ms), last, when);
}

/// The tables that a device looks up most bytes of, of those that not all devices have; their
/// shares are of all bytes that it looks up.
std::string heaviest_tables(const ReportPlan& plan, std::size_t device) {
  const double total = plan.devices[device].looked_up_bytes;
  std::map<int, double> by_table;
  for (const ReportPiece& piece : plan.pieces) {
    if (static_cast<std::size_t>(piece.shard.device) == device) {
      by_table[piece.shard.table] += piece.looked_up_bytes;
    }
  }
  std::vector<std::pair<int, double>> tables(by_table.begin(), by_table.end());
  std::stable_sort(tables.begin(), tables.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> texts;
  for (const auto& [table, bytes] : tables) {
    if (texts.size() == kMaxNamedTables || !(bytes >= kNamedShare * total)) break;
    texts.push_back(fmt::format("{} ({})", printable(plan.plan.document.task.tables[table].name),
                                per_cent(bytes / total)));
  }
  if (texts.empty()) return "";
  return fmt::format(
      "Of its tables{}, it looks up the most bytes of {}.",
      plan.plan.document.plan.replicated_tables.empty() ? "" : " that are not on every device",
      fmt::join(texts, ", "));
}

/// What a plan's search says under this name, if it is a decimal; it may say anything.
const double* number_in_search(const PlanDocument& document, std::string_view name) {
  const Json* found = document.search.find(name);
  return found == nullptr ? nullptr : std::get_if<double>(&found->value());
}

std::string bound(const PlanDocument& document) {
  const double* bound_ms = number_in_search(document, "lower_bound_ms");
  const double cost_ms = document.predicted->cost_ms;
  if (bound_ms == nullptr || *bound_ms <= 0.0 || *bound_ms > cost_ms) return "";
  const BoundScope scope = bound_scope(document);
  const std::string plans = plans_of_cuts(scope.cuts);
  const std::string left_out = left_out_of_bound(scope);
  const std::string others = not_of_bound(scope);
  return fmt::format(
      "By the same models no plan{} that fits into memory costs less than {}: this one is at most "
      "{:.1f}% above the best{}{}.{}",
      plans, milliseconds(*bound_ms), 100.0 * (cost_ms / *bound_ms - 1.0),
      plans.empty() ? "" : " of these", others.empty() ? "" : ", but " + others,
      left_out.empty() ? "" : fmt::format(" The bound leaves out {}.", left_out));
}

std::string expectation(const PlanDocument& document) {
  const double* expected_ms = number_in_search(document, "expected_ms");
  if (expected_ms == nullptr || !(*expected_ms > document.predicted->cost_ms)) return "";
  return fmt::format(
      "Devices that are planned alike differ when they run, and the slowest decides: it is "
      "expected to take {}.",
      milliseconds(*expected_ms));
}

}  // namespace

std::vector<std::string> plan_words(const ReportPlan& plan) {
  if (!plan.plan.document.predicted) {
    return {"This plan has no predicted cost: neuroshard price predicts it."};
  }
  const std::vector<DeviceCost>& costs = plan.plan.document.predicted->devices;
  const std::size_t slowest = slowest_device(costs);
  const bool none_is_slower = equally_slow(costs);
  std::vector<std::string> words{none_is_slower ? headline_of_equals(plan.devices)
                                                : headline(plan.devices, slowest)};
  if (!(plan.devices[slowest].cost->total_ms() > 0.0)) return words;
  words.push_back(makeup(
      plan.devices[slowest],
      none_is_slower ? "On the first of them," : "The plan costs what its slowest device takes:"));
  if (plan.devices.size() > 1) {
    words.push_back(difference(plan.devices, slowest));
    if (!none_is_slower) words.push_back(waiting(plan.devices, slowest));
  }
  const std::string tables = none_is_slower ? "" : heaviest_tables(plan, slowest);
  for (const std::string& sentence :
       {tables, expectation(plan.plan.document), bound(plan.plan.document)}) {
    if (!sentence.empty()) words.push_back(sentence);
  }
  return words;
}

}  // namespace neuroshard
