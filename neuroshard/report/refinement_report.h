// The results of a refinement, round by round.
#pragma once

#include <string>

#include "neuroshard/refine/model_refinement.h"

namespace neuroshard {

/// Titles of the columns of `refinement_round_line`.
[[nodiscard]] std::string refinement_heading();
[[nodiscard]] std::string refinement_round_line(const RefinementRound& round);

/// Whether predicted and measured costs agree in the end, and the last model's metrics; `tolerance`
/// as in RefinementOptions, `model` is the file that was written.
[[nodiscard]] std::string refinement_text(const RefinementResult& result, double tolerance,
                                          const std::string& model);

}  // namespace neuroshard
