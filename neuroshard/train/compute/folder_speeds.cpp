// Speeds of hosts from a network of one of them.
#include "neuroshard/train/compute/folder_speeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "neuroshard/core/error.h"
#include "neuroshard/train/compute/model_test.h"

namespace neuroshard {

namespace {

/// Enough for a median.
constexpr int kEpochs = 100;

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().lexically_normal();
  return folder.empty() ? "." : folder;
}

std::vector<std::string> files_in(const std::string& folder,
                                  const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  std::copy_if(paths.begin(), paths.end(), std::back_inserter(files),
               [&](const std::string& path) { return folder_of(path) == folder; });
  return files;
}

double median_ratio(const ComputeCostModel& model, const std::vector<std::string>& files) {
  std::vector<FileTest> tests;
  for (const std::string& file : files) tests.push_back({file, test_compute_model(model, file)});
  return 1.0 + joined(tests).bias;
}

}  // namespace

std::vector<FolderSpeed> folder_speeds(const std::vector<std::string>& paths,
                                       const ComputeTrainingOptions& options,
                                       const std::function<void(const EpochStats&)>& on_epoch) {
  std::vector<FolderSpeed> speeds;
  for (const std::string& path : paths) {
    const std::string folder = folder_of(path);
    if (std::none_of(speeds.begin(), speeds.end(),
                     [&](const FolderSpeed& other) { return other.folder == folder; })) {
      speeds.push_back({folder});
    }
  }
  if (speeds.size() < 2) {
    throw InputError("costs", "files in two folders or more, of which each has a speed of its own",
                     speeds.empty() ? "none" : "all in " + speeds.front().folder);
  }
  ComputeTrainingOptions training = options;
  training.members = 1;
  training.loop.epochs = kEpochs;
  const std::vector<std::string> first = files_in(speeds.front().folder, paths);
  const ComputeTrainingResult reference = train_compute_model(
      load_compute_dataset(first, feature_schema_of(options.architecture)), training, on_epoch);
  const double own_ratio = median_ratio(*reference.model, first);
  for (std::size_t i = 1; i < speeds.size(); ++i) {
    speeds[i].speed =
        median_ratio(*reference.model, files_in(speeds[i].folder, paths)) / own_ratio;
  }
  return speeds;
}

void divide_by_speeds(ComputeDataset& dataset, const std::vector<std::string>& paths,
                      const std::vector<FolderSpeed>& speeds) {
  for (std::size_t file = 0; file < paths.size(); ++file) {
    const std::string folder = folder_of(paths[file]);
    const auto found =
        std::find_if(speeds.begin(), speeds.end(),
                     [&](const FolderSpeed& other) { return other.folder == folder; });
    if (found == speeds.end()) continue;
    const std::size_t end =
        file + 1 < paths.size() ? dataset.first_sample[file + 1] : dataset.size();
    for (std::size_t i = dataset.first_sample[file]; i < end; ++i) {
      dataset.cost_ms[i] /= found->speed;
    }
  }
  dataset.speeds = speeds;
}

}  // namespace neuroshard
