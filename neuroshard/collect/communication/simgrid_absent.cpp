// Stands in for SimGrid in builds without it (option NEUROSHARD_SIMGRID).
#include "neuroshard/collect/communication/simgrid_simulation.h"
#include "neuroshard/core/error.h"

namespace neuroshard {

namespace {

[[noreturn]] void fail() {
  throw MachineError(
      "simgrid: expected an executable built with SimGrid, got one without, as wheels and `make "
      "portable` have; `make` builds one with it");
}

}  // namespace

void simulate_all_to_alls(const SimulationOptions&,
                          const std::function<std::optional<NumberedCase>()>&,
                          const std::function<void(std::int64_t, const AllToAllMeasurement&)>&) {
  fail();
}

void simulate_all_reduces(const SimulationOptions&,
                          const std::function<std::optional<NumberedBytes>()>&,
                          const std::function<void(std::int64_t, const CollectiveMeasurement&)>&) {
  fail();
}

void simulate_iterations(const SimulationOptions&,
                         const std::function<std::optional<NumberedIteration>()>&,
                         const std::function<void(std::int64_t, const IterationTimes&)>&) {
  fail();
}

}  // namespace neuroshard
