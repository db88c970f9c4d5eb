// A report of a training as one HTML file that needs nothing else.
#pragma once

#include <string>

#include "neuroshard/report/page/training_data.h"

namespace neuroshard {

/// As report_page (report_page.h), of a training.
[[nodiscard]] std::string training_page(const TrainingReportData& data);

}  // namespace neuroshard
