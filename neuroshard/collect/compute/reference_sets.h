// The standard reference sets: always the same ones, whatever is measured, so that their times tell
// how fast the machine was meanwhile.
#pragma once

#include <string>
#include <vector>

#include "neuroshard/collect/compute/compute_backend.h"
#include "neuroshard/core/table.h"
#include "neuroshard/io/json/json.h"

namespace neuroshard {

/// Sets of pieces with their tables, which the sets refer to.
struct ReferenceSets {
  std::string name;  ///< by which files tell which sets their `reference_ms` are of
  std::vector<Table> tables;
  std::vector<PieceSet> sets;

  ReferenceSets() = default;
  ReferenceSets(ReferenceSets&&) = default;  // the tables stay where they are
  ReferenceSets& operator=(ReferenceSets&&) = default;
  ReferenceSets(const ReferenceSets&) = delete;
  ReferenceSets& operator=(const ReferenceSets&) = delete;
  ~ReferenceSets() = default;
};

/// Sixteen sets that take a few milliseconds each on a CPU: eight kinds of work, from rows that
/// stay in the caches to ones that never do, from one wide table to thirty, each with SGD and with
/// row-wise Adagrad, all of one data type. Their times depend on the operator that measures them
/// (BackendDescription::operator_info), on where they lie and on the quantile too, so that the name
/// says the operator's, if it is not this project's own on CPUs, its "arena_bytes" and "quantile",
/// where it has them, and a data type other than fp32.
[[nodiscard]] ReferenceSets make_reference_sets(const Json& operator_info,
                                                DataType data_type = DataType::fp32);

}  // namespace neuroshard
