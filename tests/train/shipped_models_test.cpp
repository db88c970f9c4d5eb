// The shipped models name the data that lie next to them, the hash in a model's file being that of
// its data files; and their networks are whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "neuroshard/cost/compute/compute_model_io.h"
#include "neuroshard/io/checksum.h"
#include "neuroshard/io/file.h"
#include "neuroshard/io/safetensors.h"

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

/// Hidden units whose weights have all vanished are 0 for whatever piece.
TEST(ShippedModel, NetworksUseTheirHiddenUnits) {
  for (const char* name :
       {"cpu-xeon-2core", "cpu-epyc-2core", "fbgemm-cpu-xeon", "fbgemm-cpu-epyc"}) {
    const auto model =
        read_compute_model(std::string(NEUROSHARD_SOURCE_DIR "/models/") + name + ".safetensors");
    for (const ComputeNetwork& network : model->members()) {
      const DenseLayer& last = network.encoder.back();
      const int hidden = network.encoder[network.encoder.size() - 2].outputs;
      int used = 0;
      for (int unit = 0; unit < hidden; ++unit) {
        const auto first = last.weights.begin() + static_cast<std::ptrdiff_t>(unit) * last.outputs;
        used += std::any_of(first, first + last.outputs, [](float w) { return w > 1e-3F; }) ? 1 : 0;
      }
      EXPECT_GE(used, hidden / 8) << name;
    }
  }
}

TEST(ShippedModel, OfAllToAllsHasTheHashOfItsAllReduces) {
  const TensorFile model = read_tensors(NEUROSHARD_SOURCE_DIR "/models/all-to-all.safetensors");
  const std::vector<std::string> files = cost_files("communication/all-reduce");
  ASSERT_FALSE(files.empty());
  EXPECT_EQ(model.metadata.at("collectives_data_sha256"), hash_of(files));
}

INSTANTIATE_TEST_SUITE_P(
    Models, ShippedModels,
    testing::Values(ShippedModel{"cpu-xeon-2core", {"compute/cpu-xeon-2core"}},
                    ShippedModel{"cpu-epyc-2core",
                                 {"compute/cpu-epyc-2core", "compute/cpu-epyc-2core-faster"}},
                    ShippedModel{"fbgemm-cpu-xeon", {"compute/fbgemm-cpu-xeon"}},
                    ShippedModel{"fbgemm-cpu-epyc", {"compute/fbgemm-cpu-epyc"}},
                    ShippedModel{"all-to-all", {"communication/simulated"}}),
    [](const testing::TestParamInfo<ShippedModel>& shipped) {
      std::string name = shipped.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace
}  // namespace neuroshard
