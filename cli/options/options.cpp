// Parsing of option values.
#include "cli/options/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "neuroshard/core/error.h"
#include "neuroshard/core/text/suggestion.h"

namespace neuroshard::cli {

namespace {

InputError unexpected(const std::string& option, const std::string& expected,
                      const std::string& text) {
  return {option, expected, "\"" + text + "\""};
}

/// Likewise, with the one of the words that was meant.
InputError unexpected_word(const std::string& option, const std::string& expected,
                           const std::string& text, const std::vector<std::string>& words) {
  return {option, expected, "\"" + text + "\"" + suggestion(text, words)};
}

/// Whether the text is a number in [low, high], in its usual form (no leading zeros or plus sign).
template <typename Integer>
bool is_integer(const std::string& text, Integer low, Integer high) {
  Integer value = 0;
  const char* end = text.data() + text.size();
  const auto [at, status] = std::from_chars(text.data(), end, value);
  return status == std::errc{} && at == end && value >= low && value <= high &&
         fmt::to_string(value) == text;
}

template <typename Integer>
CLI::Validator integer_validator(Integer low, Integer high) {
  const auto refusal = [low, high](const std::string& text) -> std::string {
    if (is_integer(text, low, high)) return {};
    return fmt::format("expected an integer between {} and {}, got \"{}\"", low, high, text);
  };
  return {refusal, ""};
}

/// The number that the whole text is, if it is one; nan is.
std::optional<double> number_in(const std::string& text) {
  double value = 0.0;
  const char* end = text.data() + text.size();
  const auto [at, status] = std::from_chars(text.data(), end, value);
  if (status != std::errc{} || at != end) return std::nullopt;
  return value;
}

}  // namespace

std::pair<int, int> parse_range(const std::string& text, const std::string& option) {
  int low = 0;
  int high = 0;
  const char* end = text.data() + text.size();
  auto [at, status] = std::from_chars(text.data(), end, low);
  high = low;
  if (status == std::errc{} && at != end && *at == ':') {
    const auto second = std::from_chars(at + 1, end, high);
    at = second.ptr;
    status = second.ec;
  }
  if (status != std::errc{} || at != end || low < 1 || high < low) {
    throw unexpected(option, "MIN:MAX with 1 <= MIN <= MAX < 2^31", text);
  }
  return {low, high};
}

std::pair<double, double> parse_shares(const std::string& text, const std::string& option) {
  double low = 0.0;
  const char* end = text.data() + text.size();
  auto [at, status] = std::from_chars(text.data(), end, low);
  double high = low;
  if (status == std::errc{} && at != end && *at == ':') {
    const auto second = std::from_chars(at + 1, end, high);
    at = second.ptr;
    status = second.ec;
  }
  const bool in_range = low > 0.0 && high >= low && high <= 1.0;  // not so for NaN
  if (status != std::errc{} || at != end || !in_range) {
    throw unexpected(option, "MIN:MAX with 0 < MIN <= MAX <= 1", text);
  }
  return {low, high};
}

CLI::Option* add_models_option(CLI::App& command, std::vector<std::string>& models,
                               const std::string& help) {
  return command.add_option("--model", models, help)->allow_extra_args(false);
}

CLI::Validator one_of(std::vector<std::string> words) {
  const std::string list = fmt::format("{}", fmt::join(words, ","));
  const auto refusal = [words = std::move(words), list](const std::string& text) -> std::string {
    if (std::find(words.begin(), words.end(), text) != words.end()) return {};
    return fmt::format("expected one of {}, got \"{}\"{}", list, text, suggestion(text, words));
  };
  return {refusal, "{" + list + "}"};
}

CLI::Validator integer_between(std::int64_t low, std::int64_t high) {
  return integer_validator(low, high);
}

CLI::Validator number_between(double low, double high) {
  const auto refusal = [low, high](const std::string& text) -> std::string {
    const std::optional<double> value = number_in(text);
    if (value && *value >= low && *value <= high) return {};
    return fmt::format("expected a number between {} and {}, got \"{}\"", low, high, text);
  };
  return {refusal, fmt::format("{}..{}", low, high)};
}

CLI::Validator share_below_one() {
  const auto refusal = [](const std::string& text) -> std::string {
    const std::optional<double> value = number_in(text);
    if (value && *value >= 0.0 && *value < 1.0) return {};
    return fmt::format("expected a share from 0 to below 1, got \"{}\"", text);
  };
  return {refusal, "0 to below 1"};
}

CLI::Validator seed() {
  return integer_validator(std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max());
}

namespace {

Cuts parse_cuts(const std::vector<std::string>& names) {
  Cuts cuts{false, false, false};
  if (names.size() == 1 && names.front() == "none") return cuts;
  for (const std::string& name : names) {
    if (name == "none") throw InputError("--cuts", "none alone, or other cuts", "both");
    const auto cut = std::find_if(kCutNames.begin(), kCutNames.end(),
                                  [&](const CutName& known) { return name == known.name; });
    if (cut == kCutNames.end()) {
      std::vector<std::string> words{"none"};
      for (const CutName& known : kCutNames) words.emplace_back(known.name);
      throw unexpected_word("--cuts", "none, or some of columns, rows and replicas", name, words);
    }
    if (cuts.*cut->allowed) {
      throw InputError("--cuts", "each cut once", fmt::format("\"{}\" again", name));
    }
    cuts.*cut->allowed = true;
  }
  return cuts;
}

/// As `parse_cuts` takes it.
std::string cut_names(const Cuts& cuts) {
  std::string names = to_string(cuts);
  std::replace(names.begin(), names.end(), '+', ',');
  return names;
}

}  // namespace

void add_improvement_options(CLI::App& command, PlannerOptions& options, bool has_time_limit) {
  command
      .add_option_function<std::vector<std::string>>(
          "--cuts",
          [&options](const std::vector<std::string>& names) { options.cuts = parse_cuts(names); },
          "Cuts that plans may have: some of columns, rows (slices of rows) and replicas (whole "
          "tables on every device), separated by commas, or none")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->default_str(cut_names(options.cuts));
  command
      .add_option("--steps", options.steps,
                  has_time_limit
                      ? "Steps of each chain of the improvement, whatever time they take; 0: by "
                        "the time limit"
                      : "Steps of each chain of the improvement, whatever time they take")
      ->check(integer_between(has_time_limit ? 0 : 1, 1'000'000'000'000))
      ->capture_default_str();
  command
      .add_option_function<std::string>(
          "--improvement",
          [&options](const std::string& text) {
            const auto schedule = improvement_schedule_from_string(text);
            if (!schedule)
              throw unexpected_word("--improvement", "thorough or brief", text,
                                    {"thorough", "brief"});
            options.improvement = *schedule;
          },
          "thorough: two chains in long rounds; brief: annealing alone in short rounds, "
          "better for fewer than 60000 steps")
      ->default_str(std::string(to_string(options.improvement)));
  command
      .add_option("--pessimism", options.pessimism,
                  "Improve by the mean of the model's networks (0) to the highest (1)")
      ->check(number_between(0.0, 1.0))
      ->capture_default_str();
  command
      .add_option("--least-gain", options.least_gain,
                  "Keep the beam search's plan where the improvement promises less, as a share of "
                  "the computation of its slowest device; rows and copies must promise 2.5 times "
                  "that of columns alone")
      ->check(number_between(0.0, 1.0))
      ->capture_default_str();
}

Optimizer parse_optimizer(const std::string& text, const std::string& option) {
  if (const auto optimizer = optimizer_from_string(text)) return *optimizer;
  throw unexpected_word(option, "sgd or rowwise_adagrad", text, {"sgd", "rowwise_adagrad"});
}

DataType parse_data_type(const std::string& text, const std::string& option) {
  if (const auto type = data_type_from_string(text)) return *type;
  throw unexpected_word(option, "fp32 or fp16", text, {"fp32", "fp16"});
}

}  // namespace neuroshard::cli
