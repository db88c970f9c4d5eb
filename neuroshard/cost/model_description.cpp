// Models as JSON.
#include "neuroshard/cost/model_description.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "neuroshard/core/text/printable.h"
#include "neuroshard/cost/communication/communication_model_io.h"
#include "neuroshard/cost/compute/compute_model_io.h"
#include "neuroshard/io/checksum.h"

namespace neuroshard {

// The folders of models, and what is in them, have any names.
Json to_json(const ModelEntry& entry) {
  return Json::Object{{"name", as_utf8(entry.name)},
                      {"kind", entry.kind},
                      {"is_estimate", entry.is_estimate},
                      {"is_simulated", entry.is_simulated},
                      {"origin", as_utf8(entry.origin)}};
}

Json model_list_json() {
  Json::Array models;
  for (const ModelEntry& entry : list_models()) models.push_back(to_json(entry));
  return Json::Object{{"format", "neuroshard/models/1"}, {"models", std::move(models)}};
}

Json model_json(const ModelEntry& entry) {
  Json json = Json::Object{{"format", "neuroshard/model-description/1"},
                           {"name", entry.name},
                           {"kind", entry.kind},
                           {"is_estimate", entry.is_estimate},
                           {"is_simulated", entry.is_simulated},
                           {"origin", as_utf8(entry.origin)}};
  if (entry.is_estimate) return json;
  const ModelFile file(entry.origin);
  json.set("name", as_utf8(std::filesystem::path(entry.origin).stem().string()));
  json.set("sha256", sha256_file(entry.origin));
  for (const char* field : {"architecture", "feature_schema", "training_data_sha256"}) {
    json.set(field, file.metadata(field));
  }
  if (file.kind() == "communication") {
    (void)communication_model_from(file, entry.origin);  // throws for an incomplete model
    json.set("clusters", file.json("clusters"));
  } else {
    const auto model = compute_model_from(file, entry.origin);
    json.set("networks", model->members().size());
    json.set("hardware", file.json("hardware"));
    json.set("operator", file.json("operator"));
    if (model->has_widest_factors()) {
      const std::vector<double> factors = model->mean_widest_factors();
      json.set("widest_factors", Json::Array(factors.begin(), factors.end()));
    }
    if (model->has_optimizer_offsets()) {
      json.set("offsets_ms", Json::Object{{"sgd", model->mean_offset_ms(Optimizer::sgd)},
                                          {"rowwise_adagrad",
                                           model->mean_offset_ms(Optimizer::rowwise_adagrad)}});
    }
    if (!model->info().reference_ms.empty()) {
      json.set("reference_ms", to_json(model->info().reference_ms));
    }
  }
  if (file.has_metadata("collectives_data_sha256")) {
    json.set("collectives_data_sha256", file.metadata("collectives_data_sha256"));
  }
  json.set("range", file.json("range"));
  json.set("metrics", file.json("metrics"));
  return json;
}

}  // namespace neuroshard
