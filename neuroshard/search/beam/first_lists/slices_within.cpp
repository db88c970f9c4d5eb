// Numbers of slices tried upwards from those of equal rows.
#include "neuroshard/search/beam/first_lists/slices_within.h"

#include <algorithm>

#include "neuroshard/core/piece.h"
#include "neuroshard/search/slices/row_slices.h"

namespace neuroshard {

namespace {

/// Numbers of slices that are tried one by one before what is left of them is halved.
constexpr int kTriedOneByOne = 32;

/// The most slices that a table's rows may be cut into (can_slice).
int most_slices(const Task& task, const Table& table) {
  if (!can_slice(task, table, 2)) return 1;
  const std::int64_t least_rows = std::max<std::int64_t>(table.min_shard_rows, 1);
  return static_cast<int>(
      std::min<std::int64_t>(task.topology.world_size, table.num_embeddings / least_rows));
}

/// With fewer slices of the table's rows, as far as there may be that many, one is larger than
/// `most_bytes`: the longest has no fewer rows than the mean.
int slices_at_least(const Task& task, const Table& table, std::int64_t most_bytes) {
  const int most = most_slices(task, table);
  const std::int64_t rows = rows_within(most_bytes, table, table.embedding_dim, task.optimizer);
  if (most == 1 || rows == 0) return most;
  return static_cast<int>(std::min<std::int64_t>((table.num_embeddings - 1) / rows + 1, most));
}

int slices_within(const Simulator& simulator, int number, std::int64_t most_bytes,
                  const StopClock& clock) {
  const Task& task = simulator.task();
  const Table& table = task.tables[number];
  const auto are_small = [&](int count) {
    clock.check();  // each takes as long as there are slices
    const std::vector<std::int64_t> ends = simulator.slice_ends(number, count);
    std::int64_t most_rows = 0;
    for (int i = 0; i < count; ++i) most_rows = std::max(most_rows, ends[i + 1] - ends[i]);
    return shard_bytes(table, table.embedding_dim, task.optimizer, most_rows) <= most_bytes;
  };
  int count = slices_at_least(task, table, most_bytes);
  int most = most_slices(task, table);
  for (int tried = 0; tried < kTriedOneByOne; ++tried) {
    if (count >= most || are_small(count)) return count;
    ++count;
  }
  // As a rule, more slices are smaller ones.
  while (count < most) {
    const int middle = count + (most - count) / 2;
    if (are_small(middle)) {
      most = middle;
    } else {
      count = middle + 1;
    }
  }
  return count;
}

}  // namespace

std::vector<int> slices_within(const Simulator& simulator, std::int64_t most_bytes,
                               const StopClock& clock) {
  std::vector<int> slices;
  PatientClock patient(clock);
  for (std::size_t table = 0; table < simulator.task().tables.size(); ++table) {
    patient.check();
    slices.push_back(slices_within(simulator, static_cast<int>(table), most_bytes, clock));
  }
  return slices;
}

}  // namespace neuroshard
