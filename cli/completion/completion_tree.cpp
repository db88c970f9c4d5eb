// A walk over the subcommands. CLI11 knows some lists of values; those of names are added here.
#include "cli/completion/completion_tree.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "cli/options/conventions.h"
#include "neuroshard/baselines/planner_catalog.h"
#include "neuroshard/core/interconnect.h"
#include "neuroshard/workload/workload.h"

namespace neuroshard::cli {

namespace {

/// A description up to its first semicolon.
std::string beginning_of_help(const std::string& help) { return help.substr(0, help.find(';')); }

/// Those of "TEXT:{cpu,cuda}".
std::vector<std::string> values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find(":{");
  const std::size_t end = type.find('}', begin == std::string::npos ? 0 : begin);
  if (begin == std::string::npos || end == std::string::npos) return {};
  return CLI::detail::split(type.substr(begin + 2, end - begin - 2), ',');
}

std::vector<std::string> names_of_workloads() {
  std::vector<std::string> names;
  for (const WorkloadInfo& workload : list_workloads()) names.push_back(workload.name);
  return names;
}

std::vector<std::string> names_of_algorithms() {
  std::vector<std::string> names;
  for (const auto& planner : make_planners()) names.emplace_back(planner->name());
  return names;
}

std::vector<std::string> names_of_interconnects() {
  std::vector<std::string> names;
  for (const Interconnect& interconnect : interconnects()) names.push_back(interconnect.name);
  return names;
}

constexpr std::array<std::string_view, 3> kAlgorithmOptions{"--algorithm", "--algorithms",
                                                            "--relative-to"};

constexpr std::array<std::string_view, 4> kModelOptions{"--model", "model", "--least-sure",
                                                        "--planned-by"};

/// Whether cost models are its values; --from is an older plan to `plan`.
bool takes_models(const std::string& name, const std::string& path) {
  return std::find(kModelOptions.begin(), kModelOptions.end(), name) != kModelOptions.end() ||
         (name == "--from" && path.starts_with("train "));
}

/// `path` is the option's command.
CompletedValue completed_value(const CLI::Option& option, const std::string& path) {
  if (const auto values = values_of(option); !values.empty()) return {values, false, false};
  const std::string name = option.get_name();
  if (takes_models(name, path)) return {{}, true, true};
  if (name == "--workload" || (path.starts_with("workload ") && name == "name")) {
    return {names_of_workloads(), false, false};
  }
  if (std::find(kAlgorithmOptions.begin(), kAlgorithmOptions.end(), name) !=
      kAlgorithmOptions.end()) {
    return {names_of_algorithms(), false, false};
  }
  if (name == "--platform") return {names_of_interconnects(), false, true};
  if (name == "--interconnect") return {names_of_interconnects(), false, false};
  return {};
}

CompletedOption completed_option(const CLI::Option& option, const std::string& path) {
  CompletedOption result;
  for (const std::string& name : option.get_lnames()) result.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) result.names.push_back("-" + name);
  result.help = beginning_of_help(option.get_description());
  result.takes_value = option.get_items_expected_max() > 0;
  result.value = completed_value(option, path);
  return result;
}

CompletedCommand completed_command(const CLI::App& command, const std::string& path) {
  CompletedCommand result{
      path, command.get_name(), beginning_of_help(command.get_description()), {}, {}, {}};
  for (const CLI::App* subcommand : subcommands_of(command)) {
    std::string place = path;
    if (!place.empty()) place += ' ';
    place += subcommand->get_name();
    result.subcommands.push_back(completed_command(*subcommand, place));
  }
  bool has_positional = false;
  for (const CLI::Option* option : command.get_options()) {
    if (option->nonpositional()) {
      result.options.push_back(completed_option(*option, path));
    } else if (!has_positional) {
      result.positional = completed_value(*option, path);
      has_positional = true;
    }
  }
  return result;
}

void append_all(const CompletedCommand& command, std::vector<const CompletedCommand*>& all) {
  all.push_back(&command);
  for (const CompletedCommand& subcommand : command.subcommands) append_all(subcommand, all);
}

}  // namespace

CompletedCommand completion_tree(const CLI::App& root) { return completed_command(root, ""); }

std::vector<const CompletedCommand*> all_of(const CompletedCommand& root) {
  std::vector<const CompletedCommand*> all;
  append_all(root, all);
  return all;
}

}  // namespace neuroshard::cli
