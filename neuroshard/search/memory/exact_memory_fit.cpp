// Depth-first search over columns of tables on devices.
#include "neuroshard/search/memory/exact_memory_fit.h"

#include <algorithm>
#include <numeric>

namespace neuroshard {

namespace {

class Search {
 public:
  Search(const Task& task, std::int64_t max_nodes)
      : task_(task), nodes_left_(max_nodes), free_(task.topology.memory_bytes) {
    for (std::size_t t = 0; t < task.tables.size(); ++t) items_.push_back(item_of(t));
    std::stable_sort(items_.begin(), items_.end(), [&](const Item& a, const Item& b) {
      return bytes(a, a.least) > bytes(b, b.least);
    });
    // Least memory that the tables from the i-th on need.
    needed_.resize(items_.size() + 1, 0);
    for (std::size_t i = items_.size(); i-- > 0;) {
      needed_[i] = needed_[i + 1] + bytes(items_[i], items_[i].quanta);
    }
    free_sum_ = std::accumulate(free_.begin(), free_.end(), std::int64_t{0});
  }

  ExactFit run() {
    if (place(0)) return {FitAnswer::fits, shards()};
    return {nodes_left_ > 0 ? FitAnswer::does_not_fit : FitAnswer::unknown, {}};
  }

 private:
  /// A table in quanta: the number of columns that its cuts are multiples of.
  struct Item {
    std::size_t table;
    std::int64_t quantum;  ///< columns
    std::int64_t quanta;
    std::int64_t least;  ///< of a piece
  };
  struct Choice {
    std::size_t item;
    std::size_t device;
    std::int64_t quanta;
  };

  [[nodiscard]] Item item_of(std::size_t number) const {
    const Table& table = task_.tables[number];
    if (!can_cut(table, table.embedding_dim)) return {number, table.embedding_dim, 1, 1};
    return {number, kColumnGranularity, table.embedding_dim / kColumnGranularity,
            narrowest_cut(table) / kColumnGranularity};
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

  /// Places the tables from the i-th on.
  bool place(std::size_t i) {
    if (i == items_.size()) return true;
    if (needed_[i] > free_sum_) return false;
    const std::vector<std::int64_t> before = free_;
    return divide(i, 0, items_[i].quanta, before);
  }

  /// Divides what is left of a table among the devices from this one on. `before` is the room on
  /// each before the table: of devices that had the same room, none gets more than the one before
  /// it.
  bool divide(std::size_t i, std::size_t device, std::int64_t left,
              const std::vector<std::int64_t>& before) {
    if (left == 0) return place(i + 1);
    if (device == free_.size() || --nodes_left_ <= 0) return false;
    const Item& item = items_[i];
    std::int64_t elsewhere = 0;
    for (std::size_t d = device + 1; d < free_.size() && elsewhere < left; ++d) {
      elsewhere += most(item, left, free_[d]);
    }
    std::int64_t quanta = most(item, left, free_[device]);
    if (device > 0 && before[device] == before[device - 1]) {
      const bool is_last =
          !choices_.empty() && choices_.back().item == i && choices_.back().device == device - 1;
      quanta = std::min(quanta, is_last ? choices_.back().quanta : 0);
    }
    for (; quanta >= std::max<std::int64_t>(left - elsewhere, 0); --quanta) {
      if (quanta > 0 && quanta < item.least) quanta = 0;
      if (quanta < left - elsewhere) return false;
      if (put(i, device, quanta, left, before)) return true;
      if (nodes_left_ <= 0) return false;
    }
    return false;
  }

  bool put(std::size_t i, std::size_t device, std::int64_t quanta, std::int64_t left,
           const std::vector<std::int64_t>& before) {
    if (quanta == 0) return divide(i, device + 1, left, before);
    const std::int64_t taken = bytes(items_[i], quanta);
    free_[device] -= taken;
    free_sum_ -= taken;
    choices_.push_back({i, device, quanta});
    if (divide(i, device + 1, left - quanta, before)) return true;
    choices_.pop_back();
    free_[device] += taken;
    free_sum_ += taken;
    return false;
  }

  [[nodiscard]] std::vector<Shard> shards() const {
    std::vector<Shard> result;
    std::vector<std::int64_t> next_column(task_.tables.size(), 0);
    for (const Choice& choice : choices_) {
      const Item& item = items_[choice.item];
      const std::int64_t columns = choice.quanta * item.quantum;
      std::int64_t& offset = next_column[item.table];
      result.push_back(
          {static_cast<int>(item.table), offset, columns, static_cast<int>(choice.device)});
      offset += columns;
    }
    return result;
  }

  const Task& task_;
  std::int64_t nodes_left_;
  std::vector<std::int64_t> free_;
  std::int64_t free_sum_ = 0;
  std::vector<Item> items_;
  std::vector<std::int64_t> needed_;
  std::vector<Choice> choices_;
};

}  // namespace

ExactFit fit_exactly(const Task& task, std::int64_t max_nodes) {
  return Search(task, max_nodes).run();
}

}  // namespace neuroshard
