// What bash, zsh and fish complete with the scripts made for them, asked of the shells themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "tests/cli/run_cli.h"

namespace neuroshard {
namespace {

using namespace testing_cli;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;
using testing::UnorderedElementsAre;

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

bool is_installed(const std::string& shell) {
  return run_program({"bash", "-c", "command -v \"$0\" > /dev/null", shell}).exit_code == 0;
}

/// In bash, what the shell itself calls is called: the function, or compgen for files by default.
/// Words are split as bash splits them.
constexpr const char* kAskBash = R"sh(
source "$1"
cd "$2"
line=$3
COMP_WORDS=(${line//=/ = })
[[ $line == *[\ =] ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
eval "$(complete -p neuroshard | sed 's/.*-F \([a-z_]*\) .*/\1/')"
if ((${#COMPREPLY[@]} == 0)) && complete -p neuroshard | grep -q -e '-o default'; then
  compgen -f -- "${COMP_WORDS[COMP_CWORD]}"
else
  printf '%s\n' "${COMPREPLY[@]}"
fi
true  # also if there is nothing to complete
)sh";

/// In zsh, a line is typed into a shell on a terminal of its own, with a tab at its end; what the
/// script gives to `compadd` is written into a file.
constexpr const char* kAskZsh = R"sh(
zmodload zsh/zpty || exit 3
export ZDOTDIR=$1 ASKED_SCRIPT=$2 ASKED_OUT=$1/found
print -r -- '
PROMPT=
fpath=($ASKED_SCRIPT:h $fpath)
autoload -Uz compinit && compinit -u -D
[[ $ASKED_SCRIPT:t == _neuroshard ]] || source $ASKED_SCRIPT
# Those called with -O, -A or -D only ask what would match.
compadd() {
  if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
    local -a found
    builtin compadd -A found "$@"
    (($#found)) && print -rl -- "$found[@]" >> $ASKED_OUT
  fi
  builtin compadd "$@"
}
ask() { zle complete-word; exit }
zle -N ask
bindkey "^I" ask
' > $1/.zshrc
: > $1/found
cd $3
zpty asked zsh -i
zpty -w -n asked "$4"$'\t'
while zpty -r asked line; do :; done
sort -u $1/found
)sh";

/// In fish, the shell says what it would complete, with descriptions behind tabs.
constexpr const char* kAskFish = R"sh(
source $argv[1]
cd $argv[2]
complete -C $argv[3] | string replace -r '\t.*' ''
true
)sh";

/// A folder with the executable under its own name, a script of each shell, and files to complete.
class Shells {
 public:
  Shells() {
    namespace fs = std::filesystem;
    for (const char* name : {"bin", "functions", "zsh", "here", "here/folder"}) {
      fs::create_directory(folder_.file(name));
    }
    fs::create_symlink(NEUROSHARD_EXECUTABLE, folder_.file("bin/neuroshard"));
    (void)expect_success({"completion", "bash", "-o", folder_.file("neuroshard.bash")});
    (void)expect_success({"completion", "fish", "-o", folder_.file("neuroshard.fish")});
    (void)expect_success({"completion", "zsh", "-o", folder_.file("neuroshard.zsh")});
    (void)expect_success({"completion", "zsh", "-o", folder_.file("functions/_neuroshard")});
    folder_.write("here/plan.json", "{}");
    folder_.write("here/analytic-mine.safetensors", "");
  }

  [[nodiscard]] Lines bash(const std::string& line) const {
    return answer({"bash", "--norc", "-c", kAskBash, "bash", folder_.file("neuroshard.bash"),
                   folder_.file("here"), line});
  }
  /// `script` is "functions/_neuroshard", as it is installed, or "neuroshard.zsh", which is read.
  [[nodiscard]] Lines zsh(const std::string& line,
                          const std::string& script = "functions/_neuroshard") const {
    return answer({"zsh", "-f", "-c", kAskZsh, "zsh", folder_.file("zsh"), folder_.file(script),
                   folder_.file("here"), line});
  }
  [[nodiscard]] Lines fish(const std::string& line) const {
    return answer({"fish", "--no-config", "-c", kAskFish, folder_.file("neuroshard.fish"),
                   folder_.file("here"), line});
  }

 private:
  /// With the executable in PATH, and no settings of whoever runs the tests.
  [[nodiscard]] Lines answer(const Arguments& command) const {
    const char* path = std::getenv("PATH");
    const Arguments settings{
        "env", "PATH=" + folder_.file("bin") + ":" + (path != nullptr ? path : "/usr/bin:/bin"),
        "HOME=" + folder_.file("here")};
    const CommandResult result = run_program(settings + command);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return lines_of(result.out);
  }

  CliFolder folder_;
};

/// What every shell must complete; `ask` is how it is asked.
template <typename F>
void expect_completions(const F& ask) {
  // Subcommands, at both levels.
  EXPECT_THAT(ask("neuroshard "), IsSupersetOf({"plan", "collect", "model", "completion"}));
  EXPECT_THAT(ask("neuroshard "), Not(Contains("plan.json")));
  EXPECT_THAT(ask("neuroshard pl"), ElementsAre("plan"));
  EXPECT_THAT(ask("neuroshard collect com"), UnorderedElementsAre("compute", "communication"));
  // Options, of the subcommand that was written.
  EXPECT_THAT(ask("neuroshard collect compute --se"), UnorderedElementsAre("--sets", "--seed"));
  EXPECT_THAT(ask("neuroshard plan plan.json --mem"), ElementsAre("--memory"));
  EXPECT_THAT(ask("neuroshard plan --json --q"), ElementsAre("--quiet"));
  // An argument that is the name of another subcommand changes nothing.
  EXPECT_THAT(ask("neuroshard plan model --mem"), ElementsAre("--memory"));
  EXPECT_THAT(ask("neuroshard check --mem"), IsEmpty());
  // Values that are listed.
  EXPECT_THAT(ask("neuroshard collect compute --sets co"), ElementsAre("coverage"));
  EXPECT_THAT(ask("neuroshard plan --workload crit"), Contains("criteo-kaggle"));
  EXPECT_THAT(ask("neuroshard plan --workload "), Not(Contains("plan.json")));
  EXPECT_THAT(ask("neuroshard workload show crit"), Contains("criteo-kaggle"));
  EXPECT_THAT(ask("neuroshard plan --algorithm greedy-s"), ElementsAre("greedy-size"));
  EXPECT_THAT(ask("neuroshard completion "), UnorderedElementsAre("bash", "zsh", "fish"));
  // Names of models, and files.
  EXPECT_THAT(ask("neuroshard plan plan.json --model analytic-"),
              IsSupersetOf({"analytic-a100-40gb", "analytic-mine.safetensors"}));
  EXPECT_THAT(ask("neuroshard plan --model cpu-"), Contains("cpu-epyc-2core"));
  EXPECT_THAT(ask("neuroshard model show analytic-a100-40"), ElementsAre("analytic-a100-40gb"));
  EXPECT_THAT(ask("neuroshard evaluate plan.json --platform a100-nv"),
              ElementsAre("a100-nvswitch"));
  EXPECT_THAT(ask("neuroshard train compute costs.jsonl --from cpu-"), Contains("cpu-epyc-2core"));
  EXPECT_THAT(ask("neuroshard train communication costs.jsonl --from analytic-"),
              Contains("analytic-mine.safetensors"));
  EXPECT_THAT(ask("neuroshard collect compute --least-sure cpu-"), Contains("cpu-epyc-2core"));
  EXPECT_THAT(ask("neuroshard collect compute --planned-by cpu-"), Contains("cpu-epyc-2core"));
  EXPECT_THAT(ask("neuroshard calibrate --model cpu-"), Contains("cpu-epyc-2core"));
  EXPECT_THAT(ask("neuroshard plan plan.json --from "), Not(Contains("cpu-epyc-2core")));
  // Files: of arguments, of options without a list, and where the last argument is another one.
  EXPECT_THAT(ask("neuroshard check pl"), ElementsAre("plan.json"));
  EXPECT_THAT(ask("neuroshard plan plan.json -o pl"), ElementsAre("plan.json"));
  EXPECT_THAT(ask("neuroshard check fol"), ElementsAre(HasSubstr("folder")));
}

TEST(CliCompletion, Bash) {
  const Shells shells;
  const auto ask = [&](const std::string& line) { return shells.bash(line); };
  expect_completions(ask);
  EXPECT_THAT(ask("neuroshard collect compute --sets=co"), ElementsAre("coverage"));
  EXPECT_THAT(ask("neuroshard plan --model=analytic-a100-40"), ElementsAre("analytic-a100-40gb"));
}

TEST(CliCompletion, Zsh) {
  if (!is_installed("zsh")) GTEST_SKIP() << "zsh is not installed";
  const Shells shells;
  const auto ask = [&](const std::string& line) { return shells.zsh(line); };
  expect_completions(ask);
  EXPECT_THAT(ask("neuroshard collect compute --sets=co"), ElementsAre("coverage"));
  EXPECT_THAT(ask("neuroshard plan --model=analytic-a100-40"), ElementsAre("analytic-a100-40gb"));
  EXPECT_THAT(shells.zsh("neuroshard pl", "neuroshard.zsh"), ElementsAre("plan"));
}

TEST(CliCompletion, Fish) {
  if (!is_installed("fish")) GTEST_SKIP() << "fish is not installed";
  const Shells shells;
  const auto ask = [&](const std::string& line) { return shells.fish(line); };
  expect_completions(ask);
  EXPECT_THAT(ask("neuroshard collect compute --sets=co"), ElementsAre("--sets=coverage"));
  EXPECT_THAT(ask("neuroshard plan --model=analytic-a100-40"),
              ElementsAre("--model=analytic-a100-40gb"));
}

// Whoever puts a model into a folder of models decides on its name.
TEST(CliCompletion, ANameOfAModelIsNotExpanded) {
  const CliFolder models;
  const std::string name = "cpu-$(touch expanded) `touch expanded`";
  std::filesystem::copy_file(
      std::string(NEUROSHARD_SOURCE_DIR) + "/models/cpu-epyc-2core.safetensors",
      models.file(name + ".safetensors"));
  const EnvironmentVariable folders("NEUROSHARD_MODELS", models.file(""));
  const Shells shells;
  const std::string line = "neuroshard plan --model cpu-$";
  EXPECT_THAT(shells.bash(line), ElementsAre(name));
  EXPECT_THAT(shells.bash("neuroshard check exp"), IsEmpty());
}

TEST(CliCompletion, EveryShellCanReadItsScript) {
  const CliFolder folder;
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const std::string script = folder.file(shell);
    (void)expect_success({"completion", shell, "-o", script});
    EXPECT_EQ(read_file(script), expect_success({"completion", shell}));
    EXPECT_THAT(read_file(script),
                AllOf(HasSubstr("collect compute"), HasSubstr("max-pass"), HasSubstr("coverage")));
    if (!is_installed(shell)) continue;
    const CommandResult read = run_program({shell, "-n", script});
    EXPECT_EQ(read.exit_code, 0) << shell << ": " << read.err;
    EXPECT_EQ(read.err, "") << shell;
  }
  expect_refusal(folder, {"completion", "tcsh"}, "tcsh");
}

TEST(CliCompletion, NamesOfModelsAreALineEach) {
  const Lines names = lines_of(expect_success({"model", "list", "--names"}));
  EXPECT_THAT(names, IsSupersetOf({"cpu-epyc-2core", "analytic-a100-40gb"}));
  for (const std::string& name : names) {
    EXPECT_EQ(run_cli({"model", "show", name}).exit_code, 0) << name;
  }
  const CliFolder broken;
  broken.write("broken.safetensors", "no model");
  const EnvironmentVariable folders("NEUROSHARD_MODELS", broken.file(""));
  EXPECT_THAT(expect_success({"model", "list"}), HasSubstr("broken"));
  EXPECT_EQ(lines_of(expect_success({"model", "list", "--names"})), names);
}

}  // namespace
}  // namespace neuroshard
