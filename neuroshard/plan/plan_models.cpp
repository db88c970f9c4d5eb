// Finds models by the reference that a plan keeps of them.
#include "neuroshard/plan/plan_models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/core/units.h"
#include "neuroshard/cost/compute/trained_range.h"
#include "neuroshard/cost/model_file.h"

namespace neuroshard {

namespace {

/// A plan may come from anybody, and may not make its reader wait for a pipe or a terminal.
bool is_regular_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

/// "/a/mine.safetensors", or "mine" for a model that has no path, with the start of its hash.
std::string described(const ModelReference& model) {
  const std::string what = model.file.empty() ? "\"" + model.name + "\"" : model.file;
  return model.sha256.empty() ? what
                              : fmt::format("{} (SHA-256 {}...)", what, model.sha256.substr(0, 12));
}

/// The path or name by which a plan's model is found again.
std::string findable(const ModelReference& model, const std::string& place) {
  if (!model.file.empty() && is_regular_file(model.file)) return model.file;
  // A model of no file is one from data sheets; its name may still be a path.
  const std::string by_name = find_model_file(model.name);
  if (by_name.empty() ? model.file.empty() : is_regular_file(by_name)) return model.name;
  throw InputError(place, fmt::format("the file of the model, {}", described(model)),
                   "no such file: give its present path with --model FILE");
}

/// Copies the computation or the communication model of `loaded`.
void take_compute(CostModels& models, const CostModels& loaded) {
  models.compute = loaded.compute;
  models.compute_sha256 = loaded.compute_sha256;
  models.compute_file = loaded.compute_file;
}

void take_communication(CostModels& models, const CostModels& loaded) {
  models.communication = loaded.communication;
  models.communication_sha256 = loaded.communication_sha256;
  models.communication_file = loaded.communication_file;
}

/// Whether a file's model is of costs that were measured on a GPU.
bool is_measured_on_gpu(const ModelEntry& entry) {
  if (entry.is_estimate || entry.kind != "compute") return false;
  try {
    const Json hardware = ModelFile(entry.origin).json("hardware");
    const Json* kind = hardware.find("kind");
    return kind != nullptr && *kind == Json("cuda");
  } catch (const InputError&) {
    return false;  // it is gone meanwhile, or does not say
  }
}

/// From here on a device is more likely a GPU than a host with this much memory for tables.
constexpr std::int64_t kLikelyGpuBytes = std::int64_t{32} << 30;

}  // namespace

Json models_json(const CostModels& models) {
  return Json::Object{
      {"compute",
       to_json(ModelReference{models.compute->name(), models.compute_sha256, models.compute_file})},
      {"communication",
       to_json(ModelReference{models.communication->name(), models.communication_sha256,
                              models.communication_file, models.communication->is_simulated()})}};
}

std::vector<std::string> recorded_models(const Json& made_with) {
  std::vector<std::string> models;
  for (const char* kind : {"compute", "communication"}) {
    const std::optional<ModelReference> model = model_reference(made_with, kind);
    if (model) models.push_back(model->file.empty() ? model->name : model->file);
  }
  return models;
}

CostModels load_models_of_plan(const Json& made_with, const Topology& topology,
                               const std::vector<std::string>& names, const std::string& file) {
  CostModels models = load_named_models(names, topology);
  const auto recorded = [&](const char* kind) -> CostModels {
    const std::optional<ModelReference> reference = model_reference(made_with, kind);
    if (!reference || reference->name.empty()) return {};
    const std::string place = fmt::format("{}: model.{}", file, kind);
    return load_named_models({findable(*reference, place)}, topology);
  };
  if (!models.compute) take_compute(models, recorded("compute"));
  if (!models.communication) take_communication(models, recorded("communication"));
  add_default_models(models, topology);
  return models;
}

std::vector<std::string> changed_models(const Json& made_with, const CostModels& models) {
  std::vector<std::string> lines;
  const auto compare = [&](const char* kind, const std::string& name, const std::string& sha256) {
    const std::optional<ModelReference> expected = model_reference(made_with, kind);
    if (!expected || expected->name.empty()) return;
    // Models from data sheets have no file, and are what they are called.
    const bool is_the_same =
        expected->sha256.empty() ? expected->name == name : expected->sha256 == sha256;
    if (is_the_same) return;
    lines.push_back(fmt::format(
        "{}: not the {} model that the plan was made with, {}; give that one with --model", name,
        kind == std::string_view("compute") ? "computation" : kind, described(*expected)));
  };
  compare("compute", models.compute->name(), models.compute_sha256);
  compare("communication", models.communication->name(), models.communication_sha256);
  return lines;
}

std::vector<std::string> model_warnings(const ComputeCostModel& model, const Task& task,
                                        std::span<const TableStatistics> statistics) {
  std::vector<std::string> lines;
  const TrainedRange* range = model.trained_range();
  if (range == nullptr) return lines;
  for (const std::string& reason : reasons_outside(*range, task, statistics)) {
    lines.push_back(model.name() + ": " + reason);
  }
  return lines;
}

std::vector<std::string> model_warnings(const CostModels& models, const Task& task,
                                        std::span<const TableStatistics> statistics) {
  std::vector<std::string> lines = model_warnings(*models.compute, task, statistics);
  for (const std::string& reason : models.communication->outside_range(task)) {
    lines.push_back(models.communication->name() + ": " + reason);
  }
  return lines;
}

std::vector<std::string> model_notes(const CostModels& models, const Topology& topology) {
  const std::int64_t largest =
      *std::max_element(topology.memory_bytes.begin(), topology.memory_bytes.end());
  if (!models.compute_is_default || largest < kLikelyGpuBytes) return {};
  std::vector<std::string> measured;
  std::vector<std::string> estimates;
  for (const ModelEntry& entry : list_models()) {
    if (is_measured_on_gpu(entry)) {
      measured.push_back(entry.name);
    } else if (entry.is_estimate && entry.kind == "compute" && entry.name != "analytic-cpu") {
      estimates.push_back(entry.name);
    }
  }
  const std::string of_gpus =
      measured.empty()
          ? ""
          : fmt::format("a model that was measured on one, {}, or ", fmt::join(measured, ", "));
  return {fmt::format(
      "no computation model was named for devices of {}: costs are those of \"{}\", measured on a "
      "CPU with 2 cores; for GPUs name {}an estimate from data sheets: {}",
      format_bytes(static_cast<double>(largest)), models.compute->name(), of_gpus,
      fmt::join(estimates, ", "))};
}

std::vector<std::string> unlearned_costs(const CommunicationCostModel& model, const Cuts& cuts) {
  std::vector<std::string> lines;
  if (model.is_estimate()) return lines;
  if (cuts.replicas && !model.knows_all_reduces()) {
    lines.push_back(fmt::format(
        "{}: has learned no all-reduces: that of the copies is priced by the links' rates alone",
        model.name()));
  }
  if (cuts.rows && !model.knows_partial_sums()) {
    lines.push_back(fmt::format(
        "{}: has learned no partial sums: adding up those of slices of rows is priced by the "
        "memory's rate alone",
        model.name()));
  }
  return lines;
}

std::vector<std::string> unlearned_costs(const CommunicationCostModel& model,
                                         const ShardingPlan& plan) {
  return unlearned_costs(model, Cuts{.columns = true,
                                     .rows = plan.has_row_slices(),
                                     .replicas = !plan.replicated_tables.empty()});
}

ModelsOfPlan models_of_plan(const PlanDocument& document, const std::vector<std::string>& names,
                            const std::string& file) {
  ModelsOfPlan found;
  found.models = load_models_of_plan(document.model, document.task.topology, names, file);
  found.notes = model_notes(found.models, document.task.topology);
  if (names.empty()) found.changes = changed_models(document.model, found.models);
  return found;
}

}  // namespace neuroshard
