// What tests of TorchRec's options read from them.
#pragma once

#include <cstdint>
#include <vector>

#include "neuroshard/baselines/torchrec/enumeration.h"

namespace neuroshard::torchrec {

/// Each shard's rows.
inline std::vector<std::int64_t> rows_of(const ShardingOption& option, const Table& table) {
  std::vector<std::int64_t> rows;
  for (int i = 0; i < option.num_shards; ++i) rows.push_back(option.range(table, i).num_rows);
  return rows;
}

}  // namespace neuroshard::torchrec
