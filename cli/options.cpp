// Parsing of option values.
#include "cli/options.h"

#include <charconv>

#include "neuroshard/core/error.h"

namespace neuroshard::cli {

namespace {

InputError unexpected(const std::string& option, const std::string& expected,
                      const std::string& text) {
  return {option, expected, "\"" + text + "\""};
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
    throw unexpected(option, "MIN:MAX with 1 <= MIN <= MAX", text);
  }
  return {low, high};
}

Optimizer parse_optimizer(const std::string& text, const std::string& option) {
  if (const auto optimizer = optimizer_from_string(text)) return *optimizer;
  throw unexpected(option, "sgd or rowwise_adagrad", text);
}

DataType parse_data_type(const std::string& text, const std::string& option) {
  if (const auto type = data_type_from_string(text)) return *type;
  throw unexpected(option, "fp32 or fp16", text);
}

}  // namespace neuroshard::cli
