// The paper's networks and the analytic model next to a trained communication model.
#pragma once

#include <string>
#include <vector>

#include "neuroshard/io/json/json.h"
#include "neuroshard/paper/communication_baselines.h"
#include "neuroshard/report/training_report.h"

namespace neuroshard {

/// For `training_text`.
[[nodiscard]] std::vector<RivalMetrics> rivals_of(const CommunicationBaselines& baselines);

/// The number of the paper's networks that were trained, and the time it took.
[[nodiscard]] std::string published_networks_text(const CommunicationBaselines& baselines);

/// Adds them to the object that `training_json` gives.
void add_baselines(Json& training, const CommunicationBaselines& baselines);

}  // namespace neuroshard
