// The page is one file with everything in it, and names are never markup.
#include "neuroshard/report/page/report_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "neuroshard/report/page/report_assets.h"
#include "neuroshard/report/page/report_json.h"
#include "tests/cost/arbitrary_task.h"

namespace neuroshard {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing_tasks::make_table;
using testing_tasks::make_topology;

constexpr const char* kEvil =
    "</script><script>alert(\"1\")</script><!-- '&amp; \x1b[2J \u2028\u202e";

ReportData named(const std::string& table, const std::string& plan, int devices = 2) {
  PlanDocument document;
  document.task.batch_size = 64;
  document.task.tables = {make_table(table, 256, 16)};
  document.task.topology = make_topology(devices, devices, 32 << 10);
  document.plan.shards = {{0, 0, 8, 0}, {0, 8, 8, 1}};
  document.predicted = PlanCost{};
  for (int d = 0; d < devices; ++d) {
    document.predicted->devices.push_back({1.0 + d, 0.5, 0.25, 8192, 8});
  }
  document.predicted->cost_ms = devices + 0.75;
  document.warnings = {table + " lies outside"};
  return report_data({{plan, document}});
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

TEST(ReportPage, IsOneFileWithEverythingInIt) {
  const std::string page = report_page(named("user", "plan.json"));
  EXPECT_THAT(page, testing::StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(page, HasSubstr("Released under the MIT License"));  // the chart library's notice
  EXPECT_THAT(page, HasSubstr(R"("format": "neuroshard/report/1")"));
  for (const char* mark : {"{{style}}", "{{chart_library}}", "{{data}}", "{{script}}"}) {
    EXPECT_THAT(page, Not(HasSubstr(mark)));
    EXPECT_THAT(std::string(report_assets().page), HasSubstr(mark));
  }
  for (const char* elsewhere : {"src=", "<link", "@import", "url("}) {
    EXPECT_THAT(std::string(report_assets().page), Not(HasSubstr(elsewhere)));
    EXPECT_THAT(std::string(report_assets().style), Not(HasSubstr(elsewhere)));
  }
}

TEST(ReportPage, NamesNeverEndTheirScriptElement) {
  const std::string plain = report_page(named("user", "plan.json"));
  const std::string page = report_page(named(kEvil, kEvil));
  for (const char* markup : {"<script", "</script", "<!--", "\u2028"}) {
    EXPECT_EQ(count(page, markup), count(plain, markup)) << markup;
  }
}

/// What script_safe makes of a text reads back as the text and has no character that markup needs.
RC_GTEST_PROP(ReportPage, SafeJsonIsTheSameJson, ()) {
  const auto parts = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      "<", ">", "&", "\"", "\\", "</script>", "\u2028", "\u2029", "\x01", "a", "é", "]]>"));
  std::string text;
  for (const std::string& part : parts) text += part;
  const Json json = Json::Object{{text, text}};
  const std::string safe = script_safe(json);
  RC_ASSERT(parse_json(safe, "safe") == json);
  RC_ASSERT(safe.find_first_of("<>&") == std::string::npos);
  RC_ASSERT(safe.find("\u2028") == std::string::npos);
}

TEST(PlanSummary, EscapesNamesAndNeedsNoScript) {
  const std::string html = plan_summary_html(named(kEvil, "plan.json"));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("\x1b")));
  EXPECT_THAT(html, HasSubstr("&lt;/script&gt;&lt;script&gt;alert(&quot;1&quot;)"));
  EXPECT_THAT(html, HasSubstr("<b>Device 1 of 2 is the slowest"));
  EXPECT_THAT(html, HasSubstr("title=\"computation: 2.000 ms\""));
}

TEST(PlanSummary, ShowsTheSlowestOfManyDevices) {
  const std::string html = plan_summary_html(named("user", "plan.json", 40), 3);
  EXPECT_EQ(count(html, "<tr><td>"), 3u);
  EXPECT_THAT(html, HasSubstr("<tr><td>39</td><td>40.750</td>"));
  EXPECT_THAT(html, HasSubstr("37 faster devices not shown"));
  EXPECT_LT(html.size(), 6'000u);
}

TEST(PlanSummary, CallsNoDeviceFasterWhereAllAreEquallySlow) {
  NamedPlan plan = named("user", "plan.json", 40).plans.front().plan;
  for (DeviceCost& device : plan.document.predicted->devices) device.compute_ms = 1.0;
  plan.document.predicted->cost_ms = 1.75;
  EXPECT_THAT(plan_summary_html(report_data({plan}), 3), HasSubstr("37 other devices not shown"));
  plan.document.predicted.reset();
  EXPECT_THAT(plan_summary_html(report_data({plan}), 3), HasSubstr("<p>37 devices not shown"));
}

}  // namespace
}  // namespace neuroshard
