// Depth-first search over devices and, on each, over tables from the heaviest.
#include "neuroshard/search/memory/full_devices.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "neuroshard/core/numbers/byte_sum.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/core/table_pins.h"
#include "neuroshard/search/groups/bundled_task.h"

namespace neuroshard {

namespace {

/// Sums that are listed for a device at the most.
constexpr std::int64_t kMostSums = 512;
/// Sums that take as long to list as a step.
constexpr std::int64_t kSumsPerStep = 4;

/// Steps of the first searches, how many times more those of the next round have, and rounds.
constexpr std::int64_t kFirstSteps = 14'000;
constexpr std::int64_t kGrowth = 3;
constexpr int kRounds = 3;
/// Random orders of the devices in each round, after the rising and the falling one.
constexpr int kRandomOrders = 2;

constexpr std::size_t kMostDevices = 64;
constexpr std::size_t kMostPlaces = 1024;

/// More bytes than all devices have.
constexpr std::int64_t kTooMuch = std::int64_t{1} << 62;

/// A table in quanta: the number of columns that its cuts are multiples of.
struct Item {
  int table;
  std::int64_t quantum;  ///< columns
  std::int64_t quanta;
  std::int64_t least;           ///< quanta of a piece
  std::int64_t fixed;           ///< bytes of a piece, however wide
  std::int64_t each;            ///< bytes of a quantum
  std::vector<bool> permitted;  ///< by the device's number in the order

  [[nodiscard]] std::int64_t bytes(std::int64_t number) const {
    return number == 0 ? 0 : fixed + number * each;
  }
  /// Items with the same may be exchanged in every plan.
  [[nodiscard]] auto kind() const { return std::tie(each, fixed, least, quanta, permitted); }
};

/// One order of the devices. Their numbers here are those in the order.
class FullDevicesSearch {
 public:
  FullDevicesSearch(const Task& task, std::span<const int> order, std::int64_t max_steps,
                    const StopClock& clock)
      : order_(order), clock_(clock), patient_clock_(clock), steps_left_(max_steps) {
    for (const int device : order) memory_.push_back(task.topology.memory_bytes[device]);
    const TablePins pins(task);
    for (std::size_t t = 0; t < task.tables.size(); ++t) {
      items_.push_back(item_of(task, pins, static_cast<int>(t)));
    }
    std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
      return std::tuple(b.bytes(b.least), b.kind(), b.table) <
             std::tuple(a.bytes(a.least), a.kind(), a.table);
    });
    for (const Item& item : items_) {
      left_.push_back(item.quanta);
      widths_.push_back(widths_of(item));
    }
    devices_.resize(memory_.size());
    double memory_after = 0.0;
    for (std::size_t k = memory_.size(); k-- > 0;) {
      const auto memory = static_cast<double>(memory_[k]);
      memory_after += memory;
      devices_[k].share = memory / memory_after;
    }
  }

  ExactFit run() {
    WideBytes spare = 0;
    for (const std::int64_t bytes : memory_) spare += bytes;
    for (std::size_t i = 0; i < items_.size(); ++i) spare -= least_bytes(i, left_[i], 0);
    if (spare < 0) return {FitAnswer::does_not_fit, {}};
    if (fill(0, static_cast<std::int64_t>(std::min<WideBytes>(spare, kTooMuch)))) {
      return {FitAnswer::fits, shards()};
    }
    return {steps_left_ > 0 ? FitAnswer::does_not_fit : FitAnswer::unknown, {}};
  }

 private:
  /// Quanta of the lightest items that a device may take together.
  struct Sum {
    std::int64_t bytes;
    std::int64_t extra;  ///< see `extra_bytes`
    std::int64_t code;   ///< the quanta of each, as digits
  };
  /// A device that is being filled.
  struct Device {
    double share = 0.0;                 ///< of its memory and that of the devices after it
    std::vector<std::int64_t> left;     ///< quanta of each item before it
    std::vector<std::int64_t> needed;   ///< least bytes that they take on it and those after it
    std::vector<std::int64_t> taken;    ///< by it
    std::vector<std::int64_t> at_most;  ///< bytes of all that is left of the items from each on
    std::size_t first_listed = 0;       ///< from this item on there are sums
    std::vector<Sum> sums;              ///< rising bytes
  };

  [[nodiscard]] Item item_of(const Task& task, const TablePins& pins, int number) const {
    const Table& table = task.tables[number];
    const bool is_cut = can_cut(table, table.embedding_dim);
    Item item;
    item.table = number;
    item.quantum = is_cut ? kColumnGranularity : table.embedding_dim;
    item.quanta = table.embedding_dim / item.quantum;
    item.least = is_cut ? narrowest_cut(table) / kColumnGranularity : 1;
    item.fixed = shard_bytes(table, 0, task.optimizer);
    item.each = shard_bytes(table, item.quantum, task.optimizer) - item.fixed;
    for (const int device : order_) item.permitted.push_back(pins.permits(number, device));
    return item;
  }

  /// By device k and number n: the most quanta on n of the devices from the k-th on.
  [[nodiscard]] std::vector<std::vector<std::int64_t>> widths_of(const Item& item) const {
    std::vector<std::vector<std::int64_t>> most(memory_.size() + 1, {0});
    std::vector<std::int64_t> widths;
    for (std::size_t k = memory_.size(); k-- > 0;) {
      const std::int64_t width = (memory_[k] - item.fixed) / item.each;
      if (item.permitted[k] && width >= item.least) widths.push_back(width);
      std::sort(widths.begin(), widths.end(), std::greater<>());
      for (const std::int64_t w : widths) {
        most[k].push_back(add_saturated(most[k].back(), w));
      }
    }
    return most;
  }

  /// The least bytes that this number of quanta of an item takes on the devices from the k-th on.
  [[nodiscard]] std::int64_t least_bytes(std::size_t i, std::int64_t quanta, std::size_t k) const {
    const std::vector<std::int64_t>& most = widths_[i][k];
    const auto enough = std::lower_bound(most.begin(), most.end(), quanta);
    if (enough == most.end()) return kTooMuch;
    return quanta * items_[i].each + (enough - most.begin()) * items_[i].fixed;
  }

  /// What it takes more of all devices' memory that device k takes this number of an item's quanta.
  [[nodiscard]] std::int64_t extra_bytes(std::size_t i, std::size_t k, std::int64_t number) const {
    const std::int64_t left = devices_[k].left[i];
    return items_[i].bytes(number) + least_bytes(i, left - number, k + 1) - devices_[k].needed[i];
  }

  [[nodiscard]] bool may_take(std::size_t i, std::size_t k, std::int64_t number) const {
    const Item& item = items_[i];
    const std::int64_t rest = devices_[k].left[i] - number;
    const bool is_piece = number >= item.least && item.permitted[k];
    return (number == 0 || is_piece) && (rest == 0 || rest >= item.least);
  }

  /// Fills the devices from the k-th on with what is left. `spare`: bytes of their memory beyond
  /// what that takes at the least.
  bool fill(std::size_t k, std::int64_t spare) {
    prepare(k, spare);
    return choose(k, 0, memory_[k], spare);
  }

  void prepare(std::size_t k, std::int64_t spare) {
    clock_.check();
    Device& device = devices_[k];
    device.left = left_;
    device.needed.resize(items_.size());
    for (std::size_t i = 0; i < items_.size(); ++i) device.needed[i] = least_bytes(i, left_[i], k);
    device.taken.assign(items_.size(), 0);
    device.at_most.assign(items_.size() + 1, 0);
    for (std::size_t i = items_.size(); i-- > 0;) {
      const std::int64_t bytes = items_[i].permitted[k] ? items_[i].bytes(left_[i]) : 0;
      device.at_most[i] = add_saturated(device.at_most[i + 1], bytes);
    }
    list_sums(k, spare);
  }

  void list_sums(std::size_t k, std::int64_t spare) {
    Device& device = devices_[k];
    device.first_listed = items_.size();
    device.sums.assign(1, {0, 0, 0});
    std::int64_t radix = 1;
    while (device.first_listed > 0 && radix * (left_[device.first_listed - 1] + 1) <= kMostSums) {
      const std::size_t i = --device.first_listed;
      more_sums_.clear();
      for (std::int64_t number = 0; number <= left_[i]; ++number) {
        if (!may_take(i, k, number)) continue;
        const Sum here{items_[i].bytes(number), extra_bytes(i, k, number), number * radix};
        for (const Sum& sum : device.sums) {
          if (sum.bytes > memory_[k] - here.bytes || sum.extra > spare - here.extra) continue;
          more_sums_.push_back(
              {sum.bytes + here.bytes, sum.extra + here.extra, sum.code + here.code});
        }
      }
      std::swap(device.sums, more_sums_);
      radix *= left_[i] + 1;
    }
    std::sort(device.sums.begin(), device.sums.end(), [](const Sum& a, const Sum& b) {
      return std::tie(a.bytes, b.extra, a.code) < std::tie(b.bytes, a.extra, b.code);
    });
    steps_left_ -= static_cast<std::int64_t>(device.sums.size()) / kSumsPerStep;
  }

  /// Goes on with item i on device k, which has `room` bytes left.
  bool choose(std::size_t k, std::size_t i, std::int64_t room, std::int64_t spare) {
    Device& device = devices_[k];
    if (room - device.at_most[i] > spare || --steps_left_ <= 0) return false;
    patient_clock_.check();
    if (i == device.first_listed) return look_up(k, room, spare);
    const Item& item = items_[i];
    const std::int64_t most = most_to_take(k, i, room);
    const auto found_with = [&](std::int64_t number) {
      if (!may_take(i, k, number)) return false;
      const std::int64_t extra = extra_bytes(i, k, number);
      device.taken[i] = number;
      return extra <= spare && choose(k, i + 1, room - item.bytes(number), spare - extra);
    };
    if (item.fixed > 0) {
      // Every cut takes memory: whole or not at all comes first.
      const std::int64_t left = device.left[i];
      if (most == left && left > 0 && found_with(left)) return true;
      if (found_with(0)) return true;
      for (std::int64_t number = std::min(most, left - 1); number > 0 && steps_left_ > 0;
           --number) {
        if (found_with(number)) return true;
      }
      return false;
    }
    // Cuts take none: about as much of each table as of the others leaves the next devices most
    // choice.
    const std::int64_t fair = fair_share(k, i, most);
    for (std::int64_t away = 0; away <= std::max(fair, most - fair) && steps_left_ > 0; ++away) {
      if (fair + away <= most && found_with(fair + away)) return true;
      if (away > 0 && fair >= away && found_with(fair - away)) return true;
    }
    return false;
  }

  [[nodiscard]] std::int64_t most_to_take(std::size_t k, std::size_t i, std::int64_t room) const {
    const Device& device = devices_[k];
    const Item& item = items_[i];
    std::int64_t most =
        room < item.fixed ? 0 : std::min(device.left[i], (room - item.fixed) / item.each);
    // Of items that may be exchanged, the first has most.
    if (i > 0 && device.left[i - 1] == device.left[i] && items_[i - 1].kind() == item.kind()) {
      most = std::min(most, device.taken[i - 1]);
    }
    return most;
  }

  [[nodiscard]] std::int64_t fair_share(std::size_t k, std::size_t i, std::int64_t most) const {
    const Device& device = devices_[k];
    return std::min<std::int64_t>(most,
                                  std::llround(static_cast<double>(device.left[i]) * device.share));
  }

  /// Fills the room with listed sums, the largest first, and goes on with the next device.
  bool look_up(std::size_t k, std::int64_t room, std::int64_t spare) {
    const Device& device = devices_[k];
    auto sum = std::upper_bound(device.sums.begin(), device.sums.end(), room,
                                [](std::int64_t bytes, const Sum& s) { return bytes < s.bytes; });
    while (sum != device.sums.begin() && room - (--sum)->bytes <= spare) {
      if (--steps_left_ <= 0) return false;
      const std::int64_t still_spare = spare - (room - sum->bytes) - sum->extra;
      if (still_spare < 0) continue;
      take(k, sum->code);
      if (k + 1 == memory_.size() || fill(k + 1, still_spare)) return true;
    }
    return false;
  }

  void take(std::size_t k, std::int64_t code) {
    Device& device = devices_[k];
    for (std::size_t i = items_.size(); i-- > device.first_listed;) {
      device.taken[i] = code % (device.left[i] + 1);
      code /= device.left[i] + 1;
    }
    for (std::size_t i = 0; i < items_.size(); ++i) left_[i] = device.left[i] - device.taken[i];
  }

  [[nodiscard]] std::vector<Shard> shards() const {
    std::vector<Shard> result;
    std::vector<std::int64_t> next_column(items_.size(), 0);
    for (std::size_t k = 0; k < memory_.size(); ++k) {
      for (std::size_t i = 0; i < items_.size(); ++i) {
        const std::int64_t columns = devices_[k].taken[i] * items_[i].quantum;
        if (columns == 0) continue;
        result.push_back({items_[i].table, next_column[i], columns, order_[k]});
        next_column[i] += columns;
      }
    }
    return result;
  }

  std::span<const int> order_;
  StopClock clock_;
  PatientClock patient_clock_;
  std::int64_t steps_left_;
  std::vector<std::int64_t> memory_;
  std::vector<Item> items_;         ///< heaviest narrowest pieces first, those of a kind together
  std::vector<std::int64_t> left_;  ///< quanta of each item that no device has yet
  std::vector<std::vector<std::vector<std::int64_t>>> widths_;  ///< by item, see `widths_of`
  std::vector<Device> devices_;
  std::vector<Sum> more_sums_;  ///< scratch
};

/// Of a task whose tables stay with none.
ExactFit fit_ungrouped(const Task& task, const StopClock& clock) {
  const std::vector<std::int64_t>& memory = task.topology.memory_bytes;
  if (memory.size() > kMostDevices || memory.size() * task.tables.size() > kMostPlaces) return {};
  std::vector<int> rising(memory.size());
  std::iota(rising.begin(), rising.end(), 0);
  std::stable_sort(rising.begin(), rising.end(),
                   [&](int a, int b) { return memory[a] < memory[b]; });
  Random random(1);
  std::int64_t steps = kFirstSteps;
  for (int round = 0; round < kRounds; ++round, steps *= kGrowth) {
    std::vector<int> order = rising;
    for (int number = 0; number < 2 + kRandomOrders; ++number) {
      if (number == 1) std::reverse(order.begin(), order.end());
      if (number > 1) random.shuffle(order);
      ExactFit fit = FullDevicesSearch(task, order, steps, clock).run();
      if (fit.answer != FitAnswer::unknown) return fit;
    }
  }
  return {};
}

}  // namespace

ExactFit fit_full_devices(const Task& task, const StopClock& clock) {
  if (!has_groups(task)) return fit_ungrouped(task, clock);
  const BundledTask bundled(task);
  ExactFit fit = fit_ungrouped(bundled.task(), clock);
  fit.shards = bundled.original({std::move(fit.shards), {}}).shards;
  return fit;
}

}  // namespace neuroshard
