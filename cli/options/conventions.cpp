// A walk over the tree of subcommands.
#include "cli/options/conventions.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "cli/streams/console.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/text/suggestion.h"

namespace neuroshard::cli {

namespace {

bool is_named(const CLI::Option& option, const std::string& name) {
  const std::vector<std::string>& names = option.get_lnames();
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// For CLI11, without a word about it in --help.
std::string refused_empty(const std::string& value) {
  return value.empty() ? "expected a value, got \"\"" : "";
}

/// Flags have none.
void refuse_empty_values(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (option->get_items_expected_max() > 0) option->check(refused_empty);
  }
}

/// The last command of those that the words name: "collect compute".
const CLI::App& named_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return *command;
}

/// What could stand where the word does: options for what looks like one, else subcommands.
std::vector<std::string> words_instead_of(std::string_view word, const CLI::App& command) {
  std::vector<std::string> words;
  if (!word.starts_with("-")) {
    for (const CLI::App* subcommand : subcommands_of(command)) {
      words.push_back(subcommand->get_name());
    }
    return words;
  }
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  return words;
}

}  // namespace

std::vector<CLI::App*> subcommands_of(CLI::App& command) {
  const std::function<bool(CLI::App*)> every = [](CLI::App* /*subcommand*/) { return true; };
  return command.get_subcommands(every);
}

std::vector<const CLI::App*> subcommands_of(const CLI::App& command) {
  const std::function<bool(const CLI::App*)> every = [](const CLI::App* /*subcommand*/) {
    return true;
  };
  return command.get_subcommands(every);
}

void add_common_options(CLI::App& app) {
  const std::vector<CLI::App*> subcommands = subcommands_of(app);
  for (CLI::App* subcommand : subcommands) add_common_options(*subcommand);
  if (!subcommands.empty()) return;
  refuse_empty_values(app);
  CLI::Option* quiet = app.add_flag_callback(
      "-q,--quiet", [] { set_verbosity(Verbosity::quiet); },
      "Nothing on stderr but errors: no progress, notes or warnings");
  app.add_flag_callback(
         "-v,--verbose", [] { set_verbosity(Verbosity::verbose); },
         "Also say on stderr which models were used, and the time and memory taken")
      ->excludes(quiet);
}

void refuse_options_without_value(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--") return;  // what follows are arguments
    if (!word.starts_with("--") || word.find('=') != word.size() - 1) continue;
    throw InputError(std::string(word.substr(0, word.size() - 1)), "a value", "\"\"");
  }
}

CLI::Option* option_named(CLI::App& command, const std::string& name) {
  for (CLI::Option* option : command.get_options()) {
    if (is_named(*option, name)) return option;
  }
  throw CLI::OptionNotFound(name);
}

bool was_given(const CLI::App& command, const std::string& name) {
  for (const CLI::Option* option : command.get_options()) {
    if (is_named(*option, name)) return option->count() > 0;
  }
  throw CLI::OptionNotFound(name);
}

void add_examples(CLI::App& command, const std::vector<std::string>& examples) {
  std::string text = "Examples:";
  for (const std::string& example : examples) text += "\n  neuroshard " + example;
  command.footer(text);
}

std::string suggestion_for(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App& command = named_command(app);
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    std::string found = suggestion(name, words_instead_of(name, command));
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace neuroshard::cli
