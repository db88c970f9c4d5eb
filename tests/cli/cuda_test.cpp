// `--backend cuda` and `nccl` on a machine without a GPU, or in a build without CUDA: one line that
// names the missing part, exit code 3, no file.
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
  // Their threads plan and train too.
  for (const Arguments& threads : {Arguments{}, Arguments{"--threads", "2"}}) {
    expect_refusal(folder,
                   Arguments{"compare", task, "--measure", "--backend", "cuda", "--algorithms",
                             "greedy-size"} +
                       kModels + threads,
                   message, 3);
    expect_refusal(folder,
                   Arguments{"refine-model", "costs.jsonl", "--backend", "cuda", "--folder",
                             folder.file("refinement"), "-o", folder.file("model.safetensors")} +
                       threads,
                   message, 3);
  }
}

TEST(Cuda, OptionsOfTheOtherBackendAreRefused) {
  const CliFolder folder;
  const std::string output = folder.file("c.jsonl");
  expect_refusal(folder, {"collect", "compute", "--gpus", "0", "-o", output},
                 "--gpus needs --backend cuda, got cpu");
  expect_refusal(folder,
                 {"collect", "compute", "--backend", "cuda", "--threads", "2", "-o", output},
                 "--threads needs --backend cpu, got cuda");
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
  expect_refusal(folder, {"collect", "merge", a, c, "--force", "-o", folder.file("all.jsonl")},
                 "c.jsonl");
}

}  // namespace
}  // namespace neuroshard::testing_cli
