// Rounds of a refinement as text.
#include "neuroshard/report/refinement_report.h"

#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "neuroshard/core/text/printable.h"
#include "neuroshard/core/units.h"
#include "neuroshard/report/training_report.h"

namespace neuroshard {

std::string refinement_heading() {
  return fmt::format("{:>5}{:>7}{:>7}{:>12}{:>9}{:>15}{:>14}{:>17}\n", "round", "plans", "sets",
                     "plans' gap", "bias", "devices' MAPE", "devices' tau", "machine's drift");
}

std::string refinement_round_line(const RefinementRound& round) {
  return fmt::format("{:>5}{:>7}{:>7}{:>11.1f}%{:>+8.1f}%{:>14.1f}%{:>14}{:>+16.1f}%\n",
                     round.round, round.plans, round.sets, 100.0 * round.mean_gap,
                     100.0 * round.bias, 100.0 * round.devices.mape,
                     tau_text(round.devices.kendall_tau, 3), 100.0 * (round.drift - 1.0));
}

std::string refinement_text(const RefinementResult& result, double tolerance,
                            const std::string& model) {
  const std::vector<MetricsRow> rows{{"training", result.last.training},
                                     {"unseen combinations", result.last.unseen_combinations},
                                     {"unseen tables", result.last.unseen_tables}};
  return fmt::format(
             "gap: mean of |predicted/measured - 1|; bias: mean of predicted/measured - 1\n"
             "{}: {} {:.1f}%\n\n",
             format_count(static_cast<std::int64_t>(result.rounds.size()), "round"),
             result.agreed ? "new plans cost what is predicted within"
                           : "new plans still differ by more than",
             100.0 * tolerance) +
         metrics_table("samples", rows) + fmt::format("written to {}\n", printable(model));
}

}  // namespace neuroshard
