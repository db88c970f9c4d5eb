// A simulator by analytic models, for tests.
#pragma once

#include <memory>

#include "neuroshard/cost/communication/analytic_communication.h"
#include "neuroshard/cost/compute/analytic_compute.h"
#include "neuroshard/cost/simulator.h"

namespace neuroshard::testing_tasks {

inline Simulator analytic(const Task& task, const char* hardware = "a100-40gb",
                          const char* interconnect = "a100-nvswitch") {
  return {task, std::make_shared<AnalyticComputeModel>(find_compute_hardware(hardware)),
          std::make_shared<AnalyticCommunicationModel>(find_interconnect(interconnect))};
}

}  // namespace neuroshard::testing_tasks
