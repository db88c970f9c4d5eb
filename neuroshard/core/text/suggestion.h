// The name that somebody may have meant by one that is not known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace neuroshard {

/// "; did you mean dlrm-2021?" for the end of an error, with the one of the known names that is
/// nearest to `name`: a third of its characters, at most, are other, missing, too many or swapped
/// with their neighbours, or it begins with all of `name`. "" if there is none.
[[nodiscard]] std::string suggestion(std::string_view name, const std::vector<std::string>& known);

}  // namespace neuroshard
