// A plan in a few sentences that a newcomer reads first.
#pragma once

#include <string>
#include <vector>

#include "neuroshard/report/page/report_data.h"

namespace neuroshard {

/// Which device is slowest, what its time goes to, in what it differs from the others, whether they
/// wait for it, which tables it looks up most of, and how far the plan is from its lower bound. Of
/// a plan without prediction, that it has none. `words` and `evaluations` of the plan are not
/// looked at; the devices must be.
[[nodiscard]] std::vector<std::string> plan_words(const ReportPlan& plan);

}  // namespace neuroshard
