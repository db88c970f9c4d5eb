// Speeds of hosts from a network of one of them.
#include "neuroshard/train/compute/folder_speeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <system_error>

#include "neuroshard/core/error.h"
#include "neuroshard/train/compute/model_test.h"

namespace neuroshard {

namespace {

/// Of the network that the others are compared with: enough for a median.
constexpr int kEpochs = 100;
/// Hosts of one kind do not differ by more.
constexpr double kLargestSpeed = 100.0;

struct Folder {
  std::filesystem::path path;  ///< without links and dots, so that a folder is one by any name
  FolderSpeed speed;
  std::vector<std::size_t> files;  ///< places in the list of all files
};

std::vector<Folder> folders_of(const std::vector<std::string>& paths) {
  std::vector<Folder> folders;
  for (std::size_t file = 0; file < paths.size(); ++file) {
    const std::filesystem::path given = std::filesystem::path(paths[file]).parent_path();
    std::error_code failed;
    std::filesystem::path path =
        std::filesystem::weakly_canonical(given.empty() ? "." : given, failed);
    if (failed) path = given;
    auto found = std::find_if(folders.begin(), folders.end(),
                              [&](const Folder& folder) { return folder.path == path; });
    if (found == folders.end()) {
      folders.push_back({path, {given.empty() ? "." : given.string()}, {}});
      found = folders.end() - 1;
    }
    found->files.push_back(file);
  }
  return folders;
}

/// Median over the samples in a folder of measured over predicted cost.
double median_ratio(const ComputeCostModel& model, const Folder& folder,
                    const std::vector<std::string>& paths) {
  std::vector<FileTest> tests;
  for (const std::size_t file : folder.files) {
    if (read_compute_costs(paths[file]).samples.empty()) continue;
    tests.push_back({paths[file], test_compute_model(model, paths[file])});
  }
  if (tests.empty()) throw InputError(folder.speed.folder, "measured samples", "none");
  return 1.0 + joined(tests).bias;
}

/// A network of the samples in one folder.
std::shared_ptr<const NeuralComputeModel> reference_model(
    const Folder& folder, const std::vector<std::string>& paths, std::uint64_t seed,
    int num_threads, const std::function<void(const EpochStats&)>& on_epoch) {
  ComputeTrainingOptions options;
  options.members = 1;
  options.loop.epochs = kEpochs;
  options.seed = seed;
  options.num_threads = num_threads;
  std::vector<std::string> files;
  for (const std::size_t file : folder.files) files.push_back(paths[file]);
  const ComputeDataset dataset =
      load_compute_dataset(files, feature_schema_of(options.architecture));
  if (dataset.num_known() < kFewestTrainingSamples) {
    throw InputError(folder.speed.folder,
                     fmt::format("at least {} samples to train on in the first folder, with which "
                                 "the others are compared",
                                 kFewestTrainingSamples),
                     fmt::format("{}", dataset.num_known()));
  }
  return train_compute_model(dataset, options, on_epoch).model;
}

}  // namespace

std::vector<FolderSpeed> folder_speeds(const std::vector<std::string>& paths, std::uint64_t seed,
                                       int num_threads,
                                       const std::function<void(const EpochStats&)>& on_epoch) {
  std::vector<Folder> folders = folders_of(paths);
  if (folders.size() < 2) {
    throw InputError("costs", "files in two folders or more, of which each has a speed of its own",
                     folders.empty() ? "none" : "all in " + folders.front().speed.folder);
  }
  const auto model = reference_model(folders.front(), paths, seed, num_threads, on_epoch);
  const double own_ratio = median_ratio(*model, folders.front(), paths);
  std::vector<FolderSpeed> speeds;
  for (Folder& folder : folders) {
    double& speed = folder.speed.speed;
    if (!speeds.empty()) speed = median_ratio(*model, folder, paths) / own_ratio;
    if (!(speed >= 1.0 / kLargestSpeed && speed <= kLargestSpeed)) {
      throw InputError(folder.speed.folder,
                       fmt::format("costs between 1/{0:g} of those of {1} and {0:g} times as much",
                                   kLargestSpeed, folders.front().speed.folder),
                       fmt::format("{:g} times", speed));
    }
    speeds.push_back(folder.speed);
  }
  return speeds;
}

void divide_by_speeds(ComputeDataset& dataset, const std::vector<std::string>& paths,
                      const std::vector<FolderSpeed>& speeds) {
  const std::vector<Folder> folders = folders_of(paths);
  assert(folders.size() == speeds.size());
  for (std::size_t place = 0; place < folders.size(); ++place) {
    for (const std::size_t file : folders[place].files) {
      const std::size_t end =
          file + 1 < paths.size() ? dataset.first_sample[file + 1] : dataset.size();
      for (std::size_t i = dataset.first_sample[file]; i < end; ++i) {
        dataset.cost_ms[i] /= speeds[place].speed;
      }
    }
  }
  dataset.speeds = speeds;
}

}  // namespace neuroshard
