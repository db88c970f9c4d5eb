// One walk over the tree, then a script for each shell.
#include "cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <utility>
#include <vector>

#include "cli/conventions.h"

namespace neuroshard::cli {

namespace {

struct CompletedOption {
  std::vector<std::string> names;  ///< with their dashes
  std::string help;
  bool takes_value = false;
  std::vector<std::string> values;  ///< all that it takes; empty: any, such as a file
};

struct CompletedCommand {
  std::string path;  ///< "collect compute"; "" for the whole
  std::string name;
  std::string help;
  std::vector<CompletedCommand> subcommands;
  std::vector<CompletedOption> options;
};

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

CompletedOption completed(const CLI::Option& option) {
  CompletedOption result;
  for (const std::string& name : option.get_lnames()) result.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) result.names.push_back("-" + name);
  result.help = beginning_of_help(option.get_description());
  result.takes_value = option.get_items_expected_max() > 0;
  result.values = values_of(option);
  return result;
}

CompletedCommand completed(const CLI::App& command, const std::string& path) {
  CompletedCommand result{
      path, command.get_name(), beginning_of_help(command.get_description()), {}, {}};
  for (const CLI::App* subcommand : subcommands_of(command)) {
    const std::string& name = subcommand->get_name();
    result.subcommands.push_back(completed(*subcommand, path.empty() ? name : path + " " + name));
  }
  for (const CLI::Option* option : command.get_options()) {
    if (option->nonpositional()) result.options.push_back(completed(*option));
  }
  return result;
}

/// All commands, each before its subcommands.
void append_all(const CompletedCommand& command, std::vector<const CompletedCommand*>& all) {
  all.push_back(&command);
  for (const CompletedCommand& subcommand : command.subcommands) append_all(subcommand, all);
}

std::vector<const CompletedCommand*> all_of(const CompletedCommand& root) {
  std::vector<const CompletedCommand*> all;
  append_all(root, all);
  return all;
}

/// In single quotes, for bash and zsh; fish escapes a quote otherwise.
std::string quoted(std::string_view text, std::string_view escaped_quote) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += escaped_quote;
    } else {
      result += c;
    }
  }
  return result + "'";
}

std::string in_shell(std::string_view text) { return quoted(text, R"('\'')"); }
std::string in_fish(std::string_view text) { return quoted(text, R"(\')"); }

/// Patterns of `case`, "path word", by which the words so far become the path of a command.
std::vector<std::string> steps_of(const std::vector<const CompletedCommand*>& commands) {
  std::vector<std::string> steps;
  for (const CompletedCommand* command : commands) {
    for (const CompletedCommand& subcommand : command->subcommands) {
      steps.push_back(in_shell(command->path + " " + subcommand.name));
    }
  }
  return steps;
}

/// "path --option", for all names of an option.
std::vector<std::string> places_of(const CompletedCommand& command, const CompletedOption& option) {
  std::vector<std::string> places;
  for (const std::string& name : option.names) {
    places.push_back(in_shell(command.path + " " + name));
  }
  return places;
}

/// Lines of `case` for options with a value: `of_values` is what completes one of a list.
template <typename F>
std::string value_cases(const std::vector<const CompletedCommand*>& commands,
                        std::string_view of_files, const F& of_values) {
  std::string text;
  std::vector<std::string> with_files;
  for (const CompletedCommand* command : commands) {
    for (const CompletedOption& option : command->options) {
      if (!option.takes_value) continue;
      const std::vector<std::string> places = places_of(*command, option);
      if (option.values.empty()) {
        with_files.insert(with_files.end(), places.begin(), places.end());
      } else {
        text += fmt::format("    {}) {}; return ;;\n", fmt::join(places, "|"),
                            of_values(option.values));
      }
    }
  }
  if (with_files.empty()) return text;
  return text + fmt::format("    {}) {}; return ;;\n", fmt::join(with_files, "|"), of_files);
}

std::vector<std::string> names_of_options(const CompletedCommand& command) {
  std::vector<std::string> names;
  for (const CompletedOption& option : command.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

std::vector<std::string> names_of_subcommands(const CompletedCommand& command) {
  std::vector<std::string> names;
  for (const CompletedCommand& subcommand : command.subcommands) names.push_back(subcommand.name);
  return names;
}

constexpr const char* kBash = R"(# Completion for bash. Made by: neuroshard completion bash
_neuroshard() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
  local command="" word i
  COMPREPLY=()
  # bash takes --option=value for three words.
  if [[ $current == "=" ]]; then
    current=""
  elif [[ $previous == "=" ]]; then
    previous="${{COMP_WORDS[COMP_CWORD-2]}}"
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="${{COMP_WORDS[i]}}"
    case "$command $word" in
    {0}) command="${{command:+$command }}$word" ;;
    esac
  done
  case "$command $previous" in
{1}  esac
  local options="" subcommands=""
  case "$command" in
{2}  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  else
    COMPREPLY=($(compgen -W "$subcommands" -- "$current"))
  fi
}}
complete -o default -F _neuroshard neuroshard
)";

constexpr const char* kZsh = R"(#compdef neuroshard
# Completion for zsh. Made by: neuroshard completion zsh
_neuroshard() {{
  local command="" word i
  local -a found
  for ((i = 2; i < CURRENT; i++)); do
    word="${{words[i]}}"
    case "$command $word" in
    {0}) command="${{command:+$command }}$word" ;;
    esac
  done
  case "$command ${{words[CURRENT-1]}}" in
{1}  esac
  if [[ "${{words[CURRENT]}}" == -* ]]; then
    case "$command" in
{2}    esac
    _describe -o option found
    return
  fi
  case "$command" in
{3}    *) _files; return ;;
  esac
  _describe command found
}}
if [[ "${{funcstack[1]}}" == _neuroshard ]]; then
  _neuroshard "$@"
else
  compdef _neuroshard neuroshard
fi
)";

constexpr const char* kFish = R"(# Completion for fish. Made by: neuroshard completion fish
function __neuroshard_command
    set -l command ''
    for word in (commandline -opc)[2..-1]
        switch "$command $word"
            case {0}
                set command (string trim -- "$command $word")
        end
    end
    echo $command
end
function __neuroshard_at
    set -l command (__neuroshard_command)
    test "$command" = "$argv[1]"
end
{1})";

}  // namespace

std::string bash_completion(const CLI::App& root) {
  const CompletedCommand tree = completed(root, "");
  const std::vector<const CompletedCommand*> commands = all_of(tree);
  const std::string values = value_cases(commands, ":", [](const std::vector<std::string>& words) {
    return fmt::format(R"(COMPREPLY=($(compgen -W "{}" -- "$current")))", fmt::join(words, " "));
  });
  std::string words;
  for (const CompletedCommand* command : commands) {
    words += fmt::format("    {}) options=\"{}\" subcommands=\"{}\" ;;\n", in_shell(command->path),
                         fmt::join(names_of_options(*command), " "),
                         fmt::join(names_of_subcommands(*command), " "));
  }
  return fmt::format(kBash, fmt::join(steps_of(commands), "|"), values, words);
}

std::string zsh_completion(const CLI::App& root) {
  const CompletedCommand tree = completed(root, "");
  const std::vector<const CompletedCommand*> commands = all_of(tree);
  const std::string values =
      value_cases(commands, "_files", [](const std::vector<std::string>& words) {
        return fmt::format("compadd -- {}", fmt::join(words, " "));
      });
  std::string options;
  std::string subcommands;
  for (const CompletedCommand* command : commands) {
    std::vector<std::string> described;
    for (const CompletedOption& option : command->options) {
      for (const std::string& name : option.names) {
        described.push_back(in_shell(name + ":" + option.help));
      }
    }
    options +=
        fmt::format("    {}) found=({}) ;;\n", in_shell(command->path), fmt::join(described, " "));
    if (command->subcommands.empty()) continue;
    described.clear();
    for (const CompletedCommand& subcommand : command->subcommands) {
      described.push_back(in_shell(subcommand.name + ":" + subcommand.help));
    }
    subcommands +=
        fmt::format("    {}) found=({}) ;;\n", in_shell(command->path), fmt::join(described, " "));
  }
  return fmt::format(kZsh, fmt::join(steps_of(commands), "|"), values, options, subcommands);
}

std::string fish_completion(const CLI::App& root) {
  const CompletedCommand tree = completed(root, "");
  const std::vector<const CompletedCommand*> commands = all_of(tree);
  std::string lines;
  for (const CompletedCommand* command : commands) {
    const std::string at = in_fish(fmt::format("__neuroshard_at \"{}\"", command->path));
    for (const CompletedCommand& subcommand : command->subcommands) {
      lines += fmt::format("complete -c neuroshard -n {} -f -a {} -d {}\n", at, subcommand.name,
                           in_fish(subcommand.help));
    }
    for (const CompletedOption& option : command->options) {
      lines += fmt::format("complete -c neuroshard -n {}", at);
      for (const std::string& name : option.names) {
        const bool is_long = name.starts_with("--");
        lines += fmt::format(" -{} {}", is_long ? 'l' : 's', name.substr(is_long ? 2 : 1));
      }
      if (!option.values.empty()) {
        lines += fmt::format(" -x -a \"{}\"", fmt::join(option.values, " "));
      } else if (option.takes_value) {
        lines += " -r";
      }
      lines += fmt::format(" -d {}\n", in_fish(option.help));
    }
  }
  return fmt::format(kFish, fmt::join(steps_of(commands), " "), lines);
}

}  // namespace neuroshard::cli
