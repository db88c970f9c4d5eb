// The page is put together from the files in assets/, which the build embeds, and the data.
#include "neuroshard/report/page/report_page.h"

#include <array>
#include <string_view>
#include <utility>

#include "neuroshard/report/page/report_assets.h"
#include "neuroshard/report/page/report_json.h"

namespace neuroshard {

namespace {

/// Replaces every mark of the template, "{{name}}", by the text of its name, in one pass: what is
/// put in is not looked at again.
template <std::size_t size>
std::string filled(std::string_view page,
                   const std::array<std::pair<std::string_view, std::string_view>, size>& texts) {
  std::string result;
  for (std::size_t at = 0; at < page.size();) {
    const std::size_t mark = page.find("{{", at);
    if (mark == std::string_view::npos) return result.append(page.substr(at));
    result.append(page.substr(at, mark - at));
    const std::size_t end = page.find("}}", mark);
    const std::string_view name = page.substr(mark + 2, end - mark - 2);
    for (const auto& [key, text] : texts) {
      if (key == name) result.append(text);
    }
    at = end + 2;
  }
  return result;
}

}  // namespace

std::string script_safe(const Json& json) {
  std::string safe;
  const std::string text = to_line(json);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view separator = std::string_view(text).substr(i, 3);
    if (text[i] == '<') {
      safe += "\\u003c";
    } else if (text[i] == '>') {
      safe += "\\u003e";
    } else if (text[i] == '&') {
      safe += "\\u0026";
    } else if (separator == "\xe2\x80\xa8" || separator == "\xe2\x80\xa9") {
      safe += separator.back() == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      safe += text[i];
    }
  }
  return safe;
}

std::string page_of(const Json& data, std::string_view script) {
  const std::string json = script_safe(data);
  const ReportAssets& assets = report_assets();
  const std::string scripts = std::string(assets.script) + std::string(script);
  return filled<4>(assets.page, {{{"style", assets.style},
                                  {"chart_library", assets.chart_library},
                                  {"data", json},
                                  {"script", scripts}}});
}

std::string report_page(const ReportData& data) {
  return page_of(to_json(data), report_assets().plan_script);
}

}  // namespace neuroshard
