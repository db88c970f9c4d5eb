// Sizes and times as people write them.
#include "neuroshard/core/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "neuroshard/core/error.h"

namespace neuroshard {

namespace {

template <std::size_t N>
using UnitTable = std::array<std::pair<std::string_view, double>, N>;

constexpr UnitTable<13> kByteUnits{{{"", 1.0},
                                    {"B", 1.0},
                                    {"KiB", 0x1p10},
                                    {"MiB", 0x1p20},
                                    {"GiB", 0x1p30},
                                    {"TiB", 0x1p40},
                                    {"PiB", 0x1p50},
                                    {"kB", 1e3},
                                    {"KB", 1e3},
                                    {"MB", 1e6},
                                    {"GB", 1e9},
                                    {"TB", 1e12},
                                    {"PB", 1e15}}};

constexpr UnitTable<4> kTimeUnits{{{"ms", 1e-3}, {"s", 1.0}, {"min", 60.0}, {"h", 3600.0}}};

/// The number times its unit; InputError unless the whole text is a finite number and a known unit.
template <std::size_t N>
double parse_quantity(std::string_view text, const UnitTable<N>& units, const std::string& place,
                      const std::string& expected) {
  double number = 0.0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status == std::errc{} && std::isfinite(number)) {
    const std::string_view unit = text.substr(end - text.data());
    for (const auto& [name, factor] : units) {
      if (unit == name) return number * factor;
    }
  }
  throw InputError(place, expected, fmt::format("\"{}\"", text));
}

}  // namespace

std::int64_t parse_bytes(std::string_view text, const std::string& place) {
  const std::string expected = "a size such as 80GiB, at least 1 byte, at most 1024PiB";
  const double bytes = parse_quantity(text, kByteUnits, place, expected);
  if (!(bytes >= 1.0 && bytes <= 0x1p60)) {
    throw InputError(place, expected, fmt::format("\"{}\"", text));
  }
  return static_cast<std::int64_t>(std::llround(bytes));
}

double parse_seconds(std::string_view text, const std::string& place) {
  const std::string expected = "a time above 0 such as 500ms or 10s";
  const double seconds = parse_quantity(text, kTimeUnits, place, expected);
  if (!(seconds > 0.0 && std::isfinite(seconds)))
    throw InputError(place, expected, fmt::format("\"{}\"", text));
  return seconds;
}

std::string format_bytes(double bytes) {
  constexpr std::array<std::string_view, 6> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (std::abs(bytes) >= 1024.0 && unit + 1 < kUnits.size()) {
    bytes /= 1024.0;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.2f} {}", bytes, kUnits[unit]);
}

std::string format_seconds(double seconds) {
  if (seconds < 1.0) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 60.0) return fmt::format("{:.2f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string short_seconds(double seconds) {
  if (seconds >= 1.0) return fmt::format("{} s", seconds);
  // Of six digits: 0.003 * 1e3 is not 3 in binary.
  return fmt::format("{:g} ms", seconds * 1e3);
}

std::string format_count(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace neuroshard
