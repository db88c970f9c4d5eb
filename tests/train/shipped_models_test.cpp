// The shipped models name the data that lie next to them, the hash in a model's file being that of
// its data files; and their networks are whole.
#include <gtest/gtest.h>

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "neuroshard/cost/compute/compute_model_io.h"
#include "neuroshard/cost/compute/shard_features.h"
#include "neuroshard/io/checksum.h"
#include "neuroshard/io/file.h"
#include "neuroshard/io/safetensors.h"
#include "neuroshard/train/compute/model_test.h"
#include "neuroshard/workload/generate/coverage_workload.h"

namespace neuroshard {
namespace {

/// Files of costs in a folder of data/, in the order of their names.
std::vector<std::string> cost_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(NEUROSHARD_SOURCE_DIR "/data/" + folder)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".jsonl") || name.ends_with(".jsonl.gz")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// docs/formats.md: the SHA-256 of the SHA-256s of the files.
std::string hash_of(const std::vector<std::string>& files) {
  std::string checksums;
  for (const std::string& file : files) checksums += sha256_file(file);
  return sha256_hex(checksums);
}

/// The same of what is in compressed files, as a model has it that was trained before they were
/// compressed.
std::string hash_of_contents(const std::vector<std::string>& files) {
  std::string checksums;
  for (const std::string& file : files) {
    checksums += sha256_hex(read_maybe_compressed_file(file));
  }
  return sha256_hex(checksums);
}

struct ShippedModel {
  const char* name;
  std::vector<std::string> folders;  ///< of data/, in the order of training
};

class ShippedModels : public testing::TestWithParam<ShippedModel> {};

TEST_P(ShippedModels, HaveTheHashOfTheirData) {
  std::vector<std::string> files;
  for (const std::string& folder : GetParam().folders) {
    const std::vector<std::string> more = cost_files(folder);
    ASSERT_FALSE(more.empty()) << folder;
    files.insert(files.end(), more.begin(), more.end());
  }
  const TensorFile model = read_tensors(std::string(NEUROSHARD_SOURCE_DIR "/models/") +
                                        GetParam().name + ".safetensors");
  const std::string recorded = model.metadata.at("training_data_sha256");
  EXPECT_TRUE(recorded == hash_of(files) || recorded == hash_of_contents(files))
      << recorded << " in the model, " << hash_of(files) << " of its data";
}

/// Every 8th table of the whole space in three widths, with both optimizers and two batch sizes:
/// their features, standardised as the model does it (features x pieces).
Eigen::MatrixXf features_of_pieces(const NeuralComputeModel& model) {
  const ComputeNetwork& network = model.members().front();
  const auto count = static_cast<Eigen::Index>(network.feature_mean.size());
  const Workload workload = coverage_workload(5);
  std::vector<Eigen::VectorXf> pieces;
  for (const std::int64_t batch_size : {256, 4096}) {
    for (std::size_t table = 0; table < workload.tables.size(); table += 8) {
      const TableStatistics statistics = table_statistics(workload.tables[table], batch_size);
      for (const std::int64_t width : {8, 64, 256}) {
        for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::rowwise_adagrad}) {
          Eigen::VectorXf features(count);
          shard_features(network.schema, statistics, width, {batch_size, optimizer},
                         network.estimate,
                         {features.data(), static_cast<std::size_t>(features.size())});
          pieces.push_back(std::move(features));
        }
      }
    }
  }
  const auto mean = Eigen::Map<const Eigen::VectorXf>(network.feature_mean.data(), count);
  const auto scale = Eigen::Map<const Eigen::VectorXf>(network.feature_scale.data(), count);
  Eigen::MatrixXf all(count, static_cast<Eigen::Index>(pieces.size()));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    all.col(static_cast<Eigen::Index>(i)) = (pieces[i] - mean).cwiseProduct(scale);
  }
  return all;
}

/// Units of the last hidden layer that change a load's logarithm by 0.01 or more between pieces.
int units_at_work(const ComputeNetwork& network, Eigen::MatrixXf values) {
  const auto weights = [](const DenseLayer& layer) {
    return Eigen::Map<const Eigen::MatrixXf>(layer.weights.data(), layer.outputs, layer.inputs);
  };
  for (std::size_t i = 0; i + 1 < network.encoder.size(); ++i) {
    const DenseLayer& layer = network.encoder[i];
    const Eigen::MatrixXf sums = weights(layer) * values;
    const auto bias = Eigen::Map<const Eigen::VectorXf>(layer.bias.data(), layer.outputs);
    values = (sums.colwise() + bias).cwiseMax(0.0F);
  }
  const Eigen::VectorXf range = values.rowwise().maxCoeff() - values.rowwise().minCoeff();
  const Eigen::VectorXf largest =
      weights(network.encoder.back()).leftCols(values.rows()).cwiseAbs().colwise().maxCoeff();
  return static_cast<int>((range.array() * largest.array() >= 0.01F).count());
}

/// Of units that are 0 for all pieces, or that no load depends on, a network has no use.
TEST(ShippedModel, NetworksUseTheirHiddenUnits) {
  for (const char* name : {"cpu-xeon-2core", "cpu-epyc-2core", "fbgemm-cpu-xeon", "fbgemm-cpu-epyc",
                           "fbgemm-cpu-epyc-zen4", "fbgemm-h100", "h100", "h200"}) {
    const auto model =
        read_compute_model(std::string(NEUROSHARD_SOURCE_DIR "/models/") + name + ".safetensors");
    const Eigen::MatrixXf pieces = features_of_pieces(*model);
    std::string counts;
    for (const ComputeNetwork& network : model->members()) {
      const int used = units_at_work(network, pieces);
      const int all = network.encoder[network.encoder.size() - 2].outputs;
      EXPECT_GE(used, all / 8) << name;
      counts += std::to_string(used) + " of " + std::to_string(all) + "; ";
    }
    RecordProperty(name, counts);  // printed with --gtest_output=json
  }
}

/// The command: neuroshard model test MODEL PLANS/*.jsonl.gz, with --at-usual-speed where the model
/// knows it.
void expect_scatter_of(const std::string& name, const std::string& plans) {
  const auto model = read_compute_model(NEUROSHARD_SOURCE_DIR "/models/" + name + ".safetensors");
  ModelTestOptions options;
  if (!model->info().reference_ms.empty()) options.usual = model->info().reference_ms;
  std::vector<FileTest> tests;
  for (const std::string& file : cost_files("compute/" + plans)) {
    tests.push_back({file, test_compute_model(*model, file, options)});
  }
  const auto scatter = device_scatter(tests);
  ASSERT_TRUE(scatter) << name;
  // Predictions differ in their last digits by processor.
  EXPECT_NEAR(model->scatter(), scatter->scatter, 1e-3 * scatter->scatter) << name;
  EXPECT_NEAR(model->info().metrics.at("devices.pairs"), static_cast<double>(scatter->pairs), 2.0)
      << name;
}

TEST(ShippedModel, KnowHowFarDevicesOfTheirPlansDiffer) {
  expect_scatter_of("cpu-xeon-2core", "cpu-xeon-2core-reference/plans");
  expect_scatter_of("cpu-epyc-2core", "cpu-epyc-2core-plans");
}

TEST(ShippedModel, OfAllToAllsHasTheHashOfItsAllReduces) {
  const TensorFile model = read_tensors(NEUROSHARD_SOURCE_DIR "/models/all-to-all.safetensors");
  const std::vector<std::string> files = cost_files("communication/all-reduce");
  ASSERT_FALSE(files.empty());
  EXPECT_EQ(model.metadata.at("collectives_data_sha256"), hash_of(files));
}

INSTANTIATE_TEST_SUITE_P(
    Models, ShippedModels,
    testing::Values(ShippedModel{"cpu-xeon-2core",
                                 {"compute/cpu-xeon-2core-coverage/again",
                                  "compute/cpu-xeon-2core-coverage", "compute/cpu-xeon-2core",
                                  "compute/cpu-xeon-2core-reference",
                                  "compute/cpu-xeon-2core-reference/plans"}},
                    ShippedModel{"cpu-epyc-2core",
                                 {"compute/cpu-epyc-2core", "compute/cpu-epyc-2core-faster",
                                  "compute/cpu-epyc-2core-plans"}},
                    ShippedModel{"fbgemm-cpu-xeon", {"compute/fbgemm-cpu-xeon"}},
                    ShippedModel{"fbgemm-cpu-epyc", {"compute/fbgemm-cpu-epyc"}},
                    ShippedModel{"fbgemm-cpu-epyc-zen4", {"compute/fbgemm-cpu-epyc-zen4"}},
                    ShippedModel{"fbgemm-h100", {"compute/fbgemm-h100"}},
                    ShippedModel{"h100", {"compute/h100"}}, ShippedModel{"h200", {"compute/h200"}},
                    ShippedModel{"all-to-all", {"communication/simulated"}}),
    [](const testing::TestParamInfo<ShippedModel>& shipped) {
      std::string name = shipped.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace
}  // namespace neuroshard
