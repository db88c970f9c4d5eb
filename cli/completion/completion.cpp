// One walk over the tree, then a script for each shell.
#include "cli/completion/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/completion/completion_tree.h"

namespace neuroshard::cli {

namespace {

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

/// Lines of `case` for options with a value; `completes` is what completes it.
template <typename F>
std::string value_cases(const std::vector<const CompletedCommand*>& commands, const F& completes) {
  std::vector<std::pair<std::string, std::vector<std::string>>> cases;  // in order of appearance
  for (const CompletedCommand* command : commands) {
    for (const CompletedOption& option : command->options) {
      if (!option.takes_value) continue;
      const std::string how = completes(option.value);
      auto same = std::find_if(cases.begin(), cases.end(),
                               [&](const auto& known) { return known.first == how; });
      if (same == cases.end()) same = cases.emplace(cases.end(), how, std::vector<std::string>());
      const std::vector<std::string> places = places_of(*command, option);
      same->second.insert(same->second.end(), places.begin(), places.end());
    }
  }
  std::string text;
  for (const auto& [how, places] : cases) {
    text += fmt::format("    {}) {}; return ;;\n", fmt::join(places, "|"), how);
  }
  return text;
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

/// "COMPREPLY" are the words that begin as the last one. What a folder of models contains is never
/// expanded, as `compgen -W` would.
constexpr const char* kBash = R"sh(# Completion for bash. Made by: neuroshard completion bash
_neuroshard_words() {{
  COMPREPLY=($(compgen -W "$*" -- "$current"))
}}
_neuroshard_models() {{
  local name
  while IFS= read -r name; do
    [[ $name == "$current"* ]] && COMPREPLY+=("$name")
  done < <("${{COMP_WORDS[0]/#\~/$HOME}}" model list --names 2>/dev/null)
}}
_neuroshard_files() {{
  local name
  while IFS= read -r name; do
    COMPREPLY+=("$name")
  done < <(compgen -f -- "$current")
  compopt -o filenames 2>/dev/null
}}
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
  if [[ $current == -* ]]; then
    case "$command" in
{2}    esac
  else
    case "$command" in
{3}    esac
  fi
}}
complete -o default -F _neuroshard neuroshard
)sh";

constexpr const char* kZsh = R"sh(#compdef neuroshard
# Completion for zsh. Made by: neuroshard completion zsh
_neuroshard_models() {{
  local -a names
  names=(${{(f)"$("${{words[1]/#\~/$HOME}}" model list --names 2>/dev/null)"}})
  compadd -a names
}}
_neuroshard() {{
  local command="" word i
  local -a found
  for ((i = 2; i < CURRENT; i++)); do
    word="${{words[i]}}"
    case "$command $word" in
    {0}) command="${{command:+$command }}$word" ;;
    esac
  done
  local previous="${{words[CURRENT-1]}}"
  if [[ "${{words[CURRENT]}}" == --*=* ]]; then
    previous="${{words[CURRENT]%%=*}}"
    compset -P '*='
  fi
  case "$command $previous" in
{1}  esac
  if [[ "${{words[CURRENT]}}" == -* ]]; then
    case "$command" in
{2}    esac
    _describe -o option found
    return
  fi
  case "$command" in
{3}    *) _files ;;
  esac
}}
if [[ "${{funcstack[1]}}" == _neuroshard ]]; then
  _neuroshard "$@"
else
  compdef _neuroshard neuroshard
fi
)sh";

constexpr const char* kFish = R"sh(# Completion for fish. Made by: neuroshard completion fish
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
function __neuroshard_models
    set -l program (string replace -r '^~' $HOME -- (commandline -opc)[1])
    type -q $program; and $program model list --names 2>/dev/null
end
{1})sh";

/// Commands for bash that complete a value; ":" leaves it to bash, which completes files.
std::string in_bash(const CompletedValue& value) {
  std::vector<std::string> commands;
  if (!value.words.empty()) {
    commands.push_back(fmt::format("_neuroshard_words {}", fmt::join(value.words, " ")));
  }
  if (value.models) commands.emplace_back("_neuroshard_models");
  if (value.files && !commands.empty()) commands.emplace_back("_neuroshard_files");
  return commands.empty() ? ":" : fmt::format("{}", fmt::join(commands, "; "));
}

std::string in_zsh(const CompletedValue& value) {
  std::vector<std::string> commands;
  if (!value.words.empty()) {
    commands.push_back(fmt::format("compadd -- {}", fmt::join(value.words, " ")));
  }
  if (value.models) commands.emplace_back("_neuroshard_models");
  if (value.files) commands.emplace_back("_files");
  return fmt::format("{}", fmt::join(commands, "; "));
}

/// Options of fish's `complete`: -x is a value that is no file, -r one that may be.
std::string of_fish(const CompletedValue& value) {
  std::string text = fmt::format("{}", fmt::join(value.words, " "));
  if (value.models) text += text.empty() ? "(__neuroshard_models)" : " (__neuroshard_models)";
  return text.empty() ? "" : fmt::format(" -a {}", quoted(text, R"(\')"));
}

}  // namespace

std::string bash_completion(const CLI::App& root) {
  const CompletedCommand tree = completion_tree(root);
  const std::vector<const CompletedCommand*> commands = all_of(tree);
  std::string options;
  std::string words;
  for (const CompletedCommand* command : commands) {
    const std::string path = in_shell(command->path);
    options += fmt::format("    {}) _neuroshard_words {} ;;\n", path,
                           fmt::join(names_of_options(*command), " "));
    CompletedValue value = command->positional;
    if (!command->subcommands.empty()) value = {names_of_subcommands(*command), false, false};
    words += fmt::format("    {}) {} ;;\n", path, in_bash(value));
  }
  return fmt::format(kBash, fmt::join(steps_of(commands), "|"), value_cases(commands, in_bash),
                     options, words);
}

std::string zsh_completion(const CLI::App& root) {
  const CompletedCommand tree = completion_tree(root);
  const std::vector<const CompletedCommand*> commands = all_of(tree);
  std::string options;
  std::string words;
  for (const CompletedCommand* command : commands) {
    const std::string path = in_shell(command->path);
    std::vector<std::string> described;
    for (const CompletedOption& option : command->options) {
      for (const std::string& name : option.names) {
        described.push_back(in_shell(name + ":" + option.help));
      }
    }
    options += fmt::format("    {}) found=({}) ;;\n", path, fmt::join(described, " "));
    if (command->subcommands.empty()) {
      words += fmt::format("    {}) {} ;;\n", path, in_zsh(command->positional));
      continue;
    }
    described.clear();
    for (const CompletedCommand& subcommand : command->subcommands) {
      described.push_back(in_shell(subcommand.name + ":" + subcommand.help));
    }
    words += fmt::format("    {}) found=({}); _describe command found ;;\n", path,
                         fmt::join(described, " "));
  }
  return fmt::format(kZsh, fmt::join(steps_of(commands), "|"), value_cases(commands, in_zsh),
                     options, words);
}

std::string fish_completion(const CLI::App& root) {
  const CompletedCommand tree = completion_tree(root);
  const std::vector<const CompletedCommand*> commands = all_of(tree);
  std::string lines;
  for (const CompletedCommand* command : commands) {
    const std::string at =
        fmt::format("complete -c neuroshard -n {}",
                    in_fish(fmt::format("__neuroshard_at \"{}\"", command->path)));
    for (const CompletedCommand& subcommand : command->subcommands) {
      lines += fmt::format("{} -f -a {} -d {}\n", at, subcommand.name, in_fish(subcommand.help));
    }
    if (command->subcommands.empty()) {
      lines += fmt::format("{}{}{}\n", at, command->positional.files ? "" : " -f",
                           of_fish(command->positional));
    }
    for (const CompletedOption& option : command->options) {
      lines += at;
      for (const std::string& name : option.names) {
        const bool is_long = name.starts_with("--");
        lines += fmt::format(" -{} {}", is_long ? 'l' : 's', name.substr(is_long ? 2 : 1));
      }
      if (option.takes_value) {
        lines += fmt::format("{}{}", option.value.files ? " -r" : " -x", of_fish(option.value));
      }
      lines += fmt::format(" -d {}\n", in_fish(option.help));
    }
  }
  return fmt::format(kFish, fmt::join(steps_of(commands), " "), lines);
}

}  // namespace neuroshard::cli
