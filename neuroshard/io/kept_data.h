// Files that are not replaced without being told to: what was measured, and what was made of it in
// a long time.
#pragma once

#include <string>
#include <string_view>

namespace neuroshard {

/// What lies at `path`, in words, if it is measured costs, a journal of measurements or a model,
/// compressed or not, by its format, which is looked for in its first 16 MiB. "" for anything else:
/// no file, a device, an empty file, one that cannot be read.
[[nodiscard]] std::string kept_data_at(const std::string& path);

/// Throws InputError "path: expected a new file, or --force, got a model that is there already" for
/// such a file. `permission` is what the caller would have to say to have it replaced.
void refuse_to_replace_kept_data(const std::string& path, std::string_view permission = "--force");

}  // namespace neuroshard
