// The files that reports are made of, as the build has embedded them.
#pragma once

#include <string_view>

namespace neuroshard {

struct ReportAssets {
  std::string_view page;             ///< assets/report.html, with marks such as {{data}}
  std::string_view style;            ///< assets/report.css
  std::string_view script;           ///< what every page needs of assets/*.js
  std::string_view plan_script;      ///< and after it a page of plans
  std::string_view training_script;  ///< or of a training
  std::string_view chart_library;    ///< Chart.js, minified, with its licence's notice
};

[[nodiscard]] const ReportAssets& report_assets();

}  // namespace neuroshard
