// Edit distances between short names.
#include "neuroshard/core/text/suggestion.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace neuroshard {

namespace {

/// Longer names are no typing mistakes, and their distances would take long.
constexpr std::size_t kLongestName = 64;

/// Shorter ones begin too many names.
constexpr std::size_t kShortestBeginning = 3;

/// Characters that are other, missing, too many or swapped with their neighbours: the restricted
/// Damerau-Levenshtein distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> current(b.size() + 1, i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t other = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({other, last[j] + 1, current[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], before_last[j - 2] + 1);
    }
    before_last = std::exchange(last, std::move(current));
  }
  return last.back();
}

/// The shortest of the names that begin with all of `name`.
const std::string* continued(std::string_view name, const std::vector<std::string>& known) {
  const std::string* shortest = nullptr;
  if (name.size() < kShortestBeginning) return shortest;
  for (const std::string& candidate : known) {
    if (!candidate.starts_with(name)) continue;
    if (shortest == nullptr || candidate.size() < shortest->size()) shortest = &candidate;
  }
  return shortest;
}

}  // namespace

std::string suggestion(std::string_view name, const std::vector<std::string>& known) {
  if (name.empty() || name.size() > kLongestName) return "";
  // A name that is known is wrong for another reason.
  if (std::find(known.begin(), known.end(), name) != known.end()) return "";
  const std::string* nearest = nullptr;
  std::size_t least = std::max<std::size_t>(name.size() / 3, 1) + 1;
  for (const std::string& candidate : known) {
    if (candidate.size() > kLongestName) continue;
    const std::size_t found = distance(name, candidate);
    if (found >= least || found >= candidate.size()) continue;
    least = found;
    nearest = &candidate;
  }
  if (nearest == nullptr) nearest = continued(name, known);
  return nearest == nullptr ? "" : "; did you mean " + *nearest + "?";
}

}  // namespace neuroshard
