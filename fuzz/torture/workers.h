// Processes that try inputs, watched: one that dies or does not come back is told by its input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fuzz/torture/readers.h"

namespace neuroshard::fuzz {

struct TortureOptions {
  std::uint64_t seed = 1;
  std::uint64_t first = 0;  ///< number of the first input
  std::uint64_t runs = 0;   ///< inputs
  int processes = 1;
  std::string executable{};  ///< `neuroshard`
};

struct Failure {
  std::uint64_t number = 0;  ///< of the input
  std::string reason{};
};

struct TortureResult {
  std::uint64_t tries = 0;
  std::uint64_t read = 0;             ///< accepted, those taken further included
  std::uint64_t used = 0;             ///< taken further
  std::uint64_t failures = 0;         ///< inputs for which the promise was not kept
  std::vector<Failure> first_ones{};  ///< in no order
};

/// An input that takes longer is a failure [s].
inline constexpr int kMostSecondsPerInput = 10;
/// No more failures than these are kept.
inline constexpr std::size_t kMostFailuresTold = 10;

/// Tries inputs `first` to `first` + `runs` - 1. After 1,000 failures the rest is left out.
[[nodiscard]] TortureResult torture(const Reader& reader, const TortureOptions& options);

}  // namespace neuroshard::fuzz
