// A report as JSON, "neuroshard/report/1" (docs/formats.md): what the page draws.
#pragma once

#include "neuroshard/io/json/json.h"
#include "neuroshard/report/page/report_data.h"

namespace neuroshard {

[[nodiscard]] Json to_json(const ReportData& data);

}  // namespace neuroshard
