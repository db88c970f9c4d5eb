// The fuzzers' targets without a fuzzer: every file of the corpus, and seeded mutations of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/targets.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/io/file.h"

namespace neuroshard {
namespace {

constexpr int kMutationsPerFile = 1'000;

/// The corpus files of a parser, in the order of their names.
std::vector<std::string> corpus(const std::string& parser) {
  const std::filesystem::path folder =
      std::filesystem::path(NEUROSHARD_SOURCE_DIR) / "fuzz" / "corpus" / parser;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> files;
  for (const std::string& path : paths) files.push_back(read_file(path));
  return files;
}

std::string_view arbitrary_word(Random& random) {
  static constexpr std::string_view kWords[] = {"{",
                                                "}",
                                                "[",
                                                "]",
                                                ",",
                                                ":",
                                                "\"",
                                                "\\",
                                                "\n",
                                                "null",
                                                "-1",
                                                "0",
                                                "1.5",
                                                "1e999",
                                                "\xff",
                                                "9223372036854775807",
                                                "18446744073709551616",
                                                "\"format\"",
                                                "[[[[[[[[[[[[[[[["};
  return kWords[random.below(std::size(kWords))];
}

/// One change: a byte flipped, a range removed, repeated, or replaced by a word.
void mutate(std::string& bytes, Random& random) {
  const std::size_t at = random.below(bytes.size() + 1);
  const std::size_t length = std::min<std::size_t>(random.below(32), bytes.size() - at);
  switch (random.below(4)) {
    case 0:
      if (at < bytes.size()) bytes[at] ^= static_cast<char>(1u << random.below(8));
      break;
    case 1:
      bytes.erase(at, length);
      break;
    case 2:
      bytes.insert(at, std::string(bytes, at, length));
      break;
    default:
      bytes.replace(at, std::min<std::size_t>(length, 4), arbitrary_word(random));
  }
}

void replay(const std::string& parser, const std::function<void(std::string_view)>& target) {
  const std::vector<std::string> files = corpus(parser);
  ASSERT_FALSE(files.empty());
  for (std::size_t i = 0; i < files.size(); ++i) {
    target(files[i]);
    Random random = Random::for_stream(1, i);
    for (int j = 0; j < kMutationsPerFile; ++j) {
      std::string bytes = files[i];
      for (std::uint64_t k = random.below(4) + 1; k > 0; --k) mutate(bytes, random);
      target(bytes);
    }
  }
}

TEST(FuzzReplay, Task) { replay("task", fuzz::task); }
TEST(FuzzReplay, Plan) { replay("plan", fuzz::plan); }
TEST(FuzzReplay, Evaluation) { replay("evaluation", fuzz::evaluation); }
TEST(FuzzReplay, ComputeCosts) { replay("compute_costs", fuzz::compute_costs); }
TEST(FuzzReplay, CommunicationCosts) { replay("communication_costs", fuzz::communication_costs); }
TEST(FuzzReplay, Safetensors) { replay("safetensors", fuzz::safetensors); }

}  // namespace
}  // namespace neuroshard
