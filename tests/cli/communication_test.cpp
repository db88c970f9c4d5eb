// Communication costs as a user collects, trains and uses them: simulated, and measured under
// mpirun.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "neuroshard/io/communication_costs_io.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/io/plan_io.h"
#include "tests/cli/run_mpi.h"

namespace neuroshard {
namespace {

using namespace testing_cli;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Arguments simulate(const std::string& path, int devices, int local_devices, int samples) {
  return {"collect",
          "communication",
          "--backend",
          "simgrid",
          "--platform",
          "ethernet-25g",
          "--devices",
          std::to_string(devices),
          "--local-devices",
          std::to_string(local_devices),
          "--samples",
          std::to_string(samples),
          "--batch-size",
          "4096",
          "-o",
          path};
}

/// kTask on two hosts.
std::string one_device_per_host() {
  std::string text(kTask);
  const std::string field = "\"local_world_size\": ";
  return text.replace(text.find(field) + field.size(), 1, "1");
}

TEST(CliCommunication, SimulateTrainPlan) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  std::vector<std::string> files;
  for (const int devices : {2, 3, 4}) {
    files.push_back(folder.file(fmt::format("{}.jsonl", devices)));
    (void)expect_success(simulate(files.back(), devices, 1, 30));
    EXPECT_EQ(read_communication_costs(files.back()).samples.size(), 30u);
  }
  // A continued file is equal to one that was made in a single run.
  const std::string twice = folder.file("twice.jsonl");
  (void)expect_success(simulate(twice, 3, 1, 10));
  (void)expect_success(simulate(twice, 3, 1, 30));
  EXPECT_EQ(read_file(twice), read_file(files[1]));

  const std::string model = folder.file("comm.safetensors");
  const std::string result =
      expect_success({"train", "communication", files[0], files[2], "--held-out", files[1],
                      "--epochs", "2", "--name", "tiny", "-o", model});
  EXPECT_THAT(result, AllOf(HasSubstr("held-out files, forward"), HasSubstr("by the links alone"),
                            HasSubstr("best epoch")));
  EXPECT_THAT(expect_success({"model", "show", model}),
              AllOf(HasSubstr("kind            communication"), HasSubstr("2 to 4 devices"),
                    HasSubstr("ethernet-25g")));
  const CommandResult plan =
      run_cli({"plan", folder.write("task.json", one_device_per_host()), "--model", model,
               "--model", "analytic-a100-40gb", "-o", folder.file("plan.json")});
  EXPECT_EQ(plan.exit_code, 0);
  EXPECT_THAT(plan.out, HasSubstr("communication: ethernet-25g, pre-trained (simulated)\n"));
  EXPECT_THAT(plan.err, Not(HasSubstr("trained on 2 to 4")));
  EXPECT_THAT(plan.err, Not(HasSubstr("local_world_size")));
}

TEST(CliCommunication, AllReducesAreSimulatedLearnedAndTested) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  std::vector<std::string> files;
  for (const int devices : {2, 4, 8}) {
    files.push_back(folder.file(fmt::format("{}.jsonl", devices)));
    (void)expect_success(simulate(files.back(), devices, 1, 40) +
                         Arguments{"--kind", "all-reduce"});
    const CommunicationCosts costs = read_communication_costs(files.back());
    ASSERT_EQ(costs.collectives.size(), 40u);
    EXPECT_TRUE(costs.samples.empty());
    for (const CollectiveCostSample& sample : costs.collectives) {
      EXPECT_EQ(sample.bytes % 4, 0);
      EXPECT_GT(*std::min_element(sample.ms.begin(), sample.ms.end()), 0.0);
    }
  }
  const std::string twice = folder.file("twice.jsonl");
  for (const int samples : {10, 40}) {
    (void)expect_success(simulate(twice, 4, 1, samples) + Arguments{"--kind", "all-reduce"});
  }
  EXPECT_EQ(read_file(twice), read_file(files[1]));
  expect_refusal(folder, simulate(twice, 4, 1, 50), "twice.jsonl: line 1: sampling");
  expect_refusal(folder, simulate(twice, 4, 1, 50) + Arguments{"--kind", "partial-sums"},
                 "--kind partial-sums needs --backend mpi");

  // Added to a shipped model's all-to-alls, which stay as they are.
  const std::string model = folder.file("m.safetensors");
  const Arguments train{"train",  "communication", files[0],       files[2], "--held-out",
                        files[1], "--from",        "ethernet-25g", "-o",     model};
  EXPECT_THAT(expect_success(train), AllOf(HasSubstr("all-reduce, unseen lines"),
                                           HasSubstr("all-reduce, held-out files")));
  const std::string shown = expect_success({"model", "show", model});
  EXPECT_THAT(shown,
              AllOf(HasSubstr("all_reduce.held_out.mape"), HasSubstr("all-reduces     sha256")));
  const Json tests =
      parse_json(expect_success({"model", "test", model, files[1], "--json"}), "stdout");
  const Json& of_file = (*tests.find("files")->array())[0];
  EXPECT_EQ(*of_file.find("kind"), Json("all_reduce"));
  EXPECT_LT(std::get<double>(of_file.find("metrics")->find("mape")->value()), 0.05);
  EXPECT_THAT(expect_success({"model", "test", model, files[0], files[1]}),
              HasSubstr("all: all_reduce"));

  // Alone they make no model.
  expect_refusal(folder, {"train", "communication", files[0], "-o", model + "2"},
                 "costs: expected all-to-alls of \"ethernet-25g\" too, got all-reduces or partial "
                 "sums alone");
  const std::string all_to_alls = folder.file("a.jsonl");
  (void)expect_success(simulate(all_to_alls, 2, 1, 30));
  expect_refusal(
      folder, {"train", "communication", all_to_alls, "--from", "ethernet-25g", "-o", model + "2"},
      "costs: expected all-reduces and partial sums alone, to keep the model's "
      "all-to-alls, got 30 samples of all-to-alls");
  // All kinds together do.
  EXPECT_THAT(expect_success({"train", "communication", all_to_alls, files[0], "--epochs", "1",
                              "-o", folder.file("all.safetensors")}),
              AllOf(HasSubstr("validation, forward"), HasSubstr("all-reduce, training")));
}

TEST(CliCommunication, AllReducesAndPartialSumsAreMeasured) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  for (const std::string kind : {"all-reduce", "partial-sums"}) {
    const std::string path = folder.file(kind + ".jsonl");
    const Arguments collect{
        "collect", "communication", "--backend", "mpi",    "--devices", "2",  "--samples",
        "3",       "--batch-size",  "256",       "--kind", kind,        "-o", path};
    const CommandResult result = run_program(under_mpirun(2, collect));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const CommunicationCosts costs = read_communication_costs(path);
    ASSERT_EQ(costs.collectives.size(), 3u);
    for (const CollectiveCostSample& sample : costs.collectives) {
      EXPECT_EQ(sample.kind == CollectiveKind::all_reduce, kind == "all-reduce");
      EXPECT_GT(sample.ms[0], 0.0);
      EXPECT_GT(sample.ms[1], 0.0);
    }
  }
}

TEST(CliCommunication, RefusesWhatCannotBeSimulated) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  const std::string path = folder.file("c.jsonl");
  Arguments unknown = simulate(path, 2, 1, 1);
  unknown[5] = "ethernet-1g";
  expect_refusal(folder, unknown, "platform: expected one of ");
  expect_refusal(folder, simulate(path, 3, 2, 1), "--local-devices: expected a divisor of 3");
  Arguments broken = simulate(path, 2, 1, 1);
  broken[5] = folder.write("broken.xml", "<platform version=\"4.1\"><zone id=\"a\"");
  expect_refusal(folder, broken, "broken.xml");
}

TEST(CliCommunication, MeasureUnderMpirun) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  const std::string path = folder.file("mpi.jsonl");
  const Arguments collect{
      "collect",      "communication", "--backend",      "mpi", "--devices", "2", "--samples", "3",
      "--batch-size", "256",           "--max-start-ms", "50",  "-o",        path};
  const CommandResult result = run_program(under_mpirun(2, collect));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const CommunicationCosts costs = read_communication_costs(path);
  ASSERT_EQ(costs.samples.size(), 3u);
  for (const CommunicationCostSample& sample : costs.samples) {
    // No device has all data before the last one has started.
    const double last = std::max(sample.start_ms[0], sample.start_ms[1]);
    for (const std::size_t d : {0, 1}) {
      EXPECT_GT(sample.forward_ms[d], 0.0);
      EXPECT_GT(sample.start_ms[d] + sample.forward_ms[d], last - 3.0);
    }
  }
  const CommandResult three = run_program(under_mpirun(3, collect));
  EXPECT_EQ(three.exit_code, 2);
  EXPECT_THAT(three.err, HasSubstr("mpi: expected 2 processes, one per device, got 3"));
}

TEST(CliCommunication, EvaluateUnderMpirun) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  const std::string plan = folder.file("plan.json");
  (void)expect_success(Arguments{"plan", folder.write("task.json", kTask), "-o", plan} + kModels);
  const CommandResult result =
      run_program(under_mpirun(2, {"evaluate", plan, "--arena", "1MiB", "--json"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json document = parse_json(result.out, "stdout");
  EXPECT_GT(std::get<double>(document.find("measured_ms")->value()), 0.0);
  EXPECT_EQ(document.find("devices")->array()->size(), 2u);
  EXPECT_THAT(run_program(under_mpirun(2, {"evaluate", plan, "--arena", "1MiB"})).out,
              AllOf(HasSubstr("critical path: device "), HasSubstr("ends last")));
  const CommandResult three = run_program(under_mpirun(3, {"evaluate", plan, "--arena", "1MiB"}));
  EXPECT_EQ(three.exit_code, 2);
  EXPECT_THAT(three.err, HasSubstr("mpi: expected 2 processes, one per device of the plan, got 3"));
}

TEST(CliCommunication, ProcessesThatDisagreeEndTogether) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  const auto two_programs = [](const Arguments& first, const Arguments& second) {
    Arguments words = under_mpirun(1, first);
    words.insert(words.end(), {":", "-np", "1", NEUROSHARD_EXECUTABLE});
    words.insert(words.end(), second.begin(), second.end());
    return run_program(words);
  };
  const std::string path = folder.file("mpi.jsonl");
  const auto collect = [&](const char* seed) {
    return Arguments{
        "collect", "communication", "--backend", "mpi",    "--devices", "2",  "--samples",
        "3",       "--batch-size",  "256",       "--seed", seed,        "-o", path};
  };
  const CommandResult seeds = two_programs(collect("1"), collect("2"));
  EXPECT_EQ(seeds.exit_code, 2);
  EXPECT_THAT(seeds.err, AllOf(HasSubstr("mpi: expected the same options in all processes"),
                               HasSubstr("seed 1, "), HasSubstr("seed 2, ")));
  EXPECT_FALSE(std::filesystem::exists(path));

  const std::string plan = folder.file("plan.json");
  const std::string other = folder.file("other.json");
  const std::string task = folder.write("task.json", kTask);
  (void)expect_success(Arguments{"plan", task, "-o", plan} + kModels);
  (void)expect_success(Arguments{"plan", task, "--algorithm", "random", "-o", other} + kModels);
  const CommandResult plans =
      two_programs({"evaluate", plan, "--arena", "1MiB"}, {"evaluate", other, "--arena", "1MiB"});
  EXPECT_EQ(plans.exit_code, 2);
  EXPECT_THAT(plans.err, HasSubstr("mpi: expected the same options in all processes, plan "));
}

TEST(CliCommunication, CompareMeasuresAndSimulates) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  const std::string journal = folder.file("journal.jsonl");
  const Arguments compare = Arguments{"compare",   task,      "--algorithms", "greedy-dim,random",
                                      "--measure", "--arena", "4MiB"} +
                            kModels;
  const auto document = [&](const std::string& platform) {
    const Arguments on_platform{"--platform", platform, "--journal", journal, "--json"};
    return parse_json(expect_success(compare + on_platform), "stdout");
  };
  const auto number = [](const Json& entry, const char* key) {
    return std::get<double>(entry.find(key)->value());
  };
  // The second run takes the measured computation from the journal, and simulates anew.
  const Json slow = document("ethernet-10g");
  const Json fast = document("h100-nvswitch");
  EXPECT_EQ(*slow.find("platform"), Json("ethernet-10g"));
  for (std::size_t i = 0; i < 2; ++i) {
    const Json& on_slow = (*slow.find("entries")->array())[i];
    const Json& on_fast = (*fast.find("entries")->array())[i];
    EXPECT_EQ(*on_slow.find("device_compute_ms"), *on_fast.find("device_compute_ms"));
    EXPECT_EQ(number(on_slow, "predicted_ms"), number(on_fast, "predicted_ms"));
    EXPECT_GT(number(on_fast, "measured_ms"), number(on_fast, "measured_compute_ms"));
    EXPECT_GT(number(on_slow, "measured_ms"), number(on_fast, "measured_ms"));
  }
  EXPECT_THAT(expect_success(compare + Arguments{"--platform", "ethernet-10g"}),
              HasSubstr("part-measured: computation run here, all-to-alls simulated on "
                        "ethernet-10g"));
  expect_refusal(folder, Arguments{"compare", task, "--platform", "ethernet-10g"} + kModels,
                 "--platform needs --measure");
  const std::string other = folder.write("other.json", one_device_per_host());
  expect_refusal(
      folder,
      Arguments{"compare", task, other, "--measure", "--platform", "ethernet-10g"} + kModels,
      "other.json");
}

TEST(CliCommunication, EvaluateOnASimulatedCluster) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  const std::string plan = folder.file("plan.json");
  (void)expect_success(Arguments{"plan", folder.write("task.json", kTask), "-o", plan} + kModels);
  const Arguments evaluate{"evaluate", plan, "--platform", "a100-nvswitch"};
  EXPECT_THAT(expect_success(evaluate),
              AllOf(HasSubstr("simulated"), HasSubstr("critical path: device "),
                    HasSubstr("with simulated communication")));
  const Json document = parse_json(expect_success(evaluate + Arguments{"--json"}), "stdout");
  const auto number = [](const Json& json, const char* key) {
    return std::get<double>(json.find(key)->value());
  };
  double slowest = 0.0;
  for (const Json& device : *document.find("devices")->array()) {
    EXPECT_GT(number(device, "simulated_backward_comm_ms"), 0.0);
    EXPECT_NEAR(number(device, "simulated_total_ms"),
                number(device, "simulated_backward_comm_ms") +
                    number(device, "predicted_compute_ms") +
                    number(device, "simulated_forward_comm_ms"),
                1e-9);
    slowest = std::max(slowest, number(device, "simulated_total_ms"));
  }
  EXPECT_EQ(number(document, "simulated_ms"), slowest);
  expect_refusal(folder, evaluate + Arguments{"--arena", "1GiB"}, "--platform excludes --arena");
  expect_refusal(folder, {"evaluate", plan, "--platform", "token-ring"},
                 "platform: expected one of ");
  const std::string small =
      folder.write("one.xml",
                   "<?xml version='1.0'?><!DOCTYPE platform SYSTEM "
                   "\"https://simgrid.org/simgrid.dtd\"><platform version=\"4.1\"><zone id=\"z\" "
                   "routing=\"Full\"><host id=\"a\" speed=\"1Gf\"/></zone></platform>");
  expect_refusal(folder, {"evaluate", plan, "--platform", small},
                 "one.xml: expected at least 2 hosts, got 1");
  const std::string apart =
      folder.write("apart.xml",
                   "<?xml version='1.0'?><!DOCTYPE platform SYSTEM "
                   "\"https://simgrid.org/simgrid.dtd\"><platform version=\"4.1\"><zone id=\"z\" "
                   "routing=\"Full\"><host id=\"a\" speed=\"1Gf\"/><host id=\"b\" speed=\"1Gf\"/>"
                   "</zone></platform>");
  expect_refusal(folder, {"evaluate", plan, "--platform", apart},
                 "apart.xml: expected a platform that SimGrid can simulate, got ");
}

TEST(CliCommunication, MoreProcessesThanCoresAreSaidToBe) {
  SKIP_IN_UNKNOWN_CODE();
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  if (cores > 4) GTEST_SKIP() << "would take more than " << cores << " processes";
  const CliFolder folder;
  const std::string devices = std::to_string(cores + 1);
  std::string text(kTask);
  for (const std::string field : {"\"world_size\": ", "\"local_world_size\": "}) {
    text.replace(text.find(field) + field.size(), 1, devices);
  }
  const std::string plan = folder.file("plan.json");
  (void)expect_success(Arguments{"plan", folder.write("task.json", text), "-o", plan} + kModels);
  const CommandResult result =
      run_program(under_mpirun(cores + 1, {"evaluate", plan, "--arena", "1MiB"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("processes share cores"));
}

TEST(CliCommunication, GpusNeedTheirBackendUnderMpirunToo) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  const std::string plan = folder.file("plan.json");
  (void)expect_success(Arguments{"plan", folder.write("task.json", kTask), "-o", plan} + kModels);
  for (const Arguments& check : {Arguments{}, Arguments{"--check"}}) {
    const CommandResult result =
        run_program(under_mpirun(2, Arguments{"evaluate", plan, "--gpus", "0,1"} + check));
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr("--gpus needs --backend cuda, got cpu"));
  }
}

TEST(CliCommunication, AClusterOfTheUsersOwn) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  const std::string platform = folder.write(
      "own.xml",
      "<?xml version='1.0'?>\n"
      "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
      "<platform version=\"4.1\">\n"
      "  <cluster id=\"own\" prefix=\"host-\" suffix=\"\" radical=\"0-3\" speed=\"1Gf\"\n"
      "    bw=\"500MBps\" lat=\"20us\" sharing_policy=\"SPLITDUPLEX\"/>\n"
      "</platform>\n");
  std::vector<std::string> files;
  for (const int devices : {2, 4}) {
    files.push_back(folder.file(fmt::format("{}.jsonl", devices)));
    Arguments collect = simulate(files.back(), devices, 1, 40);
    collect[5] = platform;
    (void)expect_success(collect);
  }
  // Backward, the longest message takes the time of its link.
  const CommunicationCosts costs = read_communication_costs(files[0]);
  const CommunicationCostSample& sample = costs.samples[0];
  const auto most = static_cast<double>(std::max(sample.columns[0], sample.columns[1]));
  const double link_ms = most * 2048 * 4 / 500e3;
  EXPECT_NEAR(*std::max_element(sample.backward_ms.begin(), sample.backward_ms.end()), link_ms,
              0.05 * link_ms + 0.1);
  // Training on it gives a model of these data.
  const std::string model = folder.file("own.safetensors");
  (void)expect_success(
      {"train", "communication", files[0], files[1], "--epochs", "20", "-o", model});
  const std::string plan = folder.file("plan.json");
  const CommandResult small =
      run_cli({"plan", folder.write("task.json", one_device_per_host()), "--model", model,
               "--model", "analytic-a100-40gb", "-o", plan});
  EXPECT_EQ(small.exit_code, 0);
  EXPECT_THAT(small.out, HasSubstr("communication: own, pre-trained (simulated)\n"));
  EXPECT_THAT(small.err, Not(HasSubstr("world_size")));
  // Not for other clusters: the plan says so.
  std::string large(kTask);
  large.replace(large.find("\"world_size\": 2") + 14, 1, "8");
  const CommandResult result = run_cli({"plan", folder.write("large.json", large), "--model", model,
                                        "--model", "analytic-a100-40gb", "-o", plan});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("warning"), HasSubstr("world_size: \"own\" was "
                                                                "trained on 2 to 4, got 8")));
}

/// Two hosts and the link between them.
std::string platform_with(const std::string& bandwidth, const std::string& latency,
                          const std::string& speed) {
  return fmt::format(
      "<?xml version='1.0'?><!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">"
      "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\">"
      "<host id=\"a\" speed=\"{}\"/><host id=\"b\" speed=\"1Gf\"/>"
      "<link id=\"wire\" bandwidth=\"{}\" latency=\"{}\"/>"
      "<route src=\"a\" dst=\"b\"><link_ctn id=\"wire\"/></route></zone></platform>",
      speed, bandwidth, latency);
}

/// A platform file's frame around `content`.
std::string platform_of(const std::string& content) {
  return "<?xml version='1.0'?><!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">"
         "<platform version=\"4.1\">" +
         content + "</platform>";
}

TEST(CliCommunication, APlatformThatEndsSimGridIsTriedOutBeforeAnyFileIsWritten) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  const std::string wire =
      "<host id=\"a\" speed=\"1Gf\"/><host id=\"b\" speed=\"1Gf\"/>"
      "<link id=\"wire\" bandwidth=\"1GBps\" latency=\"1us\"{}/>"
      "<route src=\"a\" dst=\"b\"><link_ctn id=\"wire\"/></route>";
  const std::string zone = "<zone id=\"z\" routing=\"Full\">{}</zone>";
  const std::string peer =
      "<peer id=\"{}\" coordinates=\"{} 0 0\" speed=\"1Gf\" bw_in=\"1GBps\" bw_out=\"1GBps\"/>";
  const auto with_peer_at = [&](const std::string& place) {
    return "<zone id=\"z\" routing=\"Vivaldi\">" + fmt::format(fmt::runtime(peer), "a", "0") +
           fmt::format(fmt::runtime(peer), "b", place) + "</zone>";
  };
  const auto with_wire = [&](const std::string& attributes) {
    return fmt::format(fmt::runtime(zone), fmt::format(fmt::runtime(wire), attributes));
  };
  const std::string rejected = "cluster.xml: expected a platform that SimGrid can simulate, got ";
  const std::string route =
      "cluster.xml: route from a to b: expected a latency between 0 and 1000 s, got ";
  for (const auto& [content, message] : std::vector<std::pair<std::string, std::string>>{
           {with_wire(" sharing_policy=\"WIFI\""),
            "cluster.xml: link wire: expected a link between two ends, got sharing policy WIFI"},
           {with_peer_at("1e308"), route},
           {with_peer_at("1e100"), route},
           {with_peer_at("nan"), route},
           {with_wire(" state_file=\"wire.txt\""),
            "cluster.xml: expected links and hosts that do not change over time, got state_file"},
           {with_wire("") + "<trace_connect kind=\"BANDWIDTH\" trace=\"t\" element=\"wire\"/>",
            "cluster.xml: expected links and hosts that do not change over time, got "
            "trace_connect"},
           {"<zone id=\"z\" routing=\"Nonsense\"></zone>", rejected + "Not a valid model"},
           {"<zone id=\"z\" routing=\"Full\"><host id=\"a\" speed=\"1Gf\" core=\"-1\"/></zone>",
            rejected + "Host a must have"}}) {
    const std::string platform = folder.write("cluster.xml", platform_of(content));
    Arguments collect = simulate(folder.file("costs.jsonl"), 2, 1, 4);
    collect[5] = platform;
    expect_refusal(folder, collect, message);
  }
}

TEST(CliCommunication, APlatformIsTriedOutBeforeAnythingIsComparedOnIt) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  const std::string journal = folder.file("journal.jsonl");  // there once anything is planned
  const Arguments compare{"compare", task, "--measure", "--arena", "4MiB", "--journal", journal};
  expect_refusal(folder, compare + kModels + Arguments{"--platform", "token-ring"},
                 "platform: expected one of ");
  const std::string zone = "<zone id=\"z\" routing=\"Full\"><host id=\"a\" speed=\"1Gf\"/></zone>";
  const std::string small = folder.write("one.xml", platform_of(zone));
  expect_refusal(folder, compare + kModels + Arguments{"--platform", small},
                 "one.xml: expected at least 2 hosts, got 1");
}

TEST(CliCommunication, APlatformsSettingsOfSimGridAreRefusedAndNotObeyed) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  const std::string plan = folder.file("plan.json");
  (void)expect_success(Arguments{"plan", task, "--steps", "10", "-o", plan} + kModels);
  const std::string victim = folder.write("victim.txt", "of the user");
  // SimGrid would write a trace to any path that the file names.
  const std::string settings = fmt::format(
      "<config><prop id=\"tracing\" value=\"yes\"/><prop id=\"tracing/filename\" value=\"{}\"/>"
      "</config>",
      victim);
  std::string text = platform_with("1GBps", "1us", "1Gf");
  text.insert(text.find("<zone"), settings);
  const std::string hidden = platform_with("1GBps", "1us", "1Gf") + "<!-- " + settings + " -->";
  for (const std::string& content : {text, hidden, platform_of("<include file=\"/nowhere\"/>"),
                                     "<!DOCTYPE platform [<!ENTITY a \"b\">]>" + platform_of("")}) {
    const std::string platform = folder.write("cluster.xml", content);
    Arguments collect = simulate(folder.file("costs.jsonl"), 2, 1, 4);
    collect[5] = platform;
    for (const Arguments& command :
         {collect, Arguments{"evaluate", plan, "--platform", platform}}) {
      expect_refusal(folder, command,
                     "cluster.xml: expected links and hosts alone, without settings of SimGrid, "
                     "got \"<");
    }
  }
  EXPECT_EQ(read_file(victim), "of the user");
}

TEST(CliCommunication, AClusterThatCannotBeIsRefusedBeforeItIsSimulated) {
  SKIP_IN_UNKNOWN_CODE();
  const CliFolder folder;
  const std::string bandwidth = "cluster.xml: link wire: expected a bandwidth between 1 and 1e18 ";
  const std::string latency =
      "cluster.xml: link wire: expected a latency between 0 and 1000 s, got ";
  const std::string speed = "cluster.xml: host a: expected a speed above 0 flop/s, got ";
  struct Case {
    const char* bandwidth;
    const char* latency;
    const char* speed;
    std::string message;
  };
  for (const Case& bad : std::vector<Case>{{"0Bps", "1us", "1Gf", bandwidth + "bytes/s, got 0"},
                                           {"-1GBps", "1us", "1Gf", bandwidth},
                                           {"nanBps", "1us", "1Gf", bandwidth},
                                           {"infBps", "1us", "1Gf", bandwidth},
                                           {"1e-300Bps", "1us", "1Gf", bandwidth},
                                           {"1GBps", "1e308s", "1Gf", latency + "1e+308"},
                                           {"1GBps", "-1s", "1Gf", latency + "-1"},
                                           {"1GBps", "nans", "1Gf", latency},
                                           {"1GBps", "infs", "1Gf", latency},
                                           {"1GBps", "1us", "0f", speed + "0"},
                                           {"1GBps", "1us", "-1f", speed},
                                           {"1GBps", "1us", "nanf", speed}}) {
    Arguments collect = simulate(folder.file("costs.jsonl"), 2, 1, 4);
    collect[5] = folder.write("cluster.xml", platform_with(bad.bandwidth, bad.latency, bad.speed));
    expect_refusal(folder, collect, bad.message);
  }
  Arguments collect = simulate(folder.file("costs.jsonl"), 2, 1, 4);
  collect[5] = folder.write("cluster.xml", platform_with("1Bps", "0s", "1f") +
                                               "<!-- bandwidth_file=\"of another time\" -->");
  (void)expect_success(collect);
}

}  // namespace
}  // namespace neuroshard
