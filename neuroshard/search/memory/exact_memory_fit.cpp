// Depth-first search over columns of tables on devices.
#include "neuroshard/search/memory/exact_memory_fit.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "neuroshard/core/numbers/byte_sum.h"
#include "neuroshard/core/table_pins.h"
#include "neuroshard/search/groups/bundled_task.h"

namespace neuroshard {

namespace {

class DepthFirstSearch {
 public:
  DepthFirstSearch(const Task& task, std::int64_t max_nodes, const StopClock& clock)
      : task_(task),
        clock_(clock),
        pins_(task),
        nodes_left_(max_nodes),
        free_(task.topology.memory_bytes) {
    for (std::size_t t = 0; t < task.tables.size(); ++t) items_.push_back(item_of(t));
    std::stable_sort(items_.begin(), items_.end(), [&](const Item& a, const Item& b) {
      return bytes(a, a.least) > bytes(b, b.least);
    });
    // Least memory that the tables from the i-th on need.
    needed_.resize(items_.size() + 1, 0);
    for (std::size_t i = items_.size(); i-- > 0;) {
      needed_[i] = needed_[i + 1] + bytes(items_[i], items_[i].quanta);
    }
    for (const std::int64_t room : free_) free_sum_ += room;
    if (pins_.restricts_devices()) find_kinds();
  }

  ExactFit run() {
    if (place_all()) return {FitAnswer::fits, shards()};
    return {nodes_left_ > 0 ? FitAnswer::does_not_fit : FitAnswer::unknown, {}};
  }

 private:
  /// A table in quanta: the number of columns that its cuts are multiples of.
  struct Item {
    std::size_t table;
    std::int64_t quantum;  ///< columns
    std::int64_t quanta;
    std::int64_t least;            ///< of a piece
    std::span<const int> devices;  ///< on which it may lie; empty: all
    [[nodiscard]] std::size_t device(std::size_t rank) const {
      return devices.empty() ? rank : static_cast<std::size_t>(devices[rank]);
    }
  };
  /// How many quanta of an item a device gets: the most first.
  struct Decision {
    std::size_t item;
    std::size_t rank;  ///< of the device among the item's
    std::size_t device;
    std::int64_t left;    ///< quanta that this device and those after it divide
    std::int64_t fewest;  ///< to try: the devices after it have room for no more than the rest
    std::int64_t next;    ///< to try
    std::int64_t quanta;  ///< that it has now
  };
  enum class Step { done, dead_end, decision };

  [[nodiscard]] Item item_of(std::size_t number) const {
    const Table& table = task_.tables[number];
    const std::span<const int> devices = pins_.devices_of(static_cast<int>(number));
    if (!can_cut(table, table.embedding_dim)) return {number, table.embedding_dim, 1, 1, devices};
    return {number, kColumnGranularity, table.embedding_dim / kColumnGranularity,
            narrowest_cut(table) / kColumnGranularity, devices};
  }

  /// Devices on which the same tables may lie are of one kind.
  void find_kinds() {
    std::vector<std::vector<std::size_t>> tables(free_.size());
    for (const Item& item : items_) {
      for (const int device : item.devices) tables[device].push_back(item.table);
    }
    std::map<std::vector<std::size_t>, int> numbers;
    for (const auto& of_device : tables) {
      kinds_.push_back(numbers.emplace(of_device, static_cast<int>(numbers.size())).first->second);
    }
  }
  /// Whether they may be exchanged in every plan, if they have equal room.
  [[nodiscard]] bool of_one_kind(std::size_t one, std::size_t other) const {
    return kinds_.empty() || kinds_[one] == kinds_[other];
  }

  [[nodiscard]] std::int64_t bytes(const Item& item, std::int64_t quanta) const {
    return quanta == 0
               ? 0
               : shard_bytes(task_.tables[item.table], quanta * item.quantum, task_.optimizer);
  }

  /// The most quanta, at most `limit`, that fit into `bytes` bytes.
  [[nodiscard]] std::int64_t most(const Item& item, std::int64_t limit, std::int64_t room) const {
    const std::int64_t fixed = shard_bytes(task_.tables[item.table], 0, task_.optimizer);
    const std::int64_t each = bytes(item, 1) - fixed;
    if (room < fixed) return 0;
    const std::int64_t quanta = std::min(limit, (room - fixed) / each);
    return quanta < item.least ? 0 : quanta;
  }

  /// The decisions are a stack of our own: there may be one for every table and device, too many
  /// for calls.
  bool place_all() {
    if (needed_[0] > free_sum_) return false;
    Step step = open(0, 0, items_[0].quanta);
    while (step != Step::done) {
      if (nodes_left_ <= 0 || decisions_.empty()) return false;
      clock_.check();
      step = try_next();
    }
    return true;
  }

  /// Tries the last decision's next way; takes the decision back if there is none.
  Step try_next() {
    Decision& decision = decisions_.back();
    const Item& item = items_[decision.item];
    change_room(decision.device, bytes(item, decision.quanta));
    if (decision.next > 0 && decision.next < item.least) decision.next = 0;
    if (decision.next < decision.fewest) {
      decisions_.pop_back();
      return Step::dead_end;
    }
    decision.quanta = decision.next--;
    change_room(decision.device, -bytes(item, decision.quanta));
    return open(decision.item, decision.rank + 1, decision.left - decision.quanta);
  }

  void change_room(std::size_t device, std::int64_t change) {
    free_[device] += change;
    free_sum_ += change;
  }

  /// Goes on with `left` quanta of an item for its devices from this rank on, or with the item
  /// after it.
  Step open(std::size_t i, std::size_t rank, std::int64_t left) {
    if (left == 0) {
      if (++i == items_.size()) return Step::done;
      if (needed_[i] > free_sum_) return Step::dead_end;
      rank = 0;
      left = items_[i].quanta;
    }
    const Item& item = items_[i];
    const std::size_t num_devices = item.devices.empty() ? free_.size() : item.devices.size();
    if (rank == num_devices || --nodes_left_ <= 0) return Step::dead_end;
    const std::size_t device = item.device(rank);
    std::int64_t elsewhere = 0;
    for (std::size_t r = rank + 1; r < num_devices && elsewhere < left; ++r) {
      elsewhere += most(item, left, free_[item.device(r)]);
    }
    std::int64_t quanta = most(item, left, free_[device]);
    if (rank > 0) {
      // A device that had as much room as the one before it gets no more than that one.
      const Decision& last = decisions_.back();
      if (of_one_kind(device, last.device) &&
          free_[device] == free_[last.device] + bytes(item, last.quanta)) {
        quanta = std::min(quanta, last.quanta);
      }
    }
    const std::int64_t fewest = std::max<std::int64_t>(left - elsewhere, 0);
    decisions_.push_back({i, rank, device, left, fewest, quanta, 0});
    return Step::decision;
  }

  [[nodiscard]] std::vector<Shard> shards() const {
    std::vector<Shard> result;
    std::vector<std::int64_t> next_column(task_.tables.size(), 0);
    for (const Decision& decision : decisions_) {
      if (decision.quanta == 0) continue;
      const Item& item = items_[decision.item];
      const std::int64_t columns = decision.quanta * item.quantum;
      std::int64_t& offset = next_column[item.table];
      result.push_back(
          {static_cast<int>(item.table), offset, columns, static_cast<int>(decision.device)});
      offset += columns;
    }
    return result;
  }

  const Task& task_;
  PatientClock clock_;
  TablePins pins_;
  std::int64_t nodes_left_;
  std::vector<std::int64_t> free_;
  WideBytes free_sum_ = 0;
  std::vector<Item> items_;
  std::vector<WideBytes> needed_;
  std::vector<int> kinds_;  ///< of the devices; empty: one
  std::vector<Decision> decisions_;
};

}  // namespace

ExactFit fit_exactly(const Task& task, std::int64_t max_nodes, const StopClock& clock) {
  if (!has_groups(task)) return DepthFirstSearch(task, max_nodes, clock).run();
  const BundledTask bundled(task);
  ExactFit fit = DepthFirstSearch(bundled.task(), max_nodes, clock).run();
  fit.shards = bundled.original({std::move(fit.shards), {}}).shards;
  return fit;
}

}  // namespace neuroshard
