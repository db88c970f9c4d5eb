// `--backend cuda` and `nccl` on a machine without a GPU, or in a build without CUDA: one line that
// says what is missing, exit code 3, no file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/cli/run_cli.h"

namespace neuroshard::testing_cli {
namespace {

bool has_device() {
  const CliFolder folder;
  const CommandResult result = run_cli({"collect", "compute", "--backend", "cuda", "--samples", "1",
                                        "--batch-size", "64", "-o", folder.file("costs.jsonl")});
  return result.exit_code == 0;
}

TEST(Cuda, WithoutADeviceEverySubcommandSaysSo) {
  if (has_device()) GTEST_SKIP() << "there is a device";
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  expect_success(Arguments{"plan", task, "-o", folder.file("plan.json")} + kModels);
  const std::string message = "cuda: expected ";
  expect_refusal(folder, {"collect", "compute", "--backend", "cuda", "-o", folder.file("c.jsonl")},
                 message, 3);
  expect_refusal(folder, {"evaluate", folder.file("plan.json"), "--backend", "cuda"}, message, 3);
  expect_refusal(
      folder,
      Arguments{"compare", task, "--measure", "--backend", "cuda", "--algorithms", "greedy-size"} +
          kModels,
      message, 3);
  expect_refusal(folder,
                 {"refine-model", "costs.jsonl", "--backend", "cuda", "--folder",
                  folder.file("refinement"), "-o", folder.file("model.safetensors")},
                 message, 3);
}

#ifdef NEUROSHARD_FAKE_CUDA_DRIVER

/// A machine with a driver that cannot be worked with (fake_cuda_driver.cpp).
class FakeDriver : public testing::Test {
 public:
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

 protected:
  FakeDriver() {
    setenv("LD_LIBRARY_PATH", NEUROSHARD_FAKE_CUDA_DRIVER, 1);
    set("VERSION", 14'000);
  }
  ~FakeDriver() override {
    unsetenv("LD_LIBRARY_PATH");
    for (const char* name : {"VERSION", "START", "DEVICE"}) unsetenv(variable(name).c_str());
  }
  static void set(const char* name, int value) {
    setenv(variable(name).c_str(), std::to_string(value).c_str(), 1);
  }
  void expect_refusal_with(const std::string& message) const {
    expect_refusal(folder_,
                   {"collect", "compute", "--backend", "cuda", "-o", folder_.file("c.jsonl")},
                   message, 3);
  }

 private:
  static std::string variable(const char* name) { return std::string("FAKE_DRIVER_") + name; }
  CliFolder folder_;
};

TEST_F(FakeDriver, OlderThanTheToolkit) {
  set("VERSION", 12'040);
  expect_refusal_with("cuda: expected a driver for CUDA 1");
  expect_refusal_with("found one for 12.4");
}

TEST_F(FakeDriver, OfAnotherReleaseThanItsKernelModule) {
  set("START", 803);  // CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
  expect_refusal_with(
      "cuda: expected a driver whose library and kernel module are of one release, ");
}

TEST_F(FakeDriver, WithoutADevice) {
  set("START", 100);  // CUDA_ERROR_NO_DEVICE
  expect_refusal_with("cuda: expected a device, found none");
}

TEST_F(FakeDriver, WithABusyDevice) {
  set("DEVICE", 46);  // CUDA_ERROR_DEVICE_UNAVAILABLE
  expect_refusal_with("cuda: expected a device to itself, got one that is busy");
}

TEST_F(FakeDriver, WithADeviceOutOfMemory) {
  set("DEVICE", 2);  // CUDA_ERROR_OUT_OF_MEMORY
  expect_refusal_with("cuda: out of device memory");
}

TEST_F(FakeDriver, WithALostDevice) {
  set("DEVICE", 46);
  set("START", 999);  // CUDA_ERROR_UNKNOWN
  expect_refusal_with("the device may be lost");
}

#endif

TEST(Cuda, OptionsOfTheOtherBackendAreRefused) {
  const CliFolder folder;
  const std::string output = folder.file("c.jsonl");
  expect_refusal(folder, {"collect", "compute", "--gpus", "0", "-o", output},
                 "--gpus: expected it with --backend cuda");
  expect_refusal(folder,
                 {"collect", "compute", "--backend", "cuda", "--threads", "2", "-o", output},
                 "--threads: expected it with --backend cpu");
  expect_refusal(folder, {"collect", "compute", "--backend", "opencl", "-o", output}, "--backend");
}

TEST(CollectMerge, MakesOneFileAndRefusesOthers) {
  const CliFolder folder;
  const std::string costs =
      R"({"format": "neuroshard/compute-costs/1", "hardware": {}, "operator": {}, "batch_size": 64, "optimizer": "sgd", "tables": [{"name": "t0", "num_embeddings": 9, "pooling_factor": 1.5, "data_type": "fp32", "reuse_histogram": [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]}]})"
      "\n";
  const auto sample = [](int index) {
    return R"({"shards": [[0, 4]], "forward_ms": 1.0, "backward_ms": 2.0, "index": )" +
           std::to_string(index) + "}\n";
  };
  const std::string a = folder.write("a.jsonl", costs + sample(1));
  const std::string b = folder.write("b.jsonl", costs + sample(0));
  const CommandResult merged = run_cli({"collect", "merge", a, b, "-o", folder.file("all.jsonl")});
  EXPECT_EQ(merged.exit_code, 0);
  EXPECT_THAT(merged.err, testing::HasSubstr("2 samples, 0 skipped"));
  const std::string text = read_file(folder.file("all.jsonl"));
  EXPECT_LT(text.find("\"index\": 0"), text.find("\"index\": 1")) << text;
  const std::string c = folder.write("c.jsonl", "{}\n");
  expect_refusal(folder, {"collect", "merge", a, c, "-o", folder.file("all.jsonl")}, "c.jsonl");
}

}  // namespace
}  // namespace neuroshard::testing_cli
