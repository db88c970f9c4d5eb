// A report as one HTML file that needs nothing else, and a plan as a short piece of HTML.
#pragma once

#include <string>
#include <string_view>

#include "neuroshard/io/json/json.h"
#include "neuroshard/report/page/report_data.h"

namespace neuroshard {

/// The page with its styles, scripts, the chart library and the data; opens without a network.
/// Whatever names contain, they are text there and never markup.
[[nodiscard]] std::string report_page(const ReportData& data);

/// The page that `script`, one of the assets' scripts, makes of the data.
[[nodiscard]] std::string page_of(const Json& data, std::string_view script);

/// The data as the content of a script element: JSON without '<', '>', '&' and line separators,
/// which are escaped, so that no text in it can end the element.
[[nodiscard]] std::string script_safe(const Json& json);

/// The first plan as a piece of HTML for notebooks: its words and its devices, the `max_devices`
/// slowest at most, without script, and with styles of its own alone.
[[nodiscard]] std::string plan_summary_html(const ReportData& data, std::size_t max_devices = 16);

}  // namespace neuroshard
