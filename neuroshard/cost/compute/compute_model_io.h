// Computation cost models as files: safetensors with everything about the model in the metadata.
#pragma once

#include <memory>
#include <string>

#include "neuroshard/cost/compute/neural_compute_model.h"
#include "neuroshard/cost/model_file.h"

namespace neuroshard {

/// A model is named after its file, so that the name finds it again. Throws InputError
/// "file: place: expected ..., got ..." for a file that is not a whole computation model of a
/// schema and architecture that this build has.
[[nodiscard]] std::shared_ptr<const NeuralComputeModel> read_compute_model(const std::string& path);
/// The same for a file that is already open; `path` is its path, and `name`, unless empty, the name
/// that the model is to have instead of the one it was written with.
[[nodiscard]] std::shared_ptr<const NeuralComputeModel> compute_model_from(
    const ModelFile& file, const std::string& path, const std::string& name = "");

/// Writes the model; its `model_sha256` is not written, it is the file's.
void write_compute_model(const NeuralComputeModel& model, const std::string& path);

}  // namespace neuroshard
