// The readers accept the examples in docs/formats.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "neuroshard/evaluate/evaluation_file.h"
#include "neuroshard/io/communication_costs_io.h"
#include "neuroshard/io/compute_costs_io.h"
#include "neuroshard/io/file.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/io/task_io.h"

namespace neuroshard {
namespace {

/// The document's code blocks marked as JSON.
std::vector<std::string> json_blocks() {
  const std::string text = read_file(NEUROSHARD_SOURCE_DIR "/docs/formats.md");
  constexpr std::string_view kBegin = "```json\n";
  std::vector<std::string> blocks;
  for (std::size_t at = text.find(kBegin); at != std::string::npos; at = text.find(kBegin, at)) {
    at += kBegin.size();
    blocks.push_back(text.substr(at, text.find("```", at) - at));
  }
  return blocks;
}

TEST(FormatsDocument, ExamplesAreAccepted) {
  const std::vector<std::string> blocks = json_blocks();
  ASSERT_EQ(blocks.size(),
            9u);  // the options' reader is in search, those of TorchRec's files in Python
  EXPECT_EQ(parse_task(blocks[0], "task").tables.size(), 2u);
  const PlanDocument plan = parse_plan(blocks[1], "plan");
  EXPECT_THAT(violations(plan.task, plan.plan), testing::IsEmpty());
  const std::vector<std::int64_t> memory = device_memory(plan.task, plan.plan);
  for (std::size_t device = 0; device < memory.size(); ++device) {
    EXPECT_EQ(plan.predicted->devices[device].memory_bytes, memory[device]);
  }
  const ComputeCosts costs = parse_compute_costs(blocks[2], "compute costs");
  EXPECT_EQ(costs.samples.size(), 1u);
  EXPECT_EQ(costs.skipped.size(), 1u);
  const EvaluationRecord evaluation = parse_evaluation(blocks[3], "evaluation");
  EXPECT_EQ(evaluation.predicted.cost_ms, plan.predicted->cost_ms);
  EXPECT_EQ(evaluation.actual.devices[1].total_ms(), 9.4);
  EXPECT_EQ(parse_communication_costs(blocks[4], "communication costs").samples.size(), 1u);
}

}  // namespace
}  // namespace neuroshard
