// Sizes and times: their limits, and as people write them ("80GiB", "500ms"), read and printed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace neuroshard {

/// Times of files and of predictions are 0 or within these limits [ms], so that what is computed of
/// them (sums, ratios, and training in fp32) stays a number.
inline constexpr double kLeastTimeMs = 1e-30;
inline constexpr double kMostTimeMs = 1e30;

/// Whether it is such a time; NaN is none.
[[nodiscard]] constexpr bool is_time(double ms) {
  return ms == 0.0 || (ms >= kLeastTimeMs && ms <= kMostTimeMs);
}

/// "4096", "4KiB", "16GiB", "1.5TiB", "80GB" -> bytes. Throws InputError naming `place`.
[[nodiscard]] std::int64_t parse_bytes(std::string_view text, const std::string& place);

/// "500ms", "10s", "2min" -> seconds; a unit is required. Throws InputError naming `place`.
[[nodiscard]] double parse_seconds(std::string_view text, const std::string& place);

/// "1.50 GiB", "512 B".
[[nodiscard]] std::string format_bytes(double bytes);

/// "1.23 s", "4.5 ms", "3 min 20 s".
[[nodiscard]] std::string format_seconds(double seconds);

/// In as few digits as say it exactly: "10 ms", "1.5 s", "90 s".
[[nodiscard]] std::string short_seconds(double seconds);

/// "1 task", "2 tasks": for nouns whose plural has an s.
[[nodiscard]] std::string format_count(std::int64_t count, std::string_view noun);

}  // namespace neuroshard
