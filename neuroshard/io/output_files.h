// What is known of an output before there is anything to write: that it can be written, and is no
// file that is read.
#pragma once

#include <string>
#include <vector>

namespace neuroshard {

/// Throws InputError if the file at `output` is also one of the inputs, by whatever path: symbolic
/// and hard links are the file that they lead to. To be called before any work. An input may be
/// a name that stands for no file, and `output` may be empty, which is no file either. Devices and
/// pipes can be read and written at once. `place` is what the error calls the output.
void refuse_output_that_is_input(const std::string& output, const std::vector<std::string>& inputs,
                                 const std::string& place = "--output");

/// Throws InputError now, not after long work, if the file at `path` could not be written. A pipe
/// is not opened: its reader would see the end before the result.
void require_writable(const std::string& path);

}  // namespace neuroshard
