// The grammar of command lines: commands that are right and quick, with words changed.
#include <algorithm>
#include <string>
#include <utility>

#include "fuzz/grammar/damage.h"
#include "fuzz/grammar/grammar.h"

namespace neuroshard::fuzz {

namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kTask =
    R"({"format": "neuroshard/task/1", "batch_size": 1024, "optimizer": "sgd", "tables": [
{"name": "user", "num_embeddings": 1000, "embedding_dim": 64, "pooling_factor": 3.0},
{"name": "item", "num_embeddings": 2000, "embedding_dim": 32, "pooling_factor": 1.5},
{"name": "ad", "num_embeddings": 500, "embedding_dim": 10, "pooling_factor": 20.0}],
"topology": {"world_size": 2, "local_world_size": 2, "memory_bytes": 1048576}})";

constexpr std::string_view kPlan =
    R"({"format": "neuroshard/plan/1", "task": {"format": "neuroshard/task/1", "batch_size": 1024,
"optimizer": "sgd", "tables": [
{"name": "user", "num_embeddings": 1000, "embedding_dim": 64, "pooling_factor": 3.0},
{"name": "item", "num_embeddings": 2000, "embedding_dim": 32, "pooling_factor": 1.5}],
"topology": {"world_size": 2, "local_world_size": 2, "memory_bytes": 1048576}},
"shards": [{"table": "user", "column_offset": 0, "num_columns": 32, "device": 0},
{"table": "user", "column_offset": 32, "num_columns": 32, "device": 1},
{"table": "item", "column_offset": 0, "num_columns": 32, "device": 1}],
"model": {"compute": {"name": "analytic-a100-40gb"},
"communication": {"name": "analytic-a100-nvswitch"}},
"search": {"algorithm": "neuroshard", "version": "0.1.0", "seed": 0, "options": {"steps": 5,
"time_limit": null, "improvement": "brief", "pessimism": 0.5, "least_gain": 0.01,
"cuts": ["columns"], "seed": 0, "threads": 1}}})";

constexpr std::string_view kCosts =
    R"({"format": "neuroshard/compute-costs/1", "hardware": {}, "operator": {}, "batch_size": 64, "optimizer": "sgd", "tables": [{"name": "a", "num_embeddings": 10, "pooling_factor": 2.5, "data_type": "fp32", "reuse_histogram": [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]}]}
{"shards": [[0, 64]], "forward_ms": 1.5, "backward_ms": 2.5, "index": 0}
{"shards": [[0, 8], [0, 16]], "forward_ms": 3, "backward_ms": 4, "index": 1}
)";

Words operator+(Words left, const Words& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

const std::vector<Words>& commands() {
  static const Words models{"--model", "analytic-a100-40gb", "--model", "analytic-a100-nvswitch"};
  static const Words quick = Words{"--steps", "5", "--threads", "1"} + models;
  static const Words limit{"--time-limit", "5ms", "--threads", "1"};
  static const std::string workload = "mlperf-dlrm-dcnv2";
  static const std::vector<Words> all{
      Words{"plan", "task.json", "-o", "out.json"} + quick,
      Words{"plan", "task.json", "--json"} + quick,
      Words{"plan", "task.json", "--cuts", "columns,rows", "--seed", "3"} + quick,
      Words{"plan", "--workload", workload, "--devices", "4", "--memory", "80GiB"} + quick,
      Words{"plan", "--like", "plan.json"},
      Words{"plan", "task.json", "--from", "plan.json", "--max-move", "50%"} + quick,
      {"price", "plan.json"},
      {"price", "plan.json", "--json", "-o", "priced.json"},
      Words{"explain", "plan.json"} + limit,
      Words{"explain", "plan.json", "--json"} + limit,
      {"explain", "plan.json", "--table", "user"},
      {"explain", "plan.json", "--why-not", "user:columns=2", "--time-limit", "5ms"},
      Words{"capacity", "task.json", "--devices", "1:2", "--memory", "1GiB,2GiB"} + quick,
      Words{"compare", "task.json", "--algorithms", "random", "--json"} + quick,
      {"check", "plan.json"},
      {"check", "plan.json", "--json"},
      {"report", "plan.json"},
      {"report", "plan.json", "--json"},
      {"report", "plan.json", "-o", "out.html"},
      {"model", "list", "--json"},
      {"model", "show", "analytic-a100-40gb"},
      {"model", "test", "analytic-a100-40gb", "costs.jsonl"},
      {"workload", "list"},
      {"workload", "show", workload, "--json"},
      {"workload", "export", workload, "-o", "out.json"},
      {"workload", "tasks", workload, "--count", "2", "-o", "tasks"},
      {"collect", "merge", "costs.jsonl", "-o", "merged.jsonl"},
      {"collect", "communication", "--backend", "simgrid", "--platform", "pcie4", "--devices", "2",
       "--samples", "2", "-o", "comm.jsonl"},
      {"collect", "compute", "--samples", "2", "--arena", "1MiB", "--memory", "1MiB",
       "--batch-size", "16", "--tables", "1:2", "--threads", "1", "-o", "measured.jsonl"},
      {"evaluate", "plan.json", "--arena", "1MiB", "--threads", "1", "-o", "evaluation.json"},
      {"evaluate", "plan.json", "--platform", "pcie4", "--json"},
      // What takes minutes has inputs that are missing or of another kind.
      {"train", "compute", "nowhere.jsonl", "-o", "model.safetensors"},
      {"train", "communication", "nowhere.jsonl", "--epochs", "1", "-o", "model.safetensors"},
      {"calibrate", "--model", "analytic-a100-40gb", "--time-limit", "5ms", "-o",
       "model.safetensors"},
      {"refine-model", "nowhere.jsonl", "--folder", "rounds", "-o", "model.safetensors"},
      Words{"paper-table", "--folder", "results", "--count", "1", "--devices", "2", "--max-dims",
            "4", "--algorithms", "random"} +
          limit + models,
      {"completion", "bash"},
      {"completion", "fish", "-o", "neuroshard.fish", "--force"},
      {"--version"},
      {"plan", "--help"}};
  return all;
}

constexpr std::string_view kOptions[] = {"--workload",
                                         "--workload-seed",
                                         "--devices",
                                         "--local-devices",
                                         "--memory",
                                         "--batch-size",
                                         "--optimizer",
                                         "--like",
                                         "--from",
                                         "--max-move",
                                         "--model",
                                         "--algorithm",
                                         "--threads",
                                         "--cuts",
                                         "--improvement",
                                         "--pessimism",
                                         "--least-gain",
                                         "--seed",
                                         "--json",
                                         "--output",
                                         "-o",
                                         "--table",
                                         "--why-not",
                                         "--quiet",
                                         "--relative-to",
                                         "--journal",
                                         "--samples",
                                         "--platform",
                                         "--kind",
                                         "--backend",
                                         "--max-start-ms",
                                         "--count",
                                         "--tables",
                                         "--max-dim",
                                         "--fill",
                                         "--data-type",
                                         "--interconnect",
                                         "--help",
                                         "--version",
                                         "--force",
                                         "--steps",
                                         "--time-limit",
                                         "--evaluation",
                                         "--again",
                                         "--unknown",
                                         "-x",
                                         "--",
                                         "-"};

/// None of them, in any option, asks for work that takes long.
constexpr std::string_view kValues[] = {
    "0",
    "1",
    "2",
    "-1",
    "-0",
    "1.5",
    "1e3",
    "010",
    "+1",
    "0x10",
    "99999999999999999999",
    "9223372036854775808",
    "18446744073709551616",
    "nan",
    "-nan",
    "inf",
    "-inf",
    "NaN",
    "1e400",
    "1e-400",
    "5e-324",
    "0.5",
    "one",
    "",
    " ",
    "1:2",
    "2:1",
    ":",
    "1:",
    ":2",
    "1,2",
    ",",
    "0.9:0.98",
    "nan:nan",
    "1GiB",
    "0GiB",
    "-1GiB",
    "nanGiB",
    "infGiB",
    "1e30GiB",
    "16EiB",
    "GiB",
    "1 GiB",
    "1e-5KiB",
    "9223372036854775807",
    "10ms",
    "0s",
    "-1s",
    "nans",
    "infs",
    "1e400s",
    "1e-320s",
    "s",
    "10",
    "10%",
    "110%",
    "-1%",
    "nan%",
    "columns",
    "columns,columns",
    "none,rows",
    "rows",
    "sgd",
    "fp16",
    "random",
    "beam-search",
    "brief",
    "thorough",
    "pcie4",
    "cpu",
    "task.json",
    "plan.json",
    "costs.jsonl",
    "nowhere.json",
    "out.json",
    ".",
    "/dev/null",
    "user:rows=0",
    "user:rows=1e9",
    "user:device=-1",
    "user:",
    ":rows=2",
    "user:replicated=1",
    "user:columns=9999999999",
    "task.json.gz",
    "{}",
    "%s%n%x",
    "all",
    "=",
};

std::string any_value(Random& random) {
  if (once_in(6, random)) {
    std::string name = hostile_text(random);
    std::replace(name.begin(), name.end(), '\0', '0');  // no argument has one
    std::replace(name.begin(), name.end(), '/', '|');   // outputs stay in the folder
    return name;
  }
  return std::string(one_of(kValues, random));
}

void change(Words& words, Random& random) {
  if (words.empty()) {
    words.push_back(any_value(random));
    return;
  }
  const auto at = static_cast<std::ptrdiff_t>(random.below(words.size()));
  switch (random.below(8)) {
    case 0:
    case 1:  // the value of an option, or an argument
      words[at] = any_value(random);
      break;
    case 2:
      words.emplace_back(one_of(kOptions, random));
      if (!once_in(4, random)) words.push_back(any_value(random));
      break;
    case 3:
      words.erase(words.begin() + at);
      break;
    case 4: {
      std::string copy = words[at];
      words.insert(words.begin() + at, std::move(copy));
      break;
    }
    case 5:
      words.insert(words.begin() + at, any_value(random));
      break;
    case 6:
      words.push_back(std::string(one_of(kOptions, random)) + "=" + any_value(random));
      break;
    default:
      if (words[at].starts_with("-") && words[at].size() > 3) {
        words[at].erase(random.below(words[at].size()), 1);
      } else {
        std::swap(words[at], words[random.below(words.size())]);
      }
  }
}

/// Of a command, options without which it works for minutes.
struct Limits {
  Words command;
  Words options;  ///< each in one word
};

const std::vector<Limits>& limits() {
  static const std::vector<Limits> all{
      {{"collect", "compute"}, {"--samples=2", "--arena=1MiB"}},
      {{"evaluate"}, {"--arena=1MiB"}},
      {{"paper-table"}, {"--count=1", "--devices=2", "--max-dims=4", "--time-limit=5ms"}}};
  return all;
}

bool has(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Gives back what changes have taken away.
void keep_quick(Words& words) {
  if (has(words, "--platform")) return;  // nothing is measured
  for (const auto& [command, options] : limits()) {
    const bool is_this = std::all_of(command.begin(), command.end(),
                                     [&](const std::string& word) { return has(words, word); });
    if (!is_this) continue;
    for (const std::string& option : options) {
      if (!has(words, option.substr(0, option.find('=')))) words.push_back(option);
    }
  }
}

}  // namespace

std::vector<OptionFile> option_files() {
  return {{"task.json", std::string(kTask)},
          {"plan.json", std::string(kPlan)},
          {"costs.jsonl", std::string(kCosts)}};
}

std::string make_options(Random& random) {
  Words words = one_of(commands(), random);
  for (std::uint64_t i = random.below(4); i > 0; --i) change(words, random);
  keep_quick(words);
  std::string out;
  for (const std::string& word : words) {
    out += word;
    out += '\0';
  }
  return out;
}

}  // namespace neuroshard::fuzz
