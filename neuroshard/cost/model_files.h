// The files that models are read from, which no command may write to that reads them.
#pragma once

#include <string>
#include <vector>

namespace neuroshard {

enum class ModelsRead {
  named,            ///< only models that are asked for
  named_or_default  ///< the shipped ones too, for kinds that are not asked for
};

/// Throws InputError, as refuse_output_that_is_input does, if the file at `output` is that of a
/// model in `names`, which are names or files as `--model` takes them, or, if so asked, one that
/// may be read without being named. Names that are unknown are nobody's file.
void refuse_output_that_is_model(const std::string& output, const std::vector<std::string>& names,
                                 ModelsRead read, const std::string& place = "--output");

}  // namespace neuroshard
