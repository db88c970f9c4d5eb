// Cost models by name: files, shipped pre-trained models, and analytic presets.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "neuroshard/cost/communication/communication_cost_model.h"
#include "neuroshard/cost/compute/compute_cost_model.h"

namespace neuroshard {

/// A computation model and a communication model, with where each came from.
struct CostModels {
  std::shared_ptr<const ComputeCostModel> compute{};
  std::shared_ptr<const CommunicationCostModel> communication{};
  std::string compute_sha256{};        ///< of the model's file; empty for an analytic model
  std::string communication_sha256{};  ///< likewise
  std::string compute_file{};          ///< recorded path, if it was asked for by a path, not a name
  std::string communication_file{};    ///< likewise
  bool compute_is_default = false;     ///< the user did not ask for it
  bool communication_is_default = false;
};

/// One line of `model list`.
struct ModelEntry {
  std::string name{};  ///< what `--model` takes
  std::string kind{};  ///< "compute" or "communication"; "unreadable" for a broken file
  bool is_estimate = false;
  std::string origin{};       ///< file, or the source of the preset's numbers
  bool is_simulated = false;  ///< learned from a simulation; of a file, all its clusters
};

/// What people are told of a model that was learned from a simulation.
inline constexpr std::string_view kSimulatedText = "pre-trained (simulated)";

/// "estimate", "pre-trained" or "pre-trained (simulated)".
[[nodiscard]] std::string_view source_text(const ModelEntry& entry);

/// The model's name, and of an estimate that it is one.
[[nodiscard]] std::string described(const ComputeCostModel& model);
/// The model's name, and of a model that is an estimate or was learned from a simulation, that.
[[nodiscard]] std::string described(const CommunicationCostModel& model);

/// The default model: measured on the machine that this project ships data of.
inline constexpr const char* kDefaultComputeModel = "cpu-xeon-2core";

/// Prefix of the name of a model that is computed from a preset.
inline constexpr std::string_view kAnalyticPrefix = "analytic-";

/// Folders with shipped models, in the order in which they are searched: those in
/// $NEUROSHARD_MODELS (separated by colons); ../share/neuroshard/models as seen from the program's
/// folder, where an installed program has them, or else the source tree's for a program in the
/// build folder; the same folder below the prefix for which the library was configured.
[[nodiscard]] std::vector<std::string> model_folders();

/// All models that can be asked for by name.
[[nodiscard]] std::vector<ModelEntry> list_models();

/// Path of a model file: `name` itself if it names a file (contains '/' or ends in .safetensors),
/// else NAME.safetensors in one of the folders; empty if there is none.
[[nodiscard]] std::string find_model_file(const std::string& name);

/// Path of the file that a model of this name is read from: as of `find_model_file`, and `name`
/// itself, whatever its suffix, if no model is called so and a file in the working folder is; empty
/// for a preset, the name of a cluster, and an unknown name.
[[nodiscard]] std::string find_file_of_model(const std::string& name);

/// A model by name or file; of a file, `kind` is the model's and `origin` the file. Throws
/// InputError for an unknown name and for a broken file.
[[nodiscard]] ModelEntry find_model(const std::string& name);

/// Loads models by name or file (`find_file_of_model`); each knows whether it is for computation or
/// communication. The name of an interconnect is the shipped model that was trained on it, else the
/// analytic preset, which "analytic-NAME" always is; a communication model's file gives the
/// interconnect that the topology names. Throws InputError for an unknown name, a broken file, or
/// two models of one kind.
[[nodiscard]] CostModels load_named_models(const std::vector<std::string>& names,
                                           const Topology& topology);

/// Adds the models that are missing: the default computation model, and for communication that of
/// the interconnect that the topology names, or "ethernet-25g" for hosts of one device and "pcie4"
/// for hosts of several.
void add_default_models(CostModels& models, const Topology& topology);

/// Both: the models that are named, and defaults for those that are not.
[[nodiscard]] CostModels load_cost_models(const std::vector<std::string>& names,
                                          const Topology& topology);

}  // namespace neuroshard
