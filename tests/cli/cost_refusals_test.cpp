// Bad usage and bad input of the commands that measure costs and make models of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "neuroshard/cost/compute/compute_model_io.h"
#include "tests/cli/run_cli.h"
#include "tests/cost/arbitrary_network.h"
#include "tests/train/synthetic_costs.h"

namespace neuroshard {
namespace {

using namespace testing_cli;

TEST(CliRefusals, MalformedModels) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  const std::string path = folder.file("m.safetensors");
  write_compute_model(*testing_networks::random_model(ComputeArchitecture::bounded_loads, 1), path);
  const std::string valid = read_file(path);
  std::string damaged = valid;
  damaged[damaged.size() - 6] ^= 1;
  const std::vector<std::pair<std::string, std::string>> cases{
      {damaged, path + ": __metadata__.data_sha256: expected "},
      {valid.substr(0, valid.size() - 1), path + ": "},
      {valid.substr(0, 100), path + ": header size: expected "},
      {"", path + ": expected a safetensors file"},
      {std::string(16, '\xff'), path + ": header size: expected "},
      {replaced(valid, "bounded-loads", "bounded_loads"), "__metadata__.architecture: expected "},
      {replaced(valid, "shard/work/1", "shard/work/9"), "feature_schema: expected "}};
  for (const auto& [text, message] : cases) {
    write_file(path, text);
    expect_refusal(folder, {"model", "show", path}, message);
    expect_refusal(folder, {"plan", task, "--model", path, "-o", folder.file("plan.json")},
                   message);
  }
}

TEST(CliRefusals, SecondMeasurementsThatDoNotPair) {
  const CliFolder folder;
  const std::string costs = folder.file("costs.jsonl");
  testing_costs::write_costs(costs, testing_costs::make_header(), 5);
  const std::string model = folder.file("m.safetensors");
  write_compute_model(*testing_networks::random_model(ComputeArchitecture::bounded_loads, 1),
                      model);
  expect_refusal(folder, {"model", "test", model, costs, "--again", costs, costs},
                 "--again: expected as many files as were given, 1, got 2");
  expect_refusal(folder, {"model", "test", model, costs, "--samples", costs}, costs);
}

TEST(CliRefusals, ATestOfAnEstimateOfLinks) {
  const CliFolder folder;
  const std::string costs = folder.file("costs.jsonl");
  testing_costs::write_costs(costs, testing_costs::make_header(), 5);
  expect_refusal(folder, {"model", "test", "analytic-pcie4", costs},
                 "model: expected a computation model, or one that learned all-to-alls, got "
                 "analytic-pcie4");
}

TEST(CliRefusals, CoverageOptions) {
  const CliFolder folder;
  const Arguments collect{
      "collect",  "compute", "--workload", "coverage", "--sets",
      "coverage", "--arena", "1MiB",       "-o",       folder.file("costs.jsonl")};
  expect_refusal(folder, collect + Arguments{"--max-pass", "639KiB"},
                 "--max-pass: expected at least 640 KiB, got 639.00 KiB");
  expect_refusal(folder, collect + Arguments{"--slices", "1"},
                 "--slices: expected a share from 0 to below 1, got \"1\"");
}

TEST(CliRefusals, MalformedCosts) {
  const CliFolder folder;
  const std::string path = folder.file("costs.jsonl");
  testing_costs::write_costs(path, testing_costs::make_header(), 40);
  const std::string valid = read_file(path);
  const Arguments train{"train", "compute", path, "-o", folder.file("m.safetensors")};
  const std::string first_lines = valid.substr(0, valid.find('\n', valid.find('\n') + 1) + 1);
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"", path + ": line 1"},
           {valid + "{}\n", path + ": line 42: "},
           {valid + "\n", path + ": line 42: "},
           {valid + R"({"shards": [[99, 4]], "forward_ms": 1, "backward_ms": 1})" + "\n",
            path + ": line 42: shards[0][0]: expected "},
           {valid + R"({"shards": [[0, 4]], "forward_ms": -1, "backward_ms": 1})" + "\n",
            path + ": line 42: forward_ms: expected "},
           {valid + R"({"shards": [[0, 4]], "forward_ms": NaN, "backward_ms": 1})" + "\n",
            path + ": line 42"},
           {first_lines, "costs: expected at least 30 samples to train on, got 1"}}) {
    write_file(path, text);
    expect_refusal(folder, train, message);
  }
  write_file(path, valid);
  expect_refusal(folder, train + Arguments{"--architecture", "transformer"},
                 "--architecture: expected \"published\" or \"bounded-loads\"");
  expect_refusal(folder, train + Arguments{"--epochs", "-1"}, "--epochs");
}

TEST(CliRefusals, OptionsOfSamplingThatWouldDoNothing) {
  const CliFolder folder;
  const Arguments collect{"collect", "compute", "--samples", "1", "-o", folder.file("costs.jsonl")};
  for (const Refused& refused : std::vector<Refused>{
           {{"--max-pass", "20GB"}, "--max-pass needs --sets coverage, got uniform"},
           {{"--max-pass", "huge"}, "--max-pass needs --sets coverage, got uniform"},
           {{"--large", "0.5", "--sets", "plans", "--planned-by", "analytic-cpu"},
            "--large needs --sets coverage, got plans"},
           {{"--slices", "0.5"}, "--slices needs --sets coverage, got uniform"},
           {{"--candidates", "8"}, "--candidates needs --least-sure"}}) {
    expect_refusal(folder, collect + refused.arguments, refused.message);
  }
}

TEST(CliRefusals, AModelThatRefinementWouldNotUse) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  expect_refusal(folder,
                 {"refine-model", task, "--devices", "2,4", "--folder", folder.file("rounds"),
                  "--model", "cpu-epyc-2core", "-o", folder.file("model.safetensors")},
                 "--model: expected a communication model, got cpu-epyc-2core");
}

TEST(CliRefusals, NumbersOfLists) {
  const CliFolder folder;
  const std::string output = folder.file("output");
  const Arguments table{"paper-table", "--folder", output};
  const Arguments collect{"collect", "compute", "-o", output};
  const std::string expected = ": expected an integer between ";
  for (const Refused& refused : std::vector<Refused>{
           {table + Arguments{"--devices", "2,x"}, "--devices" + expected},
           {table + Arguments{"--max-dims", "8,x"}, "--max-dims" + expected},
           {{"refine-model", output, "--folder", output, "--devices", "2,x", "-o", output},
            "--devices" + expected},
           {collect + Arguments{"--dims", "4,x"}, "--dims" + expected},
           {collect + Arguments{"--dims", "4", "x"}, "--dims" + expected}}) {
    expect_refusal(folder, refused.arguments, refused.message);
  }
}

}  // namespace
}  // namespace neuroshard
