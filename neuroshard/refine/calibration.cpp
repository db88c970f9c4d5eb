// Measuring and adapting.
#include "neuroshard/refine/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <list>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "neuroshard/collect/compute/set_sampling.h"
#include "neuroshard/collect/compute/usual_speed.h"
#include "neuroshard/core/error.h"
#include "neuroshard/cost/model_file.h"
#include "neuroshard/io/compute_costs_io.h"
#include "neuroshard/io/file.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/refine/planned_sets.h"
#include "neuroshard/refine/range_sampling.h"
#include "neuroshard/search/planner.h"
#include "neuroshard/train/compute/model_test.h"
#include "neuroshard/workload/published_workloads.h"
#include "neuroshard/workload/workload.h"

namespace neuroshard {

namespace {

using Clock = std::chrono::steady_clock;

/// Batch sizes at which samples are measured, spread over what the trained range has of these.
constexpr int kBatchSizes = 3;
/// Share of the time limit that is for measuring, the rest for training.
constexpr double kMeasuringShare = 0.85;
/// Sets of expected costs for each second of the time limit, at the most: two minutes have a
/// thousand, with which training takes some twenty seconds.
constexpr double kExpectedPerSecond = 8.0;
constexpr double kFewestExpected = 100.0;
/// Samples of these are quick, so that minutes suffice for thousands.
constexpr double kMaxPassBytes = 1e9;
constexpr double kUsualMaxPassBytes = 2e8;
/// The passes of whole models at their own batch size move more, beyond every cache, on some
/// machines at another speed than small ones: a few samples of those, each of which takes seconds.
constexpr double kLargestPassBytes = 4e9;
constexpr double kShareOfLargePasses = 0.01;
/// Where in the logarithmic range of batch sizes they are measured.
constexpr double kBatchOfLargePasses = 0.9;

/// Share of the samples that are sets of the model's plans: what a search makes of tables differs
/// from what is drawn at random, and it is what will be priced.
constexpr double kShareOfPlans = 0.3;
/// Likewise of plans of the published workloads' tables: sets of many pieces that are alike, as
/// users have them, in which the error about one piece does not average out.
constexpr double kShareOfPublished = 0.3;
constexpr double kMaxPassBytesOfPublished = 2e9;
constexpr int kMostTablesOfPublished = 200;  // more take long to plan
constexpr int kMostSetsOfPublishedPlan = 4;

/// Tables of the tasks that plans are made for.
constexpr const char* kPlannedWorkload = "dlrm-2021";
constexpr std::int64_t kWidestPlanned = 128;

/// What the sets of a file are.
enum class SetsOf { coverage, large_passes, plans, published };
constexpr std::size_t kKindsOfSets = 4;

/// Samples of one batch size and optimizer, a file.
struct Group {
  std::int64_t batch_size = 0;
  Optimizer optimizer = Optimizer::sgd;
  SetsOf sets = SetsOf::coverage;

  friend bool operator==(const Group&, const Group&) = default;
};

/// Small and medium passes at the middles of equal parts of the logarithmic range of batch sizes,
/// so that both ends are near, then large passes, then plans at the same batch sizes as the first.
std::vector<Group> groups_of(const TrainedRange& range) {
  std::vector<Group> groups;
  const auto add = [&](double where, SetsOf sets) {
    for (const Optimizer optimizer : range.optimizers) {
      const Group group{batch_size_at(range, where), optimizer, sets};
      if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
    }
  };
  for (int i = 0; i < kBatchSizes; ++i) add((i + 0.5) / kBatchSizes, SetsOf::coverage);
  add(kBatchOfLargePasses, SetsOf::large_passes);
  for (const SetsOf sets : {SetsOf::plans, SetsOf::published}) {
    for (int i = 0; i < kBatchSizes; ++i) add((i + 0.5) / kBatchSizes, sets);
  }
  return groups;
}

/// How many of the samples are measured of each group.
std::vector<std::int64_t> samples_of_groups(const std::vector<Group>& groups,
                                            std::int64_t samples) {
  const auto share = [&](double of_all) {
    return static_cast<std::int64_t>(std::round(of_all * static_cast<double>(samples)));
  };
  const std::int64_t large = share(kShareOfLargePasses);
  const std::int64_t plans = share(kShareOfPlans);
  const std::int64_t published = share(kShareOfPublished);
  std::array<std::int64_t, kKindsOfSets> samples_left{samples - large - plans - published, large,
                                                      plans, published};
  std::array<std::int64_t, kKindsOfSets> groups_left{};
  for (const Group& group : groups) ++groups_left.at(static_cast<std::size_t>(group.sets));
  std::vector<std::int64_t> counts;
  for (const Group& group : groups) {
    std::int64_t& left = samples_left.at(static_cast<std::size_t>(group.sets));
    std::int64_t& among = groups_left.at(static_cast<std::size_t>(group.sets));
    counts.push_back((left + among - 1) / among);
    left -= counts.back();
    --among;
  }
  return counts;
}

std::string file_of_group(const CalibrationOptions& options, const Group& group) {
  constexpr std::array<std::string_view, kKindsOfSets> kEndings{"", "-large", "-plans",
                                                                "-published"};
  return fmt::format("{}/b{}-{}{}.jsonl", options.folder, group.batch_size,
                     to_string(group.optimizer), kEndings.at(static_cast<std::size_t>(group.sets)));
}

/// Of plans of tasks of the generated tables, in the model's range.
void sample_plans(ComputeSamplingOptions& sampling, const CalibrationOptions& options) {
  const TrainedRange& range = options.model->info().range;
  sampling.workload = kPlannedWorkload;
  sampling.tables = find_workload(sampling.workload, sampling.seed).tables;
  for (std::size_t i = 3; i < sampling.tables.size(); i += 4) {
    sampling.tables[i].data_type = DataType::fp16;  // as among the others
  }
  keep_data_types(range, sampling.tables);
  std::erase_if(sampling.dims, [](std::int64_t dim) { return dim > kWidestPlanned; });
  if (sampling.dims.empty()) sampling.dims = {range.min_columns, range.max_columns};
  use_planned_sets(sampling, {options.model, options.model->info().model_sha256},
                   options.num_threads);
}

/// Of plans of the published workloads, at their own widths.
void sample_published_plans(ComputeSamplingOptions& sampling, const CalibrationOptions& options) {
  PlannedSetsOptions planned{.pools = published_pools(),
                             .own_dims = true,
                             .max_tables_of_device = kMostTablesOfPublished,
                             .max_tables = kMostTablesOfPublished,
                             .max_sets_of_plan = kMostSetsOfPublishedPlan,
                             .max_pass_bytes = kMaxPassBytesOfPublished,
                             .batch_size = sampling.batch_size,
                             .optimizer = sampling.optimizer,
                             .seed = sampling.seed,
                             .num_threads = options.num_threads};
  sampling.workload = "published";
  sampling.tables.clear();
  for (Workload& pool : planned.pools) {
    keep_data_types(options.model->info().range, pool.tables);
    sampling.tables.insert(sampling.tables.end(), pool.tables.begin(), pool.tables.end());
  }
  use_planned_sets(sampling, std::move(planned),
                   {options.model, options.model->info().model_sha256});
}

ComputeSamplingOptions sampling_of(const CalibrationOptions& options, const Group& group,
                                   std::size_t number, bool has_reference_sets) {
  ComputeSamplingOptions sampling = coverage_within(options.model->info().range, group.batch_size,
                                                    group.optimizer, mix64(options.seed) + number);
  sampling.in_flight = kCalibrationInFlight;
  sampling.has_reference_sets = has_reference_sets;
  if (group.sets == SetsOf::plans) {
    sample_plans(sampling, options);
    return sampling;
  }
  if (group.sets == SetsOf::published) {
    sample_published_plans(sampling, options);
    return sampling;
  }
  const bool is_large = group.sets == SetsOf::large_passes;
  sampling.max_pass_bytes = is_large ? kLargestPassBytes : kMaxPassBytes;
  sampling.usual_max_pass_bytes = is_large ? kMaxPassBytes : kUsualMaxPassBytes;
  if (is_large) sampling.large_share = 1.0;
  return sampling;
}

/// Those of the calibration's files that are there.
std::vector<std::string> files_there(const CalibrationOptions& options) {
  std::vector<std::string> files = calibration_files(options);
  std::erase_if(files, [](const std::string& file) {
    std::error_code ignored;
    return !std::filesystem::is_regular_file(file, ignored);
  });
  return files;
}

/// None for a file that is not of costs: measuring says what it is instead.
std::optional<ComputeCosts> costs_in(const std::string& file) {
  try {
    return read_compute_costs(file);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

bool lacks_reference_sets(const std::string& file) {
  const std::optional<ComputeCosts> costs = costs_in(file);
  return costs && costs->header.reference_sets.empty();
}

std::int64_t samples_in(const std::string& file) {
  const std::optional<ComputeCosts> costs = costs_in(file);
  return costs ? static_cast<std::int64_t>(costs->samples.size()) : 0;
}

/// Whether the model that may be replaced was trained on exactly the costs of these files.
bool is_finished(const CalibrationOptions& options, const std::vector<std::string>& files) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(options.replaced_model, ignored)) return false;
  std::vector<std::string> trained_on;  // as `calibrate` does: those with samples
  for (const std::string& file : files) {
    const std::optional<ComputeCosts> costs = costs_in(file);
    if (!costs) return false;
    if (!costs->samples.empty()) trained_on.push_back(file);
  }
  if (trained_on.empty()) return false;
  try {
    return ModelFile(options.replaced_model).metadata("training_data_sha256") ==
           training_data_sha256(trained_on);
  } catch (const InputError&) {
    return false;  // another file than a model
  }
}

/// All of them or, where another process writes to one, none.
void remove_files(const std::vector<std::string>& files) {
  std::list<AppendFile> locked;
  for (const std::string& file : files) locked.emplace_back(file);
  for (const std::string& file : files) {
    std::error_code error;
    (void)std::filesystem::remove(file, error);
    if (error) throw InputError(file, "a file that can be removed", error.message());
  }
}

/// Measures what the files do not have yet, all of them together: whatever else slows the machine
/// for a while then slows samples of each group alike, and the time that there is suffices for as
/// many of each. Returns the number of samples that were there before.
std::int64_t measure(const CalibrationOptions& options, const std::vector<Group>& groups,
                     const std::function<void(const CollectionProgress&)>& on_sample) {
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                         kMeasuringShare * std::min(options.time_limit_seconds, kMostSeconds)));
  std::vector<std::string> there = files_there(options);
  const bool begins_anew = is_finished(options, there);
  const bool has_reference_sets =
      options.has_reference_sets &&
      (begins_anew || std::none_of(there.begin(), there.end(), lacks_reference_sets));
  const std::vector<std::int64_t> counts = samples_of_groups(groups, options.samples);
  std::vector<ComputeCollection> files;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    files.push_back({sampling_of(options, groups[g], g, has_reference_sets), counts[g],
                     file_of_group(options, groups[g])});
    files.back().sampling.deadline = deadline;
  }
  ComputeBackendFactory backend = options.backend;
  std::unique_ptr<ComputeBackend> made;
  if (begins_anew) {
    // All that may be refused is refused before the costs are lost.
    for (const ComputeCollection& file : files) {
      validate(file.sampling);
      (void)sample_pieces(file.sampling, 0);
    }
    made = options.backend.make();
    backend.make = [&made] { return std::move(made); };  // the collector asks for it once
    remove_files(there);
    there.clear();
  }
  std::int64_t samples_before = 0;
  for (const std::string& file : there) samples_before += samples_in(file);
  (void)collect_compute_costs(files, backend, on_sample);
  return samples_before;
}

/// The folder and those that it lies in, as far as they are not there, innermost first.
std::vector<std::filesystem::path> missing_folders(const std::string& folder) {
  std::vector<std::filesystem::path> missing;
  std::error_code ignored;
  std::filesystem::path path = folder;
  while (path.has_relative_path() && !std::filesystem::exists(path, ignored)) {
    missing.push_back(path);
    path = path.parent_path();
  }
  return missing;
}

/// Those of them that are there and empty.
void remove_empty_folders(const std::vector<std::filesystem::path>& folders) {
  std::error_code ignored;
  for (const std::filesystem::path& path : folders) {
    if (!std::filesystem::is_directory(std::filesystem::symlink_status(path, ignored))) continue;
    (void)std::filesystem::remove(path, ignored);  // fails where it is not empty
  }
}

/// Leaves no empty folder behind, where there was none, if nothing can be measured.
std::int64_t make_folder_and_measure(
    const CalibrationOptions& options,
    const std::function<void(const CollectionProgress&)>& on_sample) {
  const std::vector<std::filesystem::path> missing = missing_folders(options.folder);
  std::error_code error;
  const bool is_new = std::filesystem::create_directories(options.folder, error);
  if (error) {
    remove_empty_folders(missing);
    throw InputError(options.folder, "a folder to write to", error.message());
  }
  try {
    return measure(options, groups_of(options.model->info().range), on_sample);
  } catch (...) {
    if (is_new) remove_empty_folders(missing);
    throw;
  }
}

/// Fewer where there is little time.
int num_expected_sets(const CalibrationOptions& options) {
  return static_cast<int>(
      std::min(static_cast<double>(options.expected_sets),
               std::max(kFewestExpected, kExpectedPerSecond * options.time_limit_seconds)));
}

/// What the model was trained with (ComputeTrainingOptions::granularity_ms), which it records.
double granularity_of(const ComputeModelInfo& info) {
  const auto found = info.metrics.find("granularity_ms");
  return found == info.metrics.end() ? 0.0 : std::max(found->second, 0.0);
}

/// Without one sample in twenty at either end.
std::optional<SlownessRange> slowness_range(const std::vector<std::string>& files,
                                            const UsualSpeed& usual) {
  std::vector<ComputeCosts> costs;
  for (const std::string& file : files) costs.push_back(read_compute_costs(file));
  std::vector<double> slow = slowness(costs, usual);
  if (slow.empty()) return std::nullopt;
  std::sort(slow.begin(), slow.end());
  const std::size_t ends = slow.size() / 20;
  return SlownessRange{slow[ends], slow[slow.size() - 1 - ends]};
}

/// Of the model on all samples of the files, at the usual speed of their reference sets, if they
/// have any.
ModelTest test_on(const NeuralComputeModel& model, const std::vector<std::string>& files,
                  const UsualSpeed& usual) {
  ModelTestOptions options;
  if (!usual.empty()) options.usual = usual;
  std::vector<FileTest> tests;
  for (const std::string& file : files) {
    tests.push_back({file, test_compute_model(model, file, options)});
  }
  return joined(tests);
}

}  // namespace

RepetitionOptions calibration_repetitions() {
  RepetitionOptions repetitions;
  repetitions.max_seconds = 0.6;
  repetitions.max_repetitions = 32;
  repetitions.hurried_repetitions = 5;
  return repetitions;
}

std::vector<std::string> calibration_files(const CalibrationOptions& options) {
  std::vector<std::string> files;
  for (const Group& group : groups_of(options.model->info().range)) {
    files.push_back(file_of_group(options, group));
  }
  return files;
}

namespace {

/// Whether the model was trained on costs of this operator, or does not say of which.
bool is_of_operator(const NeuralComputeModel& model, const Json& operator_info) {
  if (model.operator_info().empty()) return true;
  const Json measured = parse_json(model.operator_info(), model.name() + ": operator");
  const Json* before = measured.find("name");
  const Json* here = operator_info.find("name");
  return before == nullptr || here == nullptr || *before == *here;
}

}  // namespace

CalibrationResult calibrate(const CalibrationOptions& options,
                            const std::function<void(const CollectionProgress&)>& on_sample,
                            const std::function<void(const EpochStats&)>& on_epoch) {
  const std::int64_t samples_before = make_folder_and_measure(options, on_sample);

  std::vector<std::string> files;
  std::int64_t samples = 0;
  for (const std::string& file : calibration_files(options)) {
    const auto count = static_cast<std::int64_t>(read_compute_costs(file).samples.size());
    if (count == 0) continue;  // none was wanted, or the time did not suffice for its first
    samples += count;
    files.push_back(file);
  }
  if (samples < static_cast<std::int64_t>(kFewestTrainingSamples)) {
    throw InputError(
        "calibration",
        fmt::format("at least {} measured samples: a longer time limit", kFewestTrainingSamples),
        fmt::format("{}", samples));
  }
  ComputeTrainingOptions training;
  training.initial = options.model;
  training.has_test = false;
  training.num_threads = options.num_threads;
  training.seed = options.seed;
  training.name = options.name;
  // Samples are of batch sizes within the range: without the rest, calibrating what was calibrated
  // would know less each time.
  training.keeps_range = is_of_operator(*options.model, options.backend.description.operator_info);
  training.granularity_ms = granularity_of(options.model->info());
  training.unmeasured = std::make_shared<const ComputeDataset>(sets_within(
      options.model->info().range, num_expected_sets(options), mix64(options.seed + 1)));
  const ComputeTrainingResult trained =
      train_compute_model(load_compute_dataset(files, FeatureSchema::work), training, on_epoch);

  CalibrationResult result;
  result.model = trained.model;
  result.samples = samples;
  result.samples_before = samples_before;
  result.validation = trained.validation;
  result.scatter = trained.scatter;
  const UsualSpeed& usual = trained.model->info().reference_ms;
  const ModelTest before = test_on(*options.model, files, usual);
  result.before = before.metrics;
  result.speed = 1.0 + before.bias;
  result.slowness = slowness_range(files, usual);
  result.after = test_on(*result.model, files, usual).metrics;
  return result;
}

}  // namespace neuroshard
