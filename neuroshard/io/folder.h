// What is in a folder.
#pragma once

#include <string>
#include <system_error>
#include <vector>

namespace neuroshard {

/// Paths of all that is in a folder ("folder/name"), in order. `error` says why they could not be
/// read; then there are none. In place of std::filesystem's iterator, which ends the process where
/// it finds no memory for a name.
[[nodiscard]] std::vector<std::string> paths_in(const std::string& folder, std::error_code& error);

}  // namespace neuroshard
