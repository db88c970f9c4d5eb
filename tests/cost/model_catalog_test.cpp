// Models by name: files before presets, one of each kind, and refusals that list the known names.
#include "neuroshard/cost/model_catalog.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <vector>

#include "neuroshard/cost/compute/compute_model_io.h"
#include "neuroshard/cost/model_description.h"
#include "neuroshard/cost/model_files.h"
#include "neuroshard/io/checksum.h"
#include "tests/cost/arbitrary_network.h"
#include "tests/cost/arbitrary_task.h"
#include "tests/io/io_test_util.h"
#include "tests/io/no_descriptors.h"

namespace neuroshard {
namespace {

using testing::HasSubstr;
using testing_networks::random_network;
using testing_networks::wide_info;
using testing_tasks::make_topology;

/// A folder that $NEUROSHARD_MODELS names while it lives, with a model "tiny" in it.
class ModelFolder {
 public:
  ModelFolder() {
    setenv("NEUROSHARD_MODELS", folder_.file("").c_str(), 1);
    write("tiny");
  }
  ~ModelFolder() { unsetenv("NEUROSHARD_MODELS"); }
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;

  void write(const std::string& name) const {
    const ComputeNetwork network =
        random_network(ComputeArchitecture::bounded_loads, 1, {{4, 3}, 2});
    write_compute_model(NeuralComputeModel(network, wide_info(name)), file(name));
  }
  [[nodiscard]] std::string file(const std::string& name) const {
    return folder_.file(name + ".safetensors");
  }

 private:
  TemporaryFolder folder_;
};

CostModels load(const std::vector<std::string>& names, int local_world_size = 2) {
  return load_cost_models(names, make_topology(4, local_world_size));
}

TEST(ModelCatalog, APipeAmongTheModelsIsNotWaitedFor) {
  const ModelFolder folder;
  ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
  for (const ModelEntry& entry : list_models()) EXPECT_NE(entry.name, "pipe");
  EXPECT_EQ(find_model_file("pipe"), "");
}

TEST(ModelCatalog, FindsFilesInTheFolderOfTheEnvironment) {
  const ModelFolder folder;
  EXPECT_TRUE(std::filesystem::equivalent(find_model_file("tiny"), folder.file("tiny")));
  EXPECT_EQ(find_model_file("none"), "");
  EXPECT_EQ(find_model_file("a/b"), "a/b");  // a path, there or not
  EXPECT_EQ(find_model_file("b.safetensors"), "b.safetensors");
  const CostModels models = load({"tiny", "analytic-pcie4"});
  EXPECT_EQ(models.compute->name(), "tiny");
  EXPECT_FALSE(models.compute->is_estimate());
  EXPECT_EQ(models.compute_sha256, sha256_file(folder.file("tiny")));
  EXPECT_EQ(models.communication->name(), "analytic-pcie4");
  EXPECT_EQ(models.communication_sha256, "");
}

TEST(ModelCatalog, WhereNothingCanBeReadNoEstimateTakesATrainedModelsPlace) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "UBSan needs descriptors to look at objects";
#endif
  ASSERT_FALSE(load({"cpu-xeon-2core"}).communication->is_estimate());
  const NoDescriptors limit;
  EXPECT_THROW((void)list_models(), MachineError);
  EXPECT_THROW((void)load({"pcie4"}), MachineError);
}

TEST(ModelCatalog, TakesAPathToo) {
  const ModelFolder folder;
  EXPECT_EQ(load({folder.file("tiny")}).compute->name(), "tiny");
}

/// Another working folder while it lives.
class WorkingFolder {
 public:
  explicit WorkingFolder(const std::string& path) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(path);
  }
  ~WorkingFolder() { std::filesystem::current_path(before_); }
  WorkingFolder(const WorkingFolder&) = delete;
  WorkingFolder& operator=(const WorkingFolder&) = delete;

 private:
  std::filesystem::path before_;
};

TEST(ModelCatalog, AFileInTheWorkingFolderNeedsNoSuffix) {
  const ModelFolder models;
  const TemporaryFolder folder;
  const WorkingFolder inside(folder.file(""));
  for (const char* name : {"weights.bin", "weights.st", "weights"}) {
    std::filesystem::copy_file(models.file("tiny"), name);
    EXPECT_EQ(find_file_of_model(name), name);
    const CostModels loaded = load({name});
    EXPECT_EQ(loaded.compute->name(), "weights");
    EXPECT_EQ(loaded.compute_file, std::filesystem::current_path() / name);
    EXPECT_EQ(find_model(name).origin, name);
    EXPECT_EQ(find_model(name).kind, "compute");
    EXPECT_EQ(
        input_error([&] { refuse_output_that_is_model(name, {name}, ModelsRead::named); }),
        fmt::format("--output: expected another file than those that are read, got {}", name));
  }
  write_file("notes.txt", "none");
  EXPECT_THAT(input_error([] { (void)load({"notes.txt"}); }),
              HasSubstr("notes.txt: expected a safetensors file"));
}

TEST(ModelCatalog, AFileInTheWorkingFolderDoesNotChangeWhatANameMeans) {
  const ModelFolder models;
  const TemporaryFolder folder;
  const WorkingFolder inside(folder.file(""));
  for (const char* name : {"tiny", "a100-40gb", "analytic-a100-40gb", "pcie4", "analytic-pcie4"}) {
    write_file(name, "no model");
    EXPECT_NO_THROW((void)load({name})) << name;
    EXPECT_NO_THROW((void)find_model(name)) << name;
    EXPECT_NE(find_file_of_model(name), name);
  }
  // Neither folders nor pipes are files in it.
  std::filesystem::create_directory("folder");
  ASSERT_EQ(mkfifo("pipe", 0600), 0);
  for (const char* name : {"folder", "pipe", "none"}) {
    EXPECT_EQ(find_file_of_model(name), "");
    EXPECT_THAT(input_error([&] { (void)load({name}); }),
                HasSubstr("--model: expected a file or one of "));
  }
}

TEST(ModelCatalog, NamesThatAreNoUtf8HideNoModel) {
  const TemporaryFolder folder;
  const std::string odd = folder.file("models\xff");
  std::filesystem::create_directory(odd);
  {
    const ModelFolder models;
    std::filesystem::copy_file(models.file("tiny"), odd + "/tiny.safetensors");
    std::filesystem::copy_file(models.file("tiny"), odd + "/b\xfe.safetensors");
  }
  setenv("NEUROSHARD_MODELS", odd.c_str(), 1);
  const std::string text = to_line(model_list_json());
  EXPECT_THAT(text, HasSubstr("\"name\": \"tiny\""));
  EXPECT_THAT(text, HasSubstr("\"name\": \"b\\\\xfe\""));
  EXPECT_THAT(text, HasSubstr("models\\\\xff/tiny.safetensors\""));
  EXPECT_THAT(to_line(model_json(find_model("tiny"))), HasSubstr("models\\\\xff/tiny"));
  EXPECT_EQ(load({"tiny"}).compute->name(), "tiny");
  unsetenv("NEUROSHARD_MODELS");
}

TEST(ModelCatalog, ADescriptionHasTheMeansOfTheFactorsOfTheWidestPiece) {
  const ModelFolder models;
  EXPECT_EQ(model_json(find_model("tiny")).find("widest_factors"), nullptr);
  std::vector<ComputeNetwork> networks;
  for (const float narrowest : {0.25F, 0.75F}) {
    networks.push_back(random_network(ComputeArchitecture::bounded_loads, 1, {{4, 3}, 2}));
    networks.back().widest_factors = {narrowest, 0.75F, 0.75F, 1.0F, 1.0F, 1.0F};
  }
  write_compute_model(NeuralComputeModel(networks, wide_info("wide")), models.file("wide"));
  EXPECT_THAT(to_line(model_json(find_model("wide"))),
              HasSubstr("\"widest_factors\": [0.5, 0.75, 0.75, 1.0, 1.0, 1.0]"));
}

TEST(ModelCatalog, ADescriptionHasTheOffsetsOfTheOptimizers) {
  const ModelFolder models;
  EXPECT_EQ(model_json(find_model("tiny")).find("offsets_ms"), nullptr);
  ComputeNetwork network = random_network(ComputeArchitecture::bounded_loads, 1, {{4, 3}, 2});
  network.estimate.offset_ms = 0.25;
  network.offset = 0.25F;
  network.rowwise_adagrad_offset = 0.5F;
  write_compute_model(NeuralComputeModel(network, wide_info("both")), models.file("both"));
  EXPECT_THAT(to_line(model_json(find_model("both"))),
              HasSubstr("\"offsets_ms\": {\"sgd\": 0.25, \"rowwise_adagrad\": 0.5}"));
}

TEST(ModelCatalog, InAFolderThatIsNoUtf8APathIsKeptAsItWasGiven) {
  const ModelFolder models;
  const TemporaryFolder folder;
  const std::string odd = folder.file("work\xff");
  std::filesystem::create_directory(odd);
  const WorkingFolder inside(odd);
  std::filesystem::copy_file(models.file("tiny"), "mine.safetensors");
  EXPECT_EQ(load({"./mine.safetensors"}).compute_file, "./mine.safetensors");
  EXPECT_EQ(load({models.file("tiny")}).compute_file, models.file("tiny"));
}

TEST(ModelCatalog, AFileOfThatNameGoesBeforeAPreset) {
  const ModelFolder folder;
  EXPECT_TRUE(load({"a100-40gb"}).compute->is_estimate());
  folder.write("a100-40gb");
  EXPECT_FALSE(load({"a100-40gb"}).compute->is_estimate());
  EXPECT_TRUE(load({"analytic-a100-40gb"}).compute->is_estimate());
}

TEST(ModelCatalog, PresetsHaveAPrefixThatMayBeLeftOut) {
  for (const char* name : {"a100-40gb", "analytic-a100-40gb"}) {
    const CostModels models = load({name});
    EXPECT_EQ(models.compute->name(), "analytic-a100-40gb");
    EXPECT_TRUE(models.compute->is_estimate());
    EXPECT_EQ(models.compute_sha256, "");
  }
  const CostModels both = load({"analytic-h100-nvswitch", "a100-40gb"});  // in any order
  EXPECT_EQ(both.compute->name(), "analytic-a100-40gb");
  EXPECT_EQ(both.communication->name(), "analytic-h100-nvswitch");
}

TEST(ModelCatalog, CommunicationFollowsTheTopology) {
  const auto communication = [](const std::vector<std::string>& names, const Topology& topology) {
    return load_cost_models(names, topology).communication->name();
  };
  // The shipped model knows these.
  EXPECT_EQ(load({"a100-40gb"}, 2).communication->name(), "pcie4");
  EXPECT_EQ(load({"a100-40gb"}, 1).communication->name(), "ethernet-25g");
  EXPECT_FALSE(load({"a100-40gb"}, 1).communication->is_estimate());
  Topology topology = make_topology(4, 4);
  topology.interconnect = "a100-nvswitch";
  EXPECT_EQ(communication({"a100-40gb"}, topology), "a100-nvswitch");
  EXPECT_EQ(communication({"a100-40gb", "ethernet-10g"}, topology), "ethernet-10g");
  EXPECT_EQ(communication({"a100-40gb", "analytic-ethernet-10g"}, topology),
            "analytic-ethernet-10g");
  // This one was only tested on, and is left to the analytic model.
  topology.interconnect = "ethernet-50g";
  EXPECT_EQ(communication({"a100-40gb"}, topology), "analytic-ethernet-50g");
  topology.interconnect = "carrier-pigeon";
  EXPECT_THAT(input_error([&] { (void)load_cost_models({"a100-40gb"}, topology); }),
              testing::AllOf(HasSubstr("interconnect: expected one of "),
                             HasSubstr("got \"carrier-pigeon\"")));
}

TEST(ModelCatalog, RefusesTwoOfOneKind) {
  const ModelFolder folder;
  EXPECT_EQ(input_error([] {
              (void)load({"tiny", "a100-40gb"});
            }),
            "--model: expected at most one computation model, got \"tiny\" and "
            "\"analytic-a100-40gb\"");
  EXPECT_EQ(input_error([] {
              (void)load({"a100-40gb", "pcie4", "analytic-ethernet-10g"});
            }),
            "--model: expected at most one communication model, got \"pcie4\" and "
            "\"analytic-ethernet-10g\"");
}

TEST(ModelCatalog, RefusesUnknownNamesWithAListOfTheKnown) {
  const ModelFolder folder;
  const std::string message = input_error([] { (void)load({"tinny"}); });
  EXPECT_THAT(message, testing::AllOf(HasSubstr("--model: expected a file or one of "),
                                      HasSubstr("tiny"), HasSubstr("analytic-a100-40gb"),
                                      HasSubstr("analytic-pcie4"), HasSubstr("got \"tinny\"")));
}

TEST(ModelCatalog, ABrokenFileIsNamedWithItsPath) {
  const ModelFolder folder;
  write_file(folder.file("broken"), "short");
  EXPECT_THAT(input_error([] { (void)load({"broken"}); }),
              HasSubstr("broken.safetensors: expected a safetensors file, of at least 8 bytes, got "
                        "5 bytes"));
  EXPECT_EQ(input_error([] { (void)load({"./none.safetensors"}); }),
            "./none.safetensors: expected a readable file, got No such file or directory");
}

TEST(ModelCatalog, ListsFilesThenPresetsOnce) {
  const ModelFolder folder;
  folder.write("another");
  write_file(folder.file("tiny") + ".bak", "");
  const std::vector<ModelEntry> entries = list_models();
  int files = 0;
  std::vector<std::string> names;
  for (const ModelEntry& entry : entries) {
    names.push_back(entry.name);
    if (!entry.is_estimate && (entry.name == "tiny" || entry.name == "another")) ++files;
    EXPECT_TRUE(entry.kind == "compute" || entry.kind == "communication");
    EXPECT_FALSE(entry.origin.empty());
  }
  EXPECT_EQ(files, 2);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  for (const ModelEntry& entry : entries) {
    std::vector<std::string> asked{entry.name};
    if (entry.kind == "communication") asked.emplace_back("a100-40gb");
    EXPECT_NO_THROW((void)load(asked)) << entry.name;
  }
}

TEST(ModelCatalog, AProgramInTheBuildFolderFindsTheSourceTreesModels) {
  unsetenv("NEUROSHARD_MODELS");
  EXPECT_EQ(model_folders().front(), NEUROSHARD_SOURCE_DIR "/models");
  const ModelFolder folder;
  EXPECT_EQ(model_folders().at(1), NEUROSHARD_SOURCE_DIR "/models");
}

TEST(ModelCatalog, AMissingFolderIsNoError) {
  setenv("NEUROSHARD_MODELS", "/nonexistent/models", 1);
  EXPECT_EQ(model_folders().front(), "/nonexistent/models");
  EXPECT_FALSE(list_models().empty());
  unsetenv("NEUROSHARD_MODELS");
}

}  // namespace
}  // namespace neuroshard
