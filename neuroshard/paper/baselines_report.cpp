// Baselines as rows and fields.
#include "neuroshard/paper/baselines_report.h"

#include <fmt/format.h>

#include "neuroshard/core/units.h"
#include "neuroshard/train/training_io.h"

namespace neuroshard {

std::vector<RivalMetrics> rivals_of(const CommunicationBaselines& baselines) {
  return {{"analytic", baselines.analytic_unseen_placements, baselines.analytic_held_out},
          {"published", baselines.published_unseen_placements, {}}};
}

std::string published_networks_text(const CommunicationBaselines& baselines) {
  return fmt::format("published: {}, {}\n", format_count(baselines.published_networks, "network"),
                     format_seconds(baselines.seconds));
}

void add_baselines(Json& training, const CommunicationBaselines& baselines) {
  training.set("analytic_unseen_placements", to_json(baselines.analytic_unseen_placements));
  training.set("analytic_held_out", to_json(baselines.analytic_held_out));
  training.set("published_unseen_placements", to_json(baselines.published_unseen_placements));
  training.set("published_networks", baselines.published_networks);
  training.set("baselines_seconds", baselines.seconds);
}

}  // namespace neuroshard
