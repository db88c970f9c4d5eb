// Each task of a comparison has the models of its own topology, which are loaded once.
#include "neuroshard/evaluate/comparison_models.h"

#include <gtest/gtest.h>

#include "neuroshard/core/error.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing_tasks::make_table;
using testing_tasks::make_topology;

NamedTask named_by_interconnect(const std::string& interconnect, int devices, int per_host) {
  Task task;
  task.batch_size = 1024;
  task.tables = {make_table("a", 1000, 64)};
  task.topology = make_topology(devices, per_host, 1 << 30);
  task.topology.interconnect = interconnect;
  return {interconnect, task, Json::Object{}};
}

TEST(ModelsOfTasks, AreThoseOfTheirTopologies) {
  const std::vector<NamedTask> tasks{
      named_by_interconnect("ethernet-25g", 4, 1), named_by_interconnect("pcie4", 8, 4),
      named_by_interconnect("ethernet-25g", 4, 1), named_by_interconnect("", 4, 4)};
  const std::vector<CostModels> models = models_of_tasks(tasks, {"analytic-cpu"});
  ASSERT_EQ(models.size(), 4U);
  EXPECT_EQ(models[0].communication->name(), "ethernet-25g");
  EXPECT_EQ(models[1].communication->name(), "pcie4");
  EXPECT_EQ(models[3].communication->name(), "pcie4");  // of hosts of several devices
  EXPECT_EQ(models[0].communication, models[2].communication);
  for (const CostModels& of_task : models) EXPECT_EQ(of_task.compute, models[0].compute);
  EXPECT_EQ(communication_models_text(models),
            described(*models[0].communication) + "; " + described(*models[1].communication));
}

TEST(ModelsOfTasks, NamedOnesAreForAll) {
  const std::vector<CostModels> models = models_of_tasks(
      {named_by_interconnect("ethernet-25g", 4, 1), named_by_interconnect("pcie4", 8, 4)},
      {"analytic-cpu", "analytic-a100-nvswitch"});
  EXPECT_EQ(models[0].communication->name(), "analytic-a100-nvswitch");
  EXPECT_EQ(models[1].communication->name(), "analytic-a100-nvswitch");
  EXPECT_EQ(communication_models_text(models), described(*models[0].communication));
}

TEST(ModelsOfTasks, ThereMustBeATask) { EXPECT_THROW((void)models_of_tasks({}, {}), InputError); }

}  // namespace
}  // namespace neuroshard
