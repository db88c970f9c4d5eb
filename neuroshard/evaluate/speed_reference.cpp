// Whether what a model knows of reference sets holds here.
#include "neuroshard/evaluate/speed_reference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <string>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/core/text/printable.h"
#include "neuroshard/cost/compute/neural_compute_model.h"
#include "neuroshard/io/json/json.h"

namespace neuroshard {

SpeedReference speed_reference(const ComputeCostModel& model, const BackendDescription& here) {
  SpeedReference reference{make_reference_sets(here.operator_info)};
  const auto* neural = dynamic_cast<const NeuralComputeModel*>(&model);
  const std::map<std::string, double> known =
      neural == nullptr ? std::map<std::string, double>{} : neural->info().reference_ms;
  const auto usual = known.find(reference.sets.name);
  if (usual == known.end()) {
    std::vector<std::string> names;
    for (const auto& [name, ms] : known) names.push_back(printable(name));
    throw InputError(
        "reference sets",
        fmt::format("a model whose samples were measured next to them ({})", reference.sets.name),
        fmt::format("{}, {}", printable(model.name()),
                    names.empty() ? "which knows none"
                                  : fmt::format("which knows {}", fmt::join(names, " and "))));
  }
  const Json measured = model.operator_info().empty()
                            ? Json(Json::Object{})
                            : parse_json(model.operator_info(), model.name() + ": operator");
  const Json* theirs = measured.find("num_threads");
  const Json* ours = here.operator_info.find("num_threads");
  if (theirs != nullptr && ours != nullptr && *theirs != *ours) {
    throw InputError("reference sets",
                     fmt::format("as many threads as the samples of {} were measured with ({})",
                                 printable(model.name()), describe(*theirs)),
                     describe(*ours));
  }
  reference.usual_ms = usual->second;
  return reference;
}

}  // namespace neuroshard
