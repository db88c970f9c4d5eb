// From one request to the files that are measured together.
#include "neuroshard/refine/compute_collections.h"

#include <fmt/format.h>

#include <memory>
#include <set>
#include <string_view>

#include "neuroshard/collect/compute/process_group.h"
#include "neuroshard/core/error.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/cost/model_files.h"
#include "neuroshard/refine/disagreement.h"
#include "neuroshard/refine/planned_sets.h"
#include "neuroshard/workload/workload.h"

namespace neuroshard {

namespace {

/// The request's path with the batch size and the optimizer wherever it asks for them.
std::string path_of_file(const CollectionRequest& request, const ComputeSamplingOptions& file) {
  std::string path = request.path;
  const auto put = [&](std::string_view field, bool is_needed, const std::string& value) {
    std::size_t place = path.find(field);
    if (place == std::string::npos && is_needed) {
      throw InputError("--output", fmt::format("{} in the name, as there are several", field),
                       request.path);
    }
    while (place != std::string::npos) {
      path.replace(place, field.size(), value);
      place = path.find(field, place + value.size());
    }
  };
  put("{batch_size}", request.batch_sizes.size() > 1, fmt::format("{}", file.batch_size));
  put("{optimizer}", request.optimizers.size() > 1, std::string(to_string(file.optimizer)));
  return path_of_rank(path, file.group);
}

std::vector<Table> tables_of_file(const CollectionRequest& request, std::uint64_t number) {
  std::vector<Table> tables =
      find_workload(request.sampling.workload, request.workload_seed + number).tables;
  if (request.data_type) {
    for (Table& table : tables) table.data_type = *request.data_type;
  }
  return tables;
}

/// The model whose networks' disagreement decides what is measured.
struct UnsureModel {
  std::shared_ptr<const ComputeCostModel> compute;
  std::string sha256;
};

UnsureModel unsure_model(const std::string& name) {
  const CostModels models = load_named_models({name}, {});
  if (!models.compute || models.compute->num_members() < 2) {
    throw InputError("--least-sure", "a computation model of several networks", name);
  }
  return {models.compute, models.compute_sha256};
}

}  // namespace

std::vector<ComputeCollection> compute_collections(const CollectionRequest& request) {
  std::optional<PlanningModel> planning;
  if (!request.planned_by.empty()) {
    planning = find_planning_model(request.planned_by);
    if (!request.least_sure.empty()) {
      throw InputError("--least-sure", "none with --sets plans", request.least_sure);
    }
  }
  std::optional<UnsureModel> unsure;
  if (!request.least_sure.empty()) unsure = unsure_model(request.least_sure);
  std::vector<ComputeCollection> files;
  std::set<std::string> paths;
  for (const std::int64_t batch_size : request.batch_sizes) {
    for (const Optimizer optimizer : request.optimizers) {
      const std::uint64_t number = files.size();
      ComputeSamplingOptions sampling = request.sampling;
      sampling.tables = tables_of_file(request, number);
      sampling.batch_size = batch_size;
      sampling.optimizer = optimizer;
      sampling.seed += number;
      if (planning) {
        use_planned_sets(sampling, *planning, request.num_threads);
      } else if (unsure) {
        sampling.interest_name = unsure->sha256;
        sampling.interest =
            disagreement_about(unsure->compute, sampling.tables, batch_size, optimizer);
      } else {
        sampling.candidates = 1;
      }
      std::string path = path_of_file(request, sampling);
      refuse_output_that_is_model(path, {request.least_sure, request.planned_by},
                                  ModelsRead::named);
      if (!paths.insert(path).second) {
        throw InputError("--batch-size, --optimizer", "each value once", path + " twice");
      }
      files.push_back({std::move(sampling), request.num_samples, std::move(path)});
    }
  }
  return files;
}

}  // namespace neuroshard
