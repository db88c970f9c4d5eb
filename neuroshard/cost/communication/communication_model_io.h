// Communication cost models as files: safetensors with everything about the model in the metadata.
#pragma once

#include <memory>
#include <string>

#include "neuroshard/cost/communication/neural_communication_model.h"
#include "neuroshard/cost/model_file.h"

namespace neuroshard {

/// A communication model file: one network, and the clusters that it was trained on.
struct CommunicationModelFile {
  std::shared_ptr<const CommunicationNetwork> network;
  CommunicationModelInfo info;

  /// The model of the cluster of this name. Throws InputError "place: ..." listing the clusters if
  /// there is none; an empty name means the only one, or else the unnamed one.
  [[nodiscard]] std::shared_ptr<const NeuralCommunicationModel> of_cluster(
      const std::string& name, const std::string& place) const;
};

/// Throws InputError "file: place: expected ..., got ..." for a file that is not a whole
/// communication model of a schema that this build has. `path` is the path of `file`.
[[nodiscard]] CommunicationModelFile communication_model_from(const ModelFile& file,
                                                              const std::string& path);

void write_communication_model(const CommunicationNetwork& network,
                               const CommunicationModelInfo& info, const std::string& path);

}  // namespace neuroshard
