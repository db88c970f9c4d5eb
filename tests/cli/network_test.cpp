// All-to-alls over TCP between hosts: network namespaces of this machine whose links `tc` shapes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "neuroshard/io/communication_costs_io.h"
#include "tests/cli/run_mpi.h"

namespace neuroshard {
namespace {

using namespace testing_cli;

/// Hosts of one device each on a switch, every host with its own network stack and name.
class ShapedHosts {
 public:
  explicit ShapedHosts(int count) : prefix_(fmt::format("ns{}", getpid() % 1'000'000)) {
    run({"ip", "link", "add", bridge(), "type", "bridge"});
    run({"ip", "addr", "add", address(254) + "/24", "dev", bridge()});
    run({"ip", "link", "set", bridge(), "up"});
    for (; num_hosts_ < count && failure_.empty(); ++num_hosts_) add_host(num_hosts_);
  }
  ~ShapedHosts() {
    for (int i = 0; i < num_hosts_; ++i) {
      // The kernel removes a namespace's links with a delay, and the next test uses their names.
      (void)run_program({"ip", "link", "del", link(i)});
      (void)run_program({"ip", "netns", "del", host(i)});
    }
    (void)run_program({"ip", "link", "del", bridge()});
  }
  ShapedHosts(const ShapedHosts&) = delete;
  ShapedHosts& operator=(const ShapedHosts&) = delete;

  /// Sends every host's traffic through a queueing discipline of tc.
  void shape(const Arguments& discipline) {
    for (int i = 0; i < num_hosts_; ++i) {
      run(Arguments{"ip", "netns", "exec", host(i), "tc", "qdisc", "replace", "dev", "eth0",
                    "root"} +
          discipline);
    }
  }

  /// The part that could not be set up here; empty if all could.
  [[nodiscard]] const std::string& failure() const { return failure_; }

  /// Whether the cause is a missing permission, a missing part of the kernel, or a root folder that
  /// is no mount point, as under chroot: `ip netns exec` then fails.
  [[nodiscard]] bool is_not_permitted() const {
    const auto reasons = {"not permitted",       "denied",        "qdisc kind is unknown",
                          "Unknown device type", "not supported", "mount --make-rslave"};
    return std::any_of(reasons.begin(), reasons.end(), [&](const char* reason) {
      return failure_.find(reason) != std::string::npos;
    });
  }

  /// mpirun's options for one process on each host, over TCP alone. `folder` is for a script that
  /// stands in for ssh.
  [[nodiscard]] Arguments mpirun_options(const CliFolder& folder) const {
    const std::string agent = folder.write("agent.sh",
                                           "#!/bin/sh\n"
                                           "host=$1\nshift\n"
                                           "exec ip netns exec $host unshare --uts sh -c "
                                           "\"hostname $host; $*\"\n");
    std::filesystem::permissions(agent, std::filesystem::perms::owner_all);
    std::string hosts = host(0);
    for (int i = 1; i < num_hosts_; ++i) hosts += "," + host(i);
    const std::string subnet = address(0) + "/24";
    return {"--mca",
            "plm_rsh_agent",
            agent,
            "--mca",
            "plm_rsh_no_tree_spawn",
            "1",
            "--mca",
            "pml",
            "ob1",
            "--mca",
            "btl",
            "tcp,self",
            "--mca",
            "btl_tcp_if_include",
            subnet,
            "--mca",
            "oob_tcp_if_include",
            subnet,
            "--host",
            hosts};
  }

 private:
  [[nodiscard]] std::string host(int i) const { return fmt::format("{}h{}", prefix_, i); }
  [[nodiscard]] std::string link(int i) const { return fmt::format("{}l{}", prefix_, i); }
  [[nodiscard]] std::string bridge() const { return prefix_ + "b"; }
  [[nodiscard]] static std::string address(int i) {
    // Of the range kept for tests of networks (RFC 2544); a third byte per process.
    return fmt::format("198.18.{}.{}", getpid() % 250, i);
  }

  void add_host(int i) {
    run({"ip", "netns", "add", host(i)});
    run({"ip", "link", "add", link(i), "type", "veth", "peer", "name", "eth0", "netns", host(i)});
    run({"ip", "link", "set", link(i), "master", bridge(), "up"});
    for (const Arguments& setting :
         {Arguments{"addr", "add", address(i + 1) + "/24", "dev", "eth0"},
          Arguments{"link", "set", "eth0", "up"}, Arguments{"link", "set", "lo", "up"}}) {
      run(Arguments{"ip", "netns", "exec", host(i), "ip"} + setting);
    }
  }

  void run(const Arguments& words) {
    if (!failure_.empty()) return;
    const CommandResult result = run_program(words);
    if (result.exit_code != 0) failure_ = joined(words) + ": " + result.err;
  }

  std::string prefix_;
  int num_hosts_ = 0;
  std::string failure_;
};

/// Whether namespaces can be made at all; checked before anything else.
std::string missing_permission() {
  if (geteuid() != 0) return "not root";
  for (const char* tool : {"ip", "tc", "unshare", "hostname"}) {
    if (run_program({"sh", "-c", fmt::format("command -v {}", tool)}).exit_code != 0) {
      return fmt::format("no {}", tool);
    }
  }
  return "";
}

/// One sample measured on these hosts.
CommunicationCostSample measure(const ShapedHosts& hosts, const CliFolder& folder,
                                const std::string& batch_size) {
  const std::string path = folder.file("costs-" + batch_size + ".jsonl");
  const CommandResult result =
      run_program(Arguments{"timeout", "-k", "5", "120"} +
                  under_mpirun(2,
                               {"collect", "communication", "--backend", "mpi", "--devices", "2",
                                "--local-devices", "1", "--samples", "1", "--batch-size",
                                batch_size, "--max-start-ms", "1", "-o", path},
                               hosts.mpirun_options(folder)));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const CommunicationCosts costs = read_communication_costs(path);
  EXPECT_EQ(to_line(*costs.header.hardware.find("hosts")->array()->begin()).find("ns"), 1u);
  return costs.samples.at(0);
}

TEST(CliCommunication, NoFasterBetweenHostsThanTheirLinks) {
  SKIP_IN_UNKNOWN_CODE();
  if (const std::string why = missing_permission(); !why.empty()) {
    GTEST_SKIP() << "network namespaces: " << why;
  }
  ShapedHosts hosts(2);
  constexpr double kBytesPerMs = 25e3;  // 200 Mb/s
  constexpr double kBurst = 262'144;    // bytes that may pass at once
  hosts.shape({"tbf", "rate", "200mbit", "burst", "256kb", "latency", "400ms"});
  if (hosts.is_not_permitted()) GTEST_SKIP() << "network namespaces: " << hosts.failure();
  ASSERT_EQ(hosts.failure(), "");
  const CliFolder folder;
  constexpr std::int64_t kBatch = 2048;
  const CommunicationCostSample sample = measure(hosts, folder, std::to_string(kBatch));
  const auto bytes = [&](int device) {
    return static_cast<double>(sample.columns[device]) * (kBatch / 2) * 4;
  };
  for (const int device : {0, 1}) {
    // Each receives the other's columns; backward it sends the other's gradients.
    const double least = (bytes(1 - device) - kBurst) / kBytesPerMs;
    EXPECT_GT(sample.forward_ms[device], least);
  }
  // The process that ends last has waited for a link, and for little else.
  const double busiest = (std::max(bytes(0), bytes(1)) - kBurst) / kBytesPerMs;
  for (const std::vector<double>& times : {sample.forward_ms, sample.backward_ms}) {
    const double slowest = std::max(times[0], times[1]);
    EXPECT_GT(slowest, busiest);
    EXPECT_LT(slowest, 4.0 * busiest);
  }
}

TEST(CliCommunication, NoFasterBetweenHostsThanTheirDistance) {
  SKIP_IN_UNKNOWN_CODE();
  if (const std::string why = missing_permission(); !why.empty()) {
    GTEST_SKIP() << "network namespaces: " << why;
  }
  ShapedHosts hosts(2);
  hosts.shape({"netem", "delay", "10ms"});
  if (hosts.is_not_permitted()) GTEST_SKIP() << "network namespaces: " << hosts.failure();
  ASSERT_EQ(hosts.failure(), "");
  const CliFolder folder;
  const CommunicationCostSample sample = measure(hosts, folder, "64");
  // One of the two may leave the barrier before them as much later as the messages take.
  for (const std::vector<double>& times : {sample.forward_ms, sample.backward_ms}) {
    EXPECT_GT(std::max(times[0], times[1]), 9.0);
    EXPECT_LT(std::max(times[0], times[1]), 200.0);
  }
}

}  // namespace
}  // namespace neuroshard
