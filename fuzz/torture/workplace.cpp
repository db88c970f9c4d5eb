// A folder, models and planners.
#include "fuzz/torture/workplace.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "fuzz/grammar/damage.h"
#include "neuroshard/baselines/planner_catalog.h"

namespace neuroshard::fuzz {

Workplace::Workplace(std::string executable, const std::string& parent)
    : executable_(std::move(executable)), folder_(parent + "/neuroshard-torture-XXXXXX") {
  if (mkdtemp(folder_.data()) == nullptr) throw std::runtime_error("no folder for files");
}

Workplace::~Workplace() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string Workplace::write(std::string_view name, std::string_view bytes) const {
  std::string path = file(name);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) throw std::runtime_error(path + ": not written");
  return path;
}

const CostModels& Workplace::models(Random& random) {
  if (models_.empty()) {
    const Topology topology;
    models_.push_back(load_named_models({kDefaultComputeModel, "analytic-ethernet-25g"}, topology));
    models_.push_back(load_named_models({"analytic-a100-40gb", "analytic-pcie4"}, topology));
  }
  return models_[random.below(models_.size())];
}

const Planner& Workplace::planner(Random& random) {
  if (planners_.empty()) planners_ = make_planners();
  return once_in(2, random) ? *planners_.front() : *planners_[random.below(planners_.size())];
}

}  // namespace neuroshard::fuzz
