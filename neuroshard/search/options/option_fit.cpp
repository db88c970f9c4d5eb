// Any choice of options that fits into memory.
#include "neuroshard/search/options/option_fit.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "neuroshard/core/numbers/byte_sum.h"

namespace neuroshard {

namespace {

constexpr double kNoRoom = std::numeric_limits<double>::infinity();

class FitSearch {
 public:
  FitSearch(const OptionSpace& space, std::int64_t most_work)
      : space_(space),
        work_left_(most_work),
        room_(space.world_size()),
        tables_(space.tables().size()) {
    for (int device = 0; device < space.world_size(); ++device) {
      for (std::size_t k = 0; k < space.num_memories(); ++k) {
        room_[device][k] = space.capacity(k)[device];
        all_room_[k] += std::max<std::int64_t>(room_[device][k], 0);
      }
    }
    order_options();
    order_tables();
  }

  OptionFit run() {
    if (order_.empty()) return {OptionAssignment(space_), true};
    steps_.push_back({0, kOption, -1});
    while (!steps_.empty() && work_left_ > 0) {
      Step& step = steps_.back();
      if (step.value >= 0) take_back(step);
      if (!advance(step)) {
        steps_.pop_back();
        continue;
      }
      apply(step);
      if (go_on(step)) return {placed(), true};
    }
    return {std::nullopt, steps_.empty()};
  }

 private:
  /// One decision: which option a table has, or where one part of it lies.
  struct Step {
    std::size_t position = 0;  ///< of the table in the order
    int part = 0;              ///< kOption: the option
    int value = -1;            ///< what is tried: index into the table's order of options, or place
  };
  static constexpr int kOption = -1;

  struct TableState {
    std::vector<int> options{};  ///< the smallest first
    int option = 0;
    Places places{};
  };

  [[nodiscard]] double share(const BytesByKind& bytes) const {
    double largest = 0.0;
    for (std::size_t k = 0; k < space_.num_memories(); ++k) {
      const double all = std::max(1.0, static_cast<double>(all_room_[k]));
      largest = std::max(largest, static_cast<double>(bytes[k]) / all);
    }
    return largest;
  }

  void order_options() {
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      const auto& options = space_.tables()[t];
      std::vector<int>& order = tables_[t].options;
      order.resize(options.size());
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order, {}, [&](int o) { return share(options[o].sum.bytes); });
    }
  }

  void order_tables() {
    order_.resize(tables_.size());
    std::iota(order_.begin(), order_.end(), 0);
    const auto least = [&](int t) {
      return share(space_.tables()[t][tables_[t].options.front()].sum.bytes);
    };
    std::ranges::stable_sort(order_, std::ranges::greater(), least);
    least_after_.resize(order_.size() + 1);
    for (std::size_t i = order_.size(); i-- > 0;) {
      least_after_[i] = least_after_[i + 1];
      for (std::size_t k = 0; k < space_.num_memories(); ++k) {
        std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
        for (const ScaledOption& option : space_.tables()[order_[i]]) {
          smallest = std::min(smallest, option.sum.bytes[k]);
        }
        least_after_[i][k] += smallest;
      }
    }
  }

  TableState& table_of(const Step& step) { return tables_[order_[step.position]]; }
  const ScaledOption& option_of(const Step& step) {
    return space_.tables()[order_[step.position]][table_of(step).option];
  }

  /// Takes what a shard has of a device, or gives it back.
  void add(const ScaledShard& shard, int device, int sign) {
    for (std::size_t k = 0; k < space_.num_memories(); ++k) {
      room_[device][k] -= sign * shard.bytes[k];
      all_room_[k] -= sign * shard.bytes[k];
    }
  }

  void add_part(const ScaledOption& option, int part, int place, int sign) {
    if (option.placement != ShardPlacement::whole_hosts) {
      add(option.shards[part], place, sign);
      return;
    }
    const int local = space_.local_world_size();
    for (int i = 0; i < local; ++i) add(option.shards[part * local + i], place * local + i, sign);
  }

  void add_everywhere(const ScaledOption& option, int sign) {
    for (int device = 0; device < space_.world_size(); ++device)
      add(option.shards[device], device, sign);
  }

  void apply(const Step& step) {
    if (step.part == kOption) {
      if (option_of(step).placement == ShardPlacement::all_devices)
        add_everywhere(option_of(step), 1);
      return;
    }
    table_of(step).places[step.part] = step.value;
    add_part(option_of(step), step.part, step.value, 1);
  }

  void take_back(const Step& step) {
    if (step.part != kOption) {
      add_part(option_of(step), step.part, step.value, -1);
    } else if (option_of(step).placement == ShardPlacement::all_devices) {
      add_everywhere(option_of(step), -1);
    }
  }

  [[nodiscard]] bool has_room(const ScaledShard& shard, int device) const {
    for (std::size_t k = 0; k < space_.num_memories(); ++k) {
      if (shard.bytes[k] > room_[device][k]) return false;
    }
    return true;
  }

  /// Room left on a device with one more shard, as a share of its memory; infinite: too little.
  [[nodiscard]] double room_after(const ScaledShard& shard, int device) const {
    if (!has_room(shard, device)) return kNoRoom;
    double left = 0.0;
    for (std::size_t k = 0; k < space_.num_memories(); ++k) {
      left += static_cast<double>(room_[device][k] - shard.bytes[k]) /
              static_cast<double>(std::max<std::int64_t>(1, space_.capacity(k)[device]));
    }
    return left;
  }

  /// Likewise of a part's device or host; infinite also where the placement does not permit it.
  double rated(const Step& step, int place) {
    const ScaledOption& option = option_of(step);
    const Places& places = table_of(step).places;
    const auto first = places.begin();
    const int local = space_.local_world_size();
    const bool is_taken = std::find(first, first + step.part, place) != first + step.part;
    switch (option.placement) {
      case ShardPlacement::distinct_devices:
        if (is_taken) return kNoRoom;
        break;
      case ShardPlacement::devices_of_one_host:
        if (step.part > 0 && place / local != places.front() / local) return kNoRoom;
        break;
      case ShardPlacement::whole_hosts: {
        // Every host has a group while there are hosts without one.
        const std::set<int> used(first, first + step.part);
        const int all = std::min<int>(static_cast<int>(places.size()), space_.num_hosts());
        const int later = static_cast<int>(places.size()) - step.part - 1;
        const int with_it = static_cast<int>(used.size()) + (is_taken ? 0 : 1);
        if (with_it + later < all) return kNoRoom;
        double left = 0.0;
        for (int i = 0; i < local; ++i)
          left += room_after(option.shards[step.part * local + i], place * local + i);
        return left;
      }
      default:
        break;
    }
    return room_after(option.shards[step.part], place);
  }

  /// The next value of a step whose own effect is taken back; false: there is none.
  bool advance(Step& step) {
    TableState& table = table_of(step);
    if (step.part == kOption) {
      while (++step.value < static_cast<int>(table.options.size())) {
        --work_left_;
        table.option = table.options[step.value];
        const ScaledOption& option = option_of(step);
        table.places.assign(num_places(space_, option), 0);
        if (option.placement != ShardPlacement::all_devices) return true;
        work_left_ -= space_.world_size();
        bool fits = true;
        for (int device = 0; device < space_.world_size() && fits; ++device)
          fits = has_room(option.shards[device], device);
        if (fits) return true;
      }
      return false;
    }
    const bool is_group = option_of(step).placement == ShardPlacement::whole_hosts;
    const int count = is_group ? space_.num_hosts() : space_.world_size();
    work_left_ -= space_.world_size();
    const std::pair before(step.value < 0 ? -1.0 : rated(step, step.value), step.value);
    std::pair next(kNoRoom, -1);
    for (int place = 0; place < count; ++place) {
      const std::pair tried(rated(step, place), place);
      if (tried > before && tried < next) next = tried;
    }
    step.value = next.second;
    return step.value >= 0;
  }

  /// What is left to decide after a step; true: nothing.
  bool go_on(const Step& step) {
    const std::size_t position = step.position;
    const int part = step.part + 1;
    if (part < static_cast<int>(table_of(step).places.size())) {
      steps_.push_back({position, part, -1});
      return false;
    }
    if (position + 1 == order_.size()) return true;
    for (std::size_t k = 0; k < space_.num_memories(); ++k) {
      if (least_after_[position + 1][k] > all_room_[k]) return false;
    }
    steps_.push_back({position + 1, kOption, -1});
    return false;
  }

  [[nodiscard]] OptionAssignment placed() const {
    OptionAssignment assignment(space_);
    for (std::size_t t = 0; t < tables_.size(); ++t)
      assignment.place(static_cast<int>(t), tables_[t].option, tables_[t].places);
    assignment.clear_touched();
    return assignment;
  }

  const OptionSpace& space_;
  std::int64_t work_left_;
  std::vector<std::array<std::int64_t, kMaxMemoryKinds>> room_;
  std::array<WideBytes, kMaxMemoryKinds> all_room_{};
  std::vector<TableState> tables_;
  std::vector<int> order_;
  /// What the tables from a position on take at least.
  std::vector<std::array<WideBytes, kMaxMemoryKinds>> least_after_;
  std::vector<Step> steps_;
};

}  // namespace

OptionFit find_option_fit(const OptionSpace& space, std::int64_t most_work) {
  return FitSearch(space, most_work).run();
}

}  // namespace neuroshard
