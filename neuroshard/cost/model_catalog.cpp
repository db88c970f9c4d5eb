// Cost models by name.
#include "neuroshard/cost/model_catalog.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>

#include "neuroshard/core/error.h"
#include "neuroshard/core/interconnect.h"
#include "neuroshard/core/text/suggestion.h"
#include "neuroshard/core/text/utf8.h"
#include "neuroshard/cost/communication/analytic_communication.h"
#include "neuroshard/cost/communication/communication_model_io.h"
#include "neuroshard/cost/compute/analytic_compute.h"
#include "neuroshard/cost/compute/compute_model_io.h"
#include "neuroshard/io/folder.h"

namespace neuroshard {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".safetensors";
constexpr const char* kOfEstimate = " (an estimate, not measured)";

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(kSuffix);
}

/// Presets may be named with or without the prefix that their models carry.
std::string preset_name(const std::string& name) {
  return name.starts_with(kAnalyticPrefix) ? name.substr(kAnalyticPrefix.size()) : name;
}

template <typename Presets>
bool contains(const Presets& presets, const std::string& name) {
  return std::any_of(presets.begin(), presets.end(),
                     [&](const auto& preset) { return preset.name == name; });
}

bool lies_in(const fs::path& file, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first ==
         folder.end();
}

void set_compute(CostModels& models, std::shared_ptr<const ComputeCostModel> model,
                 std::string sha256) {
  if (models.compute) {
    throw InputError("--model", "at most one computation model",
                     fmt::format("\"{}\" and \"{}\"", models.compute->name(), model->name()));
  }
  models.compute = std::move(model);
  models.compute_sha256 = std::move(sha256);
}

void set_communication(CostModels& models, std::shared_ptr<const CommunicationCostModel> model,
                       std::string sha256) {
  if (models.communication) {
    throw InputError("--model", "at most one communication model",
                     fmt::format("\"{}\" and \"{}\"", models.communication->name(), model->name()));
  }
  models.communication = std::move(model);
  models.communication_sha256 = std::move(sha256);
}

void add_cluster(CostModels& models, const CommunicationModelFile& file, const std::string& cluster,
                 const std::string& place) {
  set_communication(models, file.of_cluster(cluster, place), file.info.model_sha256);
}

void add_file(CostModels& models, const std::string& path, const Topology& topology) {
  const ModelFile file(path);
  if (file.kind() == "communication") {
    add_cluster(models, communication_model_from(file, path), topology.interconnect,
                "topology.interconnect");
    return;
  }
  // Named after its file, whatever it was called when it was written: that name finds it again.
  auto model = compute_model_from(file, path, std::filesystem::path(path).stem());
  std::string sha256 = model->info().model_sha256;
  set_compute(models, std::move(model), std::move(sha256));
}

/// The path as plans record it, from which the file is found again: absolute, unless the working
/// folder has a name that JSON cannot have.
std::string recorded_path(const std::string& path) {
  std::error_code error;
  std::string absolute = std::filesystem::absolute(path, error).lexically_normal();
  return !error && is_utf8(absolute) ? absolute : path;
}

/// Remembers the path by which a model was asked for.
void keep_path(CostModels& models, const CostModels& before, const std::string& path) {
  const std::string recorded = recorded_path(path);
  if (models.compute != before.compute) models.compute_file = recorded;
  if (models.communication != before.communication) models.communication_file = recorded;
}

/// Throws MachineError unless a folder was read, or is not there or not for this user.
void check_readable(const std::string& folder, const std::error_code& error) {
  if (!error || error == std::errc::no_such_file_or_directory ||
      error == std::errc::not_a_directory || error == std::errc::permission_denied) {
    return;
  }
  throw MachineError(fmt::format("{}: expected a readable folder, got {}", folder,
                                 std::generic_category().message(error.value())));
}

/// Pipes, which wait for their writer, and devices are no models.
bool is_no_pipe(const std::string& path) {
  std::error_code ignored;
  const fs::file_type type = fs::status(path, ignored).type();
  return type != fs::file_type::fifo && type != fs::file_type::character &&
         type != fs::file_type::block && type != fs::file_type::socket;
}

/// Calls visit(path) for every model file in the folders, in their order; those of one folder by
/// name. A name that an earlier folder has hides later ones.
template <typename Visit>
void for_each_model_file(const Visit& visit) {
  std::set<std::string> seen;
  for (const std::string& folder : model_folders()) {
    std::error_code error;
    const std::vector<std::string> paths = paths_in(folder, error);
    check_readable(folder, error);
    for (const std::string& path : paths) {
      const fs::path file(path);
      if (!is_no_pipe(path)) continue;
      if (file.extension() == kSuffix && seen.insert(file.stem()).second) visit(path);
    }
  }
}

/// The first shipped communication model that knows this cluster. Files that are no models of this
/// build are skipped here: they fail where they are asked for by name.
std::optional<CommunicationModelFile> find_trained_cluster(const std::string& name) {
  std::optional<CommunicationModelFile> found;
  for_each_model_file([&](const std::string& path) {
    if (found) return;
    try {
      const ModelFile file(path);
      if (file.kind() != "communication") return;
      CommunicationModelFile model = communication_model_from(file, path);
      const auto& clusters = model.info.clusters;
      const bool knows_it = std::any_of(
          clusters.begin(), clusters.end(),
          [&](const TrainedCluster& cluster) { return cluster.interconnect.name == name; });
      if (knows_it) found = std::move(model);
    } catch (const InputError&) {
      return;
    }
  });
  return found;
}

std::vector<std::string> names_of_models() {
  std::vector<std::string> names;
  for (const ModelEntry& entry : list_models()) names.push_back(entry.name);
  return names;
}

/// And those of presets without the prefix, by which they may be named too.
std::vector<std::string> with_preset_names(std::vector<std::string> names) {
  const std::size_t count = names.size();
  for (std::size_t i = 0; i < count; ++i) {
    std::string preset = preset_name(names[i]);
    if (preset != names[i]) names.push_back(std::move(preset));
  }
  return names;
}

void add_model(CostModels& models, const std::string& name, const Topology& topology) {
  if (const std::string file = find_file_of_model(name); !file.empty()) {
    const CostModels before = models;
    add_file(models, file, topology);
    if (file == name) keep_path(models, before, file);
  } else if (contains(compute_hardware(), preset_name(name))) {
    set_compute(models,
                std::make_shared<AnalyticComputeModel>(find_compute_hardware(preset_name(name))),
                "");
  } else if (const auto trained = find_trained_cluster(name)) {
    add_cluster(models, *trained, name, "--model");
  } else if (contains(interconnects(), preset_name(name))) {
    set_communication(
        models, std::make_shared<AnalyticCommunicationModel>(find_interconnect(preset_name(name))),
        "");
  } else {
    const std::vector<std::string> known = names_of_models();
    throw InputError("--model", fmt::format("a file or one of {}", fmt::join(known, ", ")),
                     fmt::format("\"{}\"{}", name, suggestion(name, with_preset_names(known))));
  }
}

}  // namespace

std::vector<std::string> model_folders() {
  std::vector<std::string> folders;
  if (const char* given = std::getenv("NEUROSHARD_MODELS")) {
    std::istringstream list(given);
    for (std::string folder; std::getline(list, folder, ':');) {
      if (!folder.empty()) folders.push_back(folder);
    }
  }
  std::error_code ignored;
  const fs::path executable = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path installed = executable.parent_path() / NEUROSHARD_BIN_TO_MODELS;
  if (fs::is_directory(installed, ignored)) {
    folders.push_back(installed.lexically_normal());
  } else if (lies_in(executable, NEUROSHARD_BUILD_DIR)) {
    folders.emplace_back(NEUROSHARD_SOURCE_MODEL_DIR);
  }
  if (!fs::equivalent(installed, NEUROSHARD_INSTALL_MODEL_DIR, ignored)) {
    folders.emplace_back(NEUROSHARD_INSTALL_MODEL_DIR);
  }
  return folders;
}

std::string find_model_file(const std::string& name) {
  if (is_path(name)) return name;
  for (const std::string& folder : model_folders()) {
    std::string path = fmt::format("{}/{}{}", folder, name, kSuffix);
    std::error_code ignored;
    if (fs::exists(path, ignored) && is_no_pipe(path)) return path;
  }
  return "";
}

std::string find_file_of_model(const std::string& name) {
  if (std::string listed = find_model_file(name); !listed.empty()) return listed;
  std::error_code ignored;
  if (!fs::is_regular_file(name, ignored)) return "";
  const std::string preset = preset_name(name);
  const bool is_other = contains(compute_hardware(), preset) || contains(interconnects(), preset) ||
                        find_trained_cluster(name);
  return is_other ? "" : name;
}

std::string_view source_text(const ModelEntry& entry) {
  if (entry.is_estimate) return "estimate";
  return entry.is_simulated ? kSimulatedText : "pre-trained";
}

std::string described(const ComputeCostModel& model) {
  return model.is_estimate() ? model.name() + kOfEstimate : model.name();
}

std::string described(const CommunicationCostModel& model) {
  if (model.is_estimate()) return model.name() + kOfEstimate;
  return model.is_simulated() ? fmt::format("{}, {}", model.name(), kSimulatedText) : model.name();
}

std::vector<ModelEntry> list_models() {
  std::vector<ModelEntry> entries;
  for_each_model_file([&](const std::string& path) {
    const std::string name = fs::path(path).stem();
    try {
      const ModelFile file(path);
      if (file.kind() != "communication") {
        entries.push_back({name, file.kind(), false, path});
        return;
      }
      for (const TrainedCluster& cluster : communication_model_from(file, path).info.clusters) {
        entries.push_back(
            {cluster.interconnect.name, "communication", false, path, is_simulated(cluster)});
      }
    } catch (const InputError&) {
      entries.push_back({name, "unreadable", false, path});
    }
  });
  std::sort(entries.begin(), entries.end(),
            [](const ModelEntry& a, const ModelEntry& b) { return a.name < b.name; });
  for (const ComputeHardware& preset : compute_hardware()) {
    entries.push_back({fmt::format("{}{}", kAnalyticPrefix, preset.name), "compute", true,
                       std::string(preset.source)});
  }
  for (const Interconnect& preset : interconnects()) {
    entries.push_back(
        {fmt::format("{}{}", kAnalyticPrefix, preset.name), "communication", true, preset.source});
  }
  return entries;
}

ModelEntry find_model(const std::string& name) {
  if (const std::string file = find_file_of_model(name); !file.empty()) {
    const ModelFile opened(file);
    ModelEntry entry{name, opened.kind(), false, file};
    if (entry.kind == "communication") {
      const CommunicationModelFile model = communication_model_from(opened, file);
      entry.is_simulated =
          std::all_of(model.info.clusters.begin(), model.info.clusters.end(), is_simulated);
    }
    return entry;
  }
  for (const ModelEntry& entry : list_models()) {
    if (entry.name == name || entry.name == std::string(kAnalyticPrefix) + name) return entry;
  }
  throw InputError("model", "a file or a name that `neuroshard model list` shows",
                   "\"" + name + "\"" + suggestion(name, with_preset_names(names_of_models())));
}

CostModels load_named_models(const std::vector<std::string>& names, const Topology& topology) {
  CostModels models;
  for (const std::string& name : names) add_model(models, name, topology);
  return models;
}

void add_default_models(CostModels& models, const Topology& topology) {
  if (!models.compute) {
    add_model(models, kDefaultComputeModel, topology);
    models.compute_is_default = true;
  }
  if (models.communication) return;
  models.communication_is_default = true;
  const std::string fallback = topology.local_world_size > 1 ? "pcie4" : "ethernet-25g";
  const std::string& name = topology.interconnect.empty() ? fallback : topology.interconnect;
  if (const auto trained = find_trained_cluster(name)) {
    add_cluster(models, *trained, name, "topology.interconnect");
  } else {
    set_communication(models, std::make_shared<AnalyticCommunicationModel>(find_interconnect(name)),
                      "");
  }
}

CostModels load_cost_models(const std::vector<std::string>& names, const Topology& topology) {
  CostModels models = load_named_models(names, topology);
  add_default_models(models, topology);
  return models;
}

}  // namespace neuroshard
