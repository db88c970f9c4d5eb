// `neuroshard collect`: measures computation and communication costs, or simulates the latter;
// merges files of several processes.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/options/conventions.h"
#include "cli/options/gpu_options.h"
#include "cli/options/options.h"
#include "cli/streams/console.h"
#include "cli/streams/output.h"
#include "cli/streams/progress.h"
#include "neuroshard/collect/communication/communication_collector.h"
#include "neuroshard/collect/communication/process_collection.h"
#include "neuroshard/collect/compute/compute_collector.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/units.h"
#include "neuroshard/io/compute_costs_merge.h"
#include "neuroshard/io/output_files.h"
#include "neuroshard/refine/compute_collections.h"
#include "neuroshard/report/collection_report.h"

namespace neuroshard::cli {

namespace {

struct CollectComputeOptions {
  std::string workload = "dlrm-2021";
  std::uint64_t workload_seed = 0;
  std::int64_t samples = 10'000;
  std::string tables = "1:15";
  std::string memory = "4GiB";
  std::string arena = "4GiB";
  std::vector<std::int64_t> batch_sizes{4096};
  std::vector<std::string> optimizers{"sgd"};
  std::string data_type;
  std::string sets = "uniform";
  std::string max_pass = "10GB";
  std::string least_sure;
  std::string planned_by;
  int candidates = 8;
  std::string output;
  ComputeSamplingOptions sampling;
  BackendOptions measuring;
};

void set_sampling(CollectComputeOptions& options) {
  ComputeSamplingOptions& sampling = options.sampling;
  if ((options.sets == "plans") != !options.planned_by.empty()) {
    throw InputError("--sets plans and --planned-by go together");
  }
  if (options.sets == "uniform") return;
  options.measuring.cpu.repetitions =
      coverage_repetitions(options.measuring.cpu.repetitions.quantile);
  if (options.sets != "coverage") return;
  sampling.sampling = SetSampling::coverage;
  set_max_pass(sampling, parse_bytes(options.max_pass, "--max-pass"));
}

/// Throws if an option was given that would do nothing.
void refuse_unused(const CLI::App& command, const CollectComputeOptions& options) {
  for (const char* name : {"max-pass", "large", "slices"}) {
    if (options.sets == "coverage" || !was_given(command, name)) continue;
    throw InputError(fmt::format("--{} needs --sets coverage, got {}", name, options.sets));
  }
  if (options.least_sure.empty() && was_given(command, "candidates")) {
    throw InputError("--candidates needs --least-sure");
  }
}

CollectionRequest request_of(const CollectComputeOptions& options) {
  CollectionRequest request{.sampling = options.sampling,
                            .workload_seed = options.workload_seed,
                            .batch_sizes = options.batch_sizes,
                            .optimizers = {},
                            .data_type = std::nullopt,
                            .num_samples = options.samples,
                            .path = options.output,
                            .least_sure = options.least_sure,
                            .planned_by = options.planned_by,
                            .num_threads = options.measuring.cpu.num_threads};
  for (const std::string& optimizer : options.optimizers) {
    request.optimizers.push_back(parse_optimizer(optimizer, "--optimizer"));
  }
  if (!options.data_type.empty()) {
    request.data_type = parse_data_type(options.data_type, "--data-type");
  }
  request.sampling.candidates = options.candidates;
  return request;
}

bool has_fp16(const ComputeCollection& file) {
  const std::vector<Table>& tables = file.sampling.tables;
  return std::any_of(tables.begin(), tables.end(),
                     [](const Table& table) { return table.data_type == DataType::fp16; });
}

void run(const CLI::App& command, CollectComputeOptions& options) {
  refuse_unused(command, options);
  ComputeSamplingOptions& sampling = options.sampling;
  sampling.workload = options.workload;
  set_sampling(options);
  sampling.memory_bytes = parse_bytes(options.memory, "--memory");
  std::tie(sampling.min_tables, sampling.max_tables) = parse_range(options.tables, "--tables");
  options.measuring.cpu.arena_bytes = parse_bytes(options.arena, "--arena");
  if (options.measuring.on_gpus()) {
    if (sampling.has_reference_sets) throw InputError("--reference-sets goes with --backend cpu");
    sampling.group = process_group();
  }
  const std::vector<ComputeCollection> files = compute_collections(request_of(options));
  // Halves in pairs are ordinary fp32 values too.
  options.measuring.cpu.data_type =
      std::any_of(files.begin(), files.end(), [](const auto& file) { return has_fp16(file); })
          ? DataType::fp16
          : DataType::fp32;
  const ComputeBackendFactory backend = chosen_backend(options.measuring, sampling.in_flight);

  ProgressLine line;
  const std::int64_t measured = collect_compute_costs(
      files, backend,
      [&](const CollectionProgress& progress) { line.show(collection_progress_text(progress)); });
  say_done(collected_text(path_of_rank(options.output, sampling.group), measured));
}

void add_compute(CLI::App& collect) {
  auto options = std::make_shared<CollectComputeOptions>();
  CLI::App* command =
      collect.add_subcommand("compute", "Measure forward and backward time of the fused operator");
  command->add_option("--workload", options->workload, "Tables to draw from")
      ->capture_default_str();
  command->add_option("--workload-seed", options->workload_seed, "Seed of a generated workload")
      ->check(seed())
      ->capture_default_str();
  command->add_option("--samples", options->samples, "Samples a file should have in the end")
      ->capture_default_str()
      ->check(integer_between(1, 1'000'000'000));
  command
      ->add_option(
          "--batch-size", options->batch_sizes,
          "Samples per batch; several, separated by commas, are measured into a file each, "
          "with the next seeds, and alternate")
      ->delimiter(',')
      ->check(integer_between(1, kMaxBatchSize))
      ->capture_default_str();
  command
      ->add_option("--optimizer", options->optimizers,
                   "sgd or rowwise_adagrad; or both, separated by commas, into a file each")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--data-type", options->data_type, "fp32 or fp16; default: each table's own");
  command
      ->add_option("--sets", options->sets,
                   "uniform: as many random pieces as --tables says and --memory holds; coverage: "
                   "sets that cover every order of magnitude of bytes moved, with slices of rows; "
                   "plans: those of the devices of plans of random tasks")
      ->check(one_of({"uniform", "coverage", "plans"}))
      ->capture_default_str();
  command
      ->add_option("--max-pass", options->max_pass,
                   "With --sets coverage: bytes that a forward pass moves at most")
      ->capture_default_str();
  command
      ->add_option("--large", options->sampling.large_share,
                   "With --sets coverage: share of the sets that move more than a tenth of "
                   "--max-pass")
      ->check(number_between(0.0, 1.0))
      ->capture_default_str();
  command
      ->add_option("--slices", options->sampling.slice_share,
                   "With --sets coverage: share of the pieces that are slices of rows")
      ->check(share_below_one())
      ->capture_default_str();
  command->add_option("--planned-by", options->planned_by,
                      "With --sets plans: computation model, by name or file, that plans are "
                      "made by");
  command->add_option(
      "--least-sure", options->least_sure,
      "Measure where this model's networks disagree most: of --candidates sets that "
      "are drawn for a sample, that one");
  command->add_option("--candidates", options->candidates, "Sets to choose from with --least-sure")
      ->check(integer_between(1, 10'000))
      ->capture_default_str();
  command
      ->add_option("--tables", options->tables,
                   "Pieces in a sample, as MIN:MAX; plans have their own")
      ->capture_default_str();
  command
      ->add_option("--dims", options->sampling.dims,
                   "Numbers of columns at which each table occurs, separated by commas or spaces; "
                   "tables of plans have from 4 to the largest of them")
      ->delimiter(',')
      ->check(integer_between(1, kMaxEmbeddingDim))
      ->default_str("4 8 12 ... 128");
  command
      ->add_option("--held-out", options->sampling.held_out_share,
                   "Share of the tables kept from training, and of the samples made of them")
      ->check(share_below_one())
      ->capture_default_str();
  command
      ->add_option("--memory", options->memory, "Memory of a sample's pieces; plans have their own")
      ->capture_default_str();
  command->add_option("--arena", options->arena, "Memory to take for the tables")
      ->capture_default_str();
  command
      ->add_option(
          "--in-flight", options->sampling.in_flight,
          "With cpu: samples whose passes alternate: faster and steadier; a killed run loses "
          "these")
      ->check(integer_between(1, 4096))
      ->capture_default_str();
  command->add_flag(
      "--reference-sets", options->sampling.has_reference_sets,
      "With cpu: measure sixteen sets, always the same ones, all along and record with each sample "
      "what they took meanwhile: training then tells the machine's slow minutes from costs");
  command
      ->add_option(
          "--quantile", options->measuring.quantile,
          "Quantile of a sample's repetitions; default 0.25 with cpu, 0.5 (the median) with cuda")
      ->check(number_between(0.01, 0.99));
  add_backend_options(*command, options->measuring);
  add_thread_option(*command, options->measuring);
  command->add_option("--seed", options->sampling.seed, "Seed of the sequence of samples")
      ->check(seed())
      ->capture_default_str();
  command
      ->add_option("-o,--output", options->output,
                   "File to write or to continue (.jsonl); {batch_size} and {optimizer} in it "
                   "stand for these")
      ->check(refused_dash)
      ->required();
  add_examples(*command, {"collect compute --workload dlrm-2021 --samples 10000 -o costs.jsonl",
                          "collect compute --workload coverage --sets coverage "
                          "--batch-size 2048,65536 -o costs-{batch_size}.jsonl"});
  command->callback([options, command] { run(*command, *options); });
}

struct CollectCommunicationOptions {
  std::string backend;
  std::string platform;
  std::string data_type = "fp32";
  std::string kind = "all-to-all";
  CommunicationCollection collection;
};

/// Throws if an option was given that all-to-alls alone have: other kinds are of fp32, without
/// lags.
void refuse_options_of_all_to_alls(const CLI::App& command,
                                   const CollectCommunicationOptions& options) {
  const CommunicationCollection& collection = options.collection;
  if (collection.kind == CollectedKind::all_to_all) return;
  if (collection.sampling.data_type != DataType::fp32) {
    throw InputError("--data-type", "fp32 with --kind " + options.kind, options.data_type);
  }
  if (was_given(command, "max-start-ms")) {
    throw InputError("--max-start-ms needs --kind all-to-all, got " + options.kind);
  }
}

void run(const CLI::App& command, CollectCommunicationOptions& options) {
  CommunicationCollection& collection = options.collection;
  CommunicationSamplingOptions& sampling = collection.sampling;
  sampling.data_type = parse_data_type(options.data_type, "--data-type");
  collection.kind = options.kind == "all-reduce"     ? CollectedKind::all_reduce
                    : options.kind == "partial-sums" ? CollectedKind::partial_sums
                                                     : CollectedKind::all_to_all;
  refuse_options_of_all_to_alls(command, options);
  if (collection.local_world_size == 0) collection.local_world_size = sampling.world_size;
  if (sampling.world_size % collection.local_world_size != 0) {
    throw InputError("--local-devices", fmt::format("a divisor of {} devices", sampling.world_size),
                     fmt::format("{}", collection.local_world_size));
  }
  ProgressLine line;
  collection.on_progress = [&](const CollectionProgress& progress) {
    line.show(collection_progress_text(progress));
  };
  std::int64_t measured = 0;
  if (options.backend == "simgrid") {
    if (options.platform.empty()) {
      throw InputError("--backend simgrid needs --platform");
    }
    refuse_output_that_is_input(collection.path, {options.platform});
    measured = simulate_communication_costs(collection, options.platform);
  } else {
    if (!options.platform.empty()) {
      throw InputError("--platform needs --backend simgrid, got " + options.backend);
    }
    const std::optional<std::int64_t> of_all = collect_among_processes(
        collection, options.backend == "nccl" ? MessageMemory::gpu : MessageMemory::host);
    if (!of_all) return;
    measured = *of_all;
  }
  say_done(collected_text(collection.path, measured));
}

void add_communication(CLI::App& collect) {
  auto options = std::make_shared<CollectCommunicationOptions>();
  CLI::App* command = collect.add_subcommand(
      "communication",
      "Time the forward and backward all-to-all of pooled embeddings, or what slices of rows and "
      "replicated tables add to them");
  CommunicationCollection& collection = options->collection;
  command
      ->add_option(
          "--backend", options->backend,
          "Under mpirun with one process per device, mpi: measure between hosts' memories, "
          "nccl: between GPUs; simgrid: simulate")
      ->check(one_of({"mpi", "nccl", "simgrid"}))
      ->required();
  command
      ->add_option(
          "--kind", options->kind,
          "all-to-all; all-reduce: of the gradients of replicated tables; partial-sums: "
          "their addition by the receiver (with mpi). One kind a file; train communication "
          "takes files of all kinds together")
      ->check(one_of({"all-to-all", "all-reduce", "partial-sums"}))
      ->capture_default_str();
  command->add_option("--platform", options->platform,
                      "With simgrid: name of a preset, or a SimGrid platform file (.xml)");
  command->add_option("--interconnect", collection.interconnect,
                      "Name of the interconnect; default the platform's");
  command->add_option("--devices", collection.sampling.world_size, "Number of devices")
      ->check(integer_between(2, 4096))
      ->required();
  command
      ->add_option("--local-devices", collection.local_world_size, "Devices per host; default all")
      ->check(integer_between(1, 4096));
  collection.local_world_size = 0;
  command
      ->add_option("--samples", collection.num_samples, "Samples the file should have in the end")
      ->check(integer_between(1, 1'000'000'000))
      ->capture_default_str();
  command->add_option("--batch-size", collection.sampling.batch_size, "Samples over all devices")
      ->check(integer_between(1, kMaxBatchSize))
      ->capture_default_str();
  command->add_option("--data-type", options->data_type, "fp32 or fp16")->capture_default_str();
  command->add_option("--max-start-ms", collection.sampling.max_start_ms, "Largest lag")
      ->check(number_between(0.0, 1e6))
      ->capture_default_str();
  command->add_option("--seed", collection.sampling.seed, "Seed of the sequence of samples")
      ->check(seed())
      ->capture_default_str();
  command->add_option("-o,--output", collection.path, "File to write or to continue (.jsonl)")
      ->check(refused_dash)
      ->required();
  add_examples(*command, {"collect communication --backend simgrid --platform pcie4 --devices 4 "
                          "--samples 1000 -o communication.jsonl"});
  command->callback([options, command] { run(*command, *options); });
}

struct MergeOptions {
  std::vector<std::string> costs;
  bool force = false;
  std::string output;
};

void add_merge(CLI::App& collect) {
  auto options = std::make_shared<MergeOptions>();
  CLI::App* command =
      collect.add_subcommand("merge", "Merge the per-process files of one collection");
  add_input_option(*command, "costs", options->costs,
                   "Files of measured computation costs (.jsonl[.gz])")
      ->required();
  add_output_file_option(*command, options->output, options->force, "File to write (.jsonl[.gz])")
      ->required();
  add_examples(*command, {"collect merge costs-0.jsonl costs-1.jsonl -o costs.jsonl.gz"});
  command->callback([options] {
    refuse_output_that_is_input(options->output, options->costs);
    check_output(options->output, options->force);
    const MergedCosts merged = merge_compute_costs(options->costs, options->output);
    say_done(merged_text(options->output, merged));
  });
}

}  // namespace

void add_collect_command(CLI::App& app) {
  CLI::App* collect = app.add_subcommand("collect", "Measure costs to train cost models on");
  collect->require_subcommand(1);
  add_compute(*collect);
  add_communication(*collect);
  add_merge(*collect);
}

}  // namespace neuroshard::cli
