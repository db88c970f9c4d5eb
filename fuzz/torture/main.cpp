// The executable `torture`: tries generated inputs on every reader, and says which break a promise.
//   torture [--reader NAME] [--runs N] [--seed S] [--first N] [--processes N] [--show]
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "fuzz/promise.h"
#include "fuzz/torture/readers.h"
#include "fuzz/torture/workers.h"
#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/core/text/printable.h"

namespace neuroshard::fuzz {
namespace {

/// Of the runs, for readers whose inputs take some hundred times as long.
constexpr std::uint64_t kSlowShare = 100;

struct Arguments {
  TortureOptions options{};
  std::string reader{};  ///< empty: all
  bool show = false;
};

std::uint64_t number_of(std::string_view text, std::string_view option) {
  std::uint64_t value = 0;
  const auto [at, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || at != text.data() + text.size()) {
    throw InputError(std::string(option), "a number", printable(text));
  }
  return value;
}

Arguments arguments_of(int argc, char** argv) {
  Arguments arguments;
  arguments.options.runs = 10'000;
  arguments.options.processes = available_cores();
  arguments.options.executable = NEUROSHARD_EXECUTABLE;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--show") {
      arguments.show = true;
      continue;
    }
    if (i + 1 == argc) throw InputError(std::string(option), "a value", "none");
    const std::string_view value = argv[++i];
    if (option == "--reader") {
      arguments.reader = value;
    } else if (option == "--runs") {
      arguments.options.runs = number_of(value, option);
    } else if (option == "--seed") {
      arguments.options.seed = number_of(value, option);
    } else if (option == "--first") {
      arguments.options.first = number_of(value, option);
    } else if (option == "--processes") {
      arguments.options.processes = static_cast<int>(number_of(value, option));
    } else {
      throw InputError("torture", "--reader, --runs, --seed, --first, --processes or --show",
                       printable(option));
    }
  }
  if (!arguments.reader.empty() && find_reader(arguments.reader) == nullptr) {
    std::string names;
    for (const Reader& reader : readers()) names += fmt::format(" {}", reader.name);
    throw InputError("--reader", fmt::format("one of{}", names), printable(arguments.reader));
  }
  if (arguments.options.processes < 1) throw InputError("--processes", "at least 1", "less");
  if (arguments.show && arguments.reader.empty()) throw InputError("--show needs --reader");
  return arguments;
}

/// A line of the result, and for each failure how to repeat it. Returns whether there was none.
bool try_reader(const Reader& reader, const Arguments& arguments) {
  TortureOptions options = arguments.options;
  // A reader that is asked for by name has as many runs as are asked for.
  if (reader.is_slow && arguments.reader.empty()) {
    options.runs = std::max<std::uint64_t>(options.runs / kSlowShare, 1);
  }
  const auto begin = std::chrono::steady_clock::now();
  const TortureResult result = torture(reader, options);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  fmt::print("{}: {} tries, {} failures; {} read, {} taken further, {:.0f} s\n", reader.name,
             result.tries, result.failures, result.read, result.used, seconds.count());
  for (const Failure& failure : result.first_ones) {
    fmt::print("  {}\n    again: torture --reader {} --seed {} --first {} --runs 1\n",
               printable(failure.reason), reader.name, options.seed, failure.number);
  }
  (void)std::fflush(stdout);
  return result.failures == 0;
}

int run(int argc, char** argv) {
  const Arguments arguments = arguments_of(argc, argv);
  if (arguments.show) {
    const std::string bytes =
        input_of(*find_reader(arguments.reader), arguments.options.seed, arguments.options.first);
    (void)std::fwrite(bytes.data(), 1, bytes.size(), stdout);
    return 0;
  }
  bool is_kept = true;
  for (const Reader& reader : readers()) {
    if (!arguments.reader.empty() && reader.name != arguments.reader) continue;
    is_kept = try_reader(reader, arguments) && is_kept;
  }
  return is_kept ? 0 : 1;
}

}  // namespace
}  // namespace neuroshard::fuzz

int main(int argc, char** argv) {
  try {
    return neuroshard::fuzz::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "torture: {}\n", neuroshard::printable(error.what()));
    return 2;
  }
}
