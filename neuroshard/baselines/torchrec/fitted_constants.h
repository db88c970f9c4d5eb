// TorchRec's constants of a machine, fitted to the cost models that stand for it.
#pragma once

#include "neuroshard/baselines/torchrec/perf_estimate.h"
#include "neuroshard/core/stop_clock.h"
#include "neuroshard/cost/simulator.h"

namespace neuroshard::torchrec {

/// The rates with which TorchRec's estimate comes closest to the simulator's models on its task:
///   device       the tables, whole and dealt out to the devices one by one, take as long in all
///                by the estimate of their computation as by the computation model
///   inter_host, intra_host
///                all devices hold equal columns: bytes of pooled outputs on a device, forward and
///                backward, over the time of both all-to-alls; in one host, of its devices alone
///   all_reduce   of 25 MiB, a bucket of PyTorch's DistributedDataParallel
/// A rate is infinite where a model says that there is no wait. Throws TimeIsOver.
[[nodiscard]] MachineConstants fitted_constants(const Simulator& simulator,
                                                const StopClock& clock = {});

}  // namespace neuroshard::torchrec
