// The whole public interface: tasks, cost models, plans.
//
//   const neuroshard::Task task = neuroshard::read_task("task.json");
//   const neuroshard::PlannedTask planned = neuroshard::plan_task(task);
//   neuroshard::write_plan(planned.document, "plan.json");
#pragma once

#include "neuroshard/core/error.h"
#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/table.h"
#include "neuroshard/core/task.h"
#include "neuroshard/core/units.h"
#include "neuroshard/core/version.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/cost/simulator.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/io/task_io.h"
#include "neuroshard/plan/plan_task.h"
#include "neuroshard/plan/replan_task.h"
#include "neuroshard/report/planning_report.h"
#include "neuroshard/search/planner.h"
#include "neuroshard/workload/task_settings.h"
#include "neuroshard/workload/workload.h"
