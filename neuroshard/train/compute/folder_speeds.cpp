// Speeds of hosts from sets that several of them measured, or from a network of one of them.
#include "neuroshard/train/compute/folder_speeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/train/compute/model_test.h"

namespace neuroshard {

namespace {

/// Of the network that the others are compared with: enough for a median.
constexpr int kEpochs = 100;
/// Hosts of one kind do not differ by more.
constexpr double kLargestSpeed = 100.0;
/// Of fewer sets that two folders share the median is no better than a network's.
constexpr std::size_t kFewestPairs = 30;

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

InputError no_samples(const Folder& folder) {
  return {folder.speed.folder, "measured samples", "none"};
}

/// Median over the samples in folders of measured cost, brought to the speed of the first folder,
/// over predicted cost. Of samples with reference sets, the cost at the usual speed.
double median_ratio(const ComputeCostModel& model, std::span<const Folder> folders,
                    const std::vector<std::string>& paths, const UsualSpeed& usual) {
  std::vector<TestedSample> samples;
  for (const Folder& folder : folders) {
    for (const std::size_t file : folder.files) {
      const ComputeCosts costs = read_compute_costs(paths[file]);
      if (costs.samples.empty()) continue;
      ModelTestOptions options;
      if (!costs.header.reference_sets.empty()) options.usual = usual;
      for (TestedSample& sample : test_compute_model(model, paths[file], options).samples) {
        sample.measured_ms /= folder.speed.speed;
        samples.push_back(sample);
      }
    }
  }
  if (samples.empty()) throw no_samples(folders.front());
  return 1.0 + tested(std::move(samples)).bias;
}

/// A network of the samples in the folders whose speeds are known.
std::shared_ptr<const NeuralComputeModel> reference_model(
    std::span<const Folder> known, const std::vector<std::string>& paths, const UsualSpeed& usual,
    std::uint64_t seed, int num_threads, const std::function<void(const EpochStats&)>& on_epoch) {
  ComputeTrainingOptions options;
  options.members = 1;
  options.loop.epochs = kEpochs;
  options.seed = seed;
  options.num_threads = num_threads;
  std::vector<std::string> files;
  std::vector<FolderSpeed> speeds;
  for (const Folder& folder : known) {
    for (const std::size_t file : folder.files) files.push_back(paths[file]);
    speeds.push_back(folder.speed);
  }
  ComputeDataset dataset =
      load_compute_dataset(files, feature_schema_of(options.architecture), &usual);
  if (dataset.num_known() < kFewestTrainingSamples) {
    throw InputError(known.front().speed.folder,
                     fmt::format("at least {} samples to train on in the first folder, with which "
                                 "the others are compared",
                                 kFewestTrainingSamples),
                     fmt::format("{}", dataset.num_known()));
  }
  divide_by_speeds(dataset, files, speeds);
  return train_compute_model(dataset, options, on_epoch).model;
}

/// What the sets that a folder shares with those whose speeds are known tell of its own: the median
/// of their costs' ratios. Nothing if they are few.
std::optional<double> paired_speed(const ComputeDataset& all, const std::vector<int>& folder_of,
                                   const std::vector<Folder>& folders, int folder,
                                   const std::set<int>& known) {
  std::map<int, std::vector<double>> known_ms;  // of a set, at the speed of the first folder
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!known.contains(folder_of[i])) continue;
    const double speed = folders[static_cast<std::size_t>(folder_of[i])].speed.speed;
    known_ms[all.same_as[i]].push_back(all.cost_ms[i] / speed);
  }
  std::vector<TestedSample> pairs;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto of_set = known_ms.find(all.same_as[i]);
    if (folder_of[i] != folder || of_set == known_ms.end()) continue;
    const std::vector<double>& costs = of_set->second;
    const double mean =
        std::accumulate(costs.begin(), costs.end(), 0.0) / static_cast<double>(costs.size());
    pairs.push_back({.predicted_ms = mean, .measured_ms = all.cost_ms[i]});
  }
  if (pairs.size() < kFewestPairs) return std::nullopt;
  return 1.0 + tested(std::move(pairs)).bias;
}

/// The folder of each sample.
std::vector<int> folders_of_samples(const ComputeDataset& all, const std::vector<Folder>& folders) {
  std::vector<int> folder_of(all.size());
  for (std::size_t folder = 0; folder < folders.size(); ++folder) {
    for (const std::size_t file : folders[folder].files) {
      const std::size_t end =
          file + 1 < all.first_sample.size() ? all.first_sample[file + 1] : all.size();
      std::fill(folder_of.begin() + static_cast<std::ptrdiff_t>(all.first_sample[file]),
                folder_of.begin() + static_cast<std::ptrdiff_t>(end), static_cast<int>(folder));
    }
  }
  return folder_of;
}

/// The reference sets of one of its files; "" if no file has any.
std::string reference_sets_of_folder(const ComputeDataset& all, const Folder& folder) {
  for (const std::size_t file : folder.files) {
    if (!all.reference_sets[file].empty()) return all.reference_sets[file];
  }
  return "";
}

/// That of a `known` folder with the same reference sets, by which costs of both are brought to one
/// speed already.
std::optional<double> reference_speed(const ComputeDataset& all, const std::vector<Folder>& folders,
                                      int folder, const std::set<int>& known) {
  const auto of = [&](int other) {
    return reference_sets_of_folder(all, folders[static_cast<std::size_t>(other)]);
  };
  const std::string own = of(folder);
  if (own.empty()) return std::nullopt;
  const auto same =
      std::find_if(known.begin(), known.end(), [&](int other) { return of(other) == own; });
  if (same == known.end()) return std::nullopt;
  return folders[static_cast<std::size_t>(*same)].speed.speed;
}

/// Gives those folders a speed that reference sets tell, or sets that were measured in them and in
/// `known` ones, and adds them to these.
void add_paired_speeds(const ComputeDataset& all, const std::vector<int>& folder_of,
                       std::vector<Folder>& folders, std::set<int>& known) {
  for (bool found = true; found;) {
    found = false;
    for (int folder = 1; folder < static_cast<int>(folders.size()); ++folder) {
      if (known.contains(folder)) continue;
      std::optional<double> speed = reference_speed(all, folders, folder, known);
      if (!speed) speed = paired_speed(all, folder_of, folders, folder, known);
      if (!speed) continue;
      folders[static_cast<std::size_t>(folder)].speed.speed = *speed;
      known.insert(folder);
      found = true;
    }
  }
}

/// Of the folders that are not `known`, the one with the most samples.
int largest_unknown(const std::vector<int>& folder_of, const std::set<int>& known) {
  std::map<int, std::int64_t> samples;
  for (const int folder : folder_of) {
    if (!known.contains(folder)) ++samples[folder];
  }
  const auto largest =
      std::max_element(samples.begin(), samples.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return largest == samples.end() ? -1 : largest->first;
}

}  // namespace

std::vector<FolderSpeed> folder_speeds(const ComputeDataset& dataset,
                                       const std::vector<std::string>& paths, std::uint64_t seed,
                                       int num_threads,
                                       const std::function<void(const EpochStats&)>& on_epoch) {
  std::vector<Folder> folders = folders_of(paths);
  if (folders.size() < 2) {
    throw InputError("costs", "files in two folders or more, of which each has a speed of its own",
                     folders.empty() ? "none" : "all in " + folders.front().speed.folder);
  }
  const std::vector<int> folder_of = folders_of_samples(dataset, folders);
  std::set<int> known{0};
  add_paired_speeds(dataset, folder_of, folders, known);
  if (known.size() < folders.size()) {
    std::vector<Folder> of_model;
    for (const int folder : known) of_model.push_back(folders[static_cast<std::size_t>(folder)]);
    const auto model =
        reference_model(of_model, paths, dataset.reference_ms, seed, num_threads, on_epoch);
    const double own_ratio = median_ratio(*model, of_model, paths, dataset.reference_ms);
    // A network tells the speed of many samples better than that of few, which have sets in common
    // with those, perhaps.
    while (known.size() < folders.size()) {
      const int largest = largest_unknown(folder_of, known);
      if (largest < 0) {  // what is left has none
        throw no_samples(*std::find_if(folders.begin(), folders.end(), [&](const Folder& folder) {
          return !known.contains(static_cast<int>(&folder - folders.data()));
        }));
      }
      Folder& other = folders[static_cast<std::size_t>(largest)];
      other.speed.speed =
          median_ratio(*model, {&other, 1}, paths, dataset.reference_ms) / own_ratio;
      known.insert(largest);
      add_paired_speeds(dataset, folder_of, folders, known);
    }
  }
  std::vector<FolderSpeed> speeds;
  for (const Folder& folder : folders) {
    const double speed = folder.speed.speed;
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
  std::set<std::string> scaled;  // reference sets
  for (std::size_t place = 0; place < folders.size(); ++place) {
    for (const std::size_t file : folders[place].files) {
      const std::size_t end =
          file + 1 < paths.size() ? dataset.first_sample[file + 1] : dataset.size();
      for (std::size_t i = dataset.first_sample[file]; i < end; ++i) {
        dataset.cost_ms[i] /= speeds[place].speed;
      }
      const std::string& reference_sets = dataset.reference_sets[file];
      if (!reference_sets.empty() && scaled.insert(reference_sets).second) {
        dataset.reference_ms[reference_sets] /= speeds[place].speed;
      }
    }
  }
  dataset.speeds = speeds;
}

}  // namespace neuroshard
