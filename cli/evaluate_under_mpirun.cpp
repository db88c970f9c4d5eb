// What measured iterations look like beside predicted ones.
#include "cli/evaluate_under_mpirun.h"

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "cli/iteration_report.h"
#include "cli/progress.h"
#include "cli/warnings.h"
#include "neuroshard/collect/communication/nccl_transport.h"
#include "neuroshard/core/error.h"
#include "neuroshard/evaluate/distributed/plan_iterations.h"
#include "neuroshard/evaluate/plan_evaluation.h"
#include "neuroshard/io/json/json.h"

namespace neuroshard::cli {

namespace {

void print_json(const PlanCost& predicted, const PlanIterations& measured, bool oversubscribed) {
  Json::Array devices;
  for (std::size_t d = 0; d < measured.devices.size(); ++d) {
    const DeviceCost& expected = predicted.devices[d];
    const DeviceIteration& actual = measured.devices[d];
    devices.push_back(Json::Object{{"predicted_backward_comm_ms", expected.backward_comm_ms},
                                   {"measured_backward_comm_ms", actual.backward_comm_ms},
                                   {"predicted_compute_ms", expected.compute_ms},
                                   {"measured_update_ms", actual.update_ms},
                                   {"measured_lookup_ms", actual.lookup_ms},
                                   {"predicted_forward_comm_ms", expected.forward_comm_ms},
                                   {"measured_forward_comm_ms", actual.forward_comm_ms},
                                   {"predicted_total_ms", expected.total_ms()},
                                   {"measured_total_ms", actual.total_ms()}});
  }
  const CriticalPath path = critical_path(measured.devices);
  const Json result = Json::Object{{"predicted_ms", predicted.cost_ms},
                                   {"measured_ms", measured.cost_ms},
                                   {"interval", measured.interval},
                                   {"iterations", measured.iterations},
                                   {"oversubscribed", oversubscribed},
                                   {"last_to_enter", static_cast<std::int64_t>(path.last_to_enter)},
                                   {"last_to_end", static_cast<std::int64_t>(path.last_to_end)},
                                   {"devices", std::move(devices)}};
  fmt::print("{}\n", to_line(result));
}

/// What one process computes on, and how it reaches the others.
class MeasuringProcess {
 public:
  MeasuringProcess(DistributedEvaluation& options, const BackendDescription& cpu,
                   MpiTransport& processes)
      : processes_(processes),
        repetitions_(options.cuda ? options.cuda->repetitions : options.benchmark.repetitions) {
    if (!options.cuda) {
      description_ = cpu;
      backend_ = cpu_backend(options.benchmark, 1).make();
      return;
    }
    options.cuda->devices = {devices_of_process().front()};
    const ComputeBackendFactory factory = cuda_backend(*options.cuda);
    description_ = factory.description;
    backend_ = factory.make();
    if (processes.size() > 1) {
      transport_ = make_nccl_transport(processes, options.cuda->devices.front());
    }
  }

  [[nodiscard]] const BackendDescription& description() const { return description_; }
  [[nodiscard]] const RepetitionOptions& repetitions() const { return repetitions_; }
  [[nodiscard]] ComputeBackend& backend() const { return *backend_; }
  [[nodiscard]] Transport& transport() const { return transport_ ? *transport_ : processes_; }

 private:
  Transport& processes_;
  RepetitionOptions repetitions_;
  BackendDescription description_;
  std::unique_ptr<ComputeBackend> backend_;
  std::unique_ptr<Transport> transport_;
};

}  // namespace

void evaluate_under_mpirun(const Simulator& simulator, const ShardingPlan& plan,
                           DistributedEvaluation options) {
  MpiTransport transport;
  try {
    transport.require_agreement(fmt::format("plan {}, seed {}", options.plan_sha256, options.seed));
    // Before the process has only its share of the cores.
    const BackendDescription cpu = cpu_backend({}, 1).description;
    const ProcessShare share = take_share_of_cores(transport);
    if (options.benchmark.num_threads <= 0) options.benchmark.num_threads = share.num_threads;
    const MeasuringProcess process(options, cpu, transport);
    const std::string difference =
        measurement_difference(simulator.compute(), process.description());
    PlanIterations measured;
    {
      ProgressLine line;
      measured = run_plan_iterations(
          simulator.task(), plan, process.backend(), process.repetitions(), options.seed,
          process.transport(),
          [&](int iterations) { line.show(fmt::format("{} iterations", iterations)); });
    }
    if (transport.rank() != 0) return;
    warn_of_measurement_difference(simulator.compute(), difference);
    if (share.oversubscribed && !options.cuda) {
      fmt::print(stderr,
                 "neuroshard: warning: more processes than cores: they take turns, and what is "
                 "measured is longer than devices of their own would take\n");
    }
    const PlanCost predicted = simulator.cost(plan);
    if (options.json) {
      print_json(predicted, measured, share.oversubscribed);
    } else {
      print_iterations(predicted, measured.devices, "measured");
      fmt::print(
          "plan cost: predicted {:.3f} ms, measured {:.3f} ms +- {:.1f}% ({} iterations; "
          "prediction {:+.1f}%)\n",
          predicted.cost_ms, measured.cost_ms, 100.0 * measured.interval, measured.iterations,
          100.0 * (predicted.cost_ms / measured.cost_ms - 1.0));
    }
  } catch (const std::exception& error) {
    transport.end_run_with(error);
    throw;
  }
}

}  // namespace neuroshard::cli
