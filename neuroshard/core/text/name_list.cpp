// Names in a message.
#include "neuroshard/core/text/name_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace neuroshard {

std::string name_list(std::span<const std::string> names, std::size_t most) {
  const std::size_t named = std::min(names.size(), most);
  std::string text = fmt::format("{}", fmt::join(names.first(named), ", "));
  if (names.size() > named) text += fmt::format(" and {} more", names.size() - named);
  return text;
}

}  // namespace neuroshard
