// The processes of one evaluation.
#include "neuroshard/evaluate/distributed/process_evaluation.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "neuroshard/collect/communication/mpi_transport.h"
#include "neuroshard/collect/communication/nccl_transport.h"
#include "neuroshard/evaluate/distributed/plan_iterations.h"
#include "neuroshard/evaluate/plan_evaluation.h"

namespace neuroshard {

namespace {

/// The backend that one process computes on, and its transport to the others.
class MeasuringProcess {
 public:
  MeasuringProcess(ProcessEvaluationOptions& options, const BackendDescription& cpu,
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

std::optional<ProcessEvaluation> evaluate_among_processes(
    const Simulator& simulator, const ShardingPlan& plan, ProcessEvaluationOptions options,
    const std::function<void(int)>& on_iteration) {
  MpiTransport transport;
  try {
    transport.require_agreement(fmt::format("plan {}, seed {}", options.plan_sha256, options.seed));
    // Before the process is limited to its share of the cores.
    const BackendDescription cpu = cpu_backend({}, 1).description;
    const ProcessShare share = take_share_of_cores(transport);
    if (options.benchmark.num_threads <= 0) options.benchmark.num_threads = share.num_threads;
    const MeasuringProcess process(options, cpu, transport);
    ProcessEvaluation evaluation;
    evaluation.difference = measurement_difference(simulator.compute(), process.description());
    evaluation.oversubscribed = share.oversubscribed && !options.cuda;
    evaluation.measured =
        run_plan_iterations(simulator.task(), plan, process.backend(), process.repetitions(),
                            options.seed, process.transport(), on_iteration);
    if (transport.rank() != 0) return std::nullopt;
    evaluation.predicted = simulator.cost(plan);
    return evaluation;
  } catch (const std::exception& error) {
    transport.end_run_with(error);
    throw;
  }
}

}  // namespace neuroshard
