// Descriptions of cost models as JSON (docs/formats.md, "Answers of commands").
#pragma once

#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/io/json/json.h"

namespace neuroshard {

/// {"name": ..., "kind": ..., "is_estimate": ..., "is_simulated": ..., "origin": ...}
[[nodiscard]] Json to_json(const ModelEntry& entry);

/// "neuroshard/models/1": all models that can be asked for by name.
[[nodiscard]] Json model_list_json();

/// "neuroshard/model-description/1": the metadata of the model's file, or the preset's source.
/// Throws InputError for a broken file.
[[nodiscard]] Json model_json(const ModelEntry& entry);

}  // namespace neuroshard
