// `neuroshard completion`: scripts for shells.
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/completion/completion.h"
#include "cli/options/conventions.h"
#include "cli/options/options.h"
#include "cli/streams/output.h"

namespace neuroshard::cli {

namespace {

struct CompletionOptions {
  std::string shell;
  std::string output = "-";
  bool force = false;
};

void run(const CLI::App& root, const CompletionOptions& options) {
  check_output(options.output, options.force);
  const auto script = options.shell == "bash"  ? bash_completion
                      : options.shell == "zsh" ? zsh_completion
                                               : fish_completion;
  write_output(options.output, script(root));
}

}  // namespace

void add_completion_command(CLI::App& app) {
  auto options = std::make_shared<CompletionOptions>();
  CLI::App* command = app.add_subcommand(
      "completion", "Print a script by which a shell completes this command line");
  command->add_option("shell", options->shell, "bash, zsh or fish")
      ->check(one_of({"bash", "zsh", "fish"}))
      ->required();
  add_output_option(*command, options->output, options->force, "Script to write")
      ->capture_default_str();
  add_examples(*command,
               {"completion bash -o ~/.local/share/bash-completion/completions/neuroshard",
                "completion fish -o ~/.config/fish/completions/neuroshard.fish"});
  command->callback([options, &app] { run(app, *options); });
}

}  // namespace neuroshard::cli
