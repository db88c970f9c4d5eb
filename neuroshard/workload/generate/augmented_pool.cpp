// Tables times dimensions.
#include "neuroshard/workload/generate/augmented_pool.h"

#include <fmt/format.h>

namespace neuroshard {

std::vector<Table> augmented_pool(std::span<const Workload> workloads) {
  std::vector<Table> pool;
  for (const Workload& workload : workloads) {
    for (const Table& table : workload.tables) {
      for (const std::int64_t dim : kPoolDims) {
        Table& piece = pool.emplace_back(table);
        piece.name = fmt::format("{}/{}/d{}", workload.name, table.name, dim);
        piece.embedding_dim = dim;
      }
    }
  }
  return pool;
}

}  // namespace neuroshard
