// Names of models as files.
#include "neuroshard/cost/model_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/io/output_files.h"

namespace neuroshard {

void refuse_output_that_is_model(const std::string& output, const std::vector<std::string>& names,
                                 ModelsRead read, const std::string& place) {
  std::error_code ignored;
  if (output.empty() || !std::filesystem::exists(output, ignored)) return;  // nothing is read there
  std::vector<std::string> inputs;
  for (const std::string& name : names) inputs.push_back(find_file_of_model(name));
  const bool with_defaults = read == ModelsRead::named_or_default;
  if (with_defaults) inputs.push_back(find_model_file(kDefaultComputeModel));
  // A communication model's file is found by the names of its clusters.
  for (const ModelEntry& entry : list_models()) {
    if (entry.kind != "communication" || entry.is_estimate) continue;
    const bool is_named = std::find(names.begin(), names.end(), entry.name) != names.end();
    if (is_named || with_defaults) inputs.push_back(entry.origin);
  }
  refuse_output_that_is_input(output, inputs, place);
}

}  // namespace neuroshard
