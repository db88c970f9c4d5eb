// The processes of one evaluation.
#include "neuroshard/evaluate/distributed/process_evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "neuroshard/collect/communication/mpi_transport.h"
#include "neuroshard/collect/communication/nccl_transport.h"
#include "neuroshard/evaluate/distributed/core_shares.h"
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
    options.cuda->devices = {devices_of_process(options.cuda->devices).front()};
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

void require_columns_alone(const ShardingPlan& plan) {
  const auto slices = std::count_if(plan.shards.begin(), plan.shards.end(),
                                    [](const Shard& shard) { return !shard.has_all_rows(); });
  if (slices == 0 && plan.replicated_tables.empty()) return;
  throw CollectiveInputError(
      "plan",
      "a plan that cuts columns alone, as processes on GPUs do not add partial sums or sum up "
      "gradients of copies",
      fmt::format("slices of rows: {}, replicated tables: {}", slices,
                  plan.replicated_tables.size()));
}

/// Runs `body`, whose errors end the run.
template <typename F>
auto ending_run_with_errors(const MpiTransport& transport, const F& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    transport.end_run_with(error);
    throw;
  }
}

}  // namespace

std::optional<ProcessEvaluation> evaluate_among_processes(
    const Simulator& simulator, const ShardingPlan& plan, ProcessEvaluationOptions options,
    const std::function<void(int)>& on_iteration) {
  MpiTransport transport;
  return ending_run_with_errors(transport, [&]() -> std::optional<ProcessEvaluation> {
    if (options.cuda) require_columns_alone(plan);
    transport.require_agreement(fmt::format("plan {}, seed {}", options.plan_sha256, options.seed));
    // Before the process is limited to its share of the cores.
    const BackendDescription cpu = cpu_backend({}, 1).description;
    const CoreShare share = take_share_of_cores(transport);
    if (options.benchmark.num_threads <= 0) {
      options.benchmark.num_threads = static_cast<int>(share.cores.size());
    }
    const MeasuringProcess process(options, cpu, transport);
    ProcessEvaluation evaluation;
    evaluation.difference = measurement_difference(simulator.compute(), process.description());
    evaluation.oversubscribed = share.oversubscribed && !options.cuda;
    evaluation.measured = run_plan_iterations(simulator.task(), plan, process.backend(),
                                              {.repetitions = process.repetitions(),
                                               .seed = options.seed,
                                               .num_threads = options.benchmark.num_threads},
                                              process.transport(), on_iteration);
    if (transport.rank() != 0) return std::nullopt;
    evaluation.predicted = simulator.cost(plan);
    return evaluation;
  });
}

std::optional<ValueCheck> check_among_processes(const Task& task, const ShardingPlan& plan,
                                                ProcessEvaluationOptions options) {
  MpiTransport transport;
  return ending_run_with_errors(transport, [&] {
    transport.require_agreement(fmt::format("plan {}, seed {}", options.plan_sha256, options.seed));
    const CoreShare share = take_share_of_cores(transport);
    if (options.benchmark.num_threads <= 0) {
      options.benchmark.num_threads = static_cast<int>(share.cores.size());
    }
    ThreadPool pool(options.benchmark.num_threads);
    return check_values(task, plan, options.seed, options.benchmark.arena_bytes, transport, pool);
  });
}

}  // namespace neuroshard
