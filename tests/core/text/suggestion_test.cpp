// The name that was meant: near ones, beginnings, and nothing for what is far from all.
#include "neuroshard/core/text/suggestion.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace neuroshard {
namespace {

const std::vector<std::string> kNames{"--memory", "--model",   "--threads",
                                      "--tables", "--devices", "--least-gain"};

TEST(Suggestion, IsTheNearestName) {
  EXPECT_EQ(suggestion("--memroy", kNames), "; did you mean --memory?");
  EXPECT_EQ(suggestion("--memmory", kNames), "; did you mean --memory?");
  EXPECT_EQ(suggestion("--mode", kNames), "; did you mean --model?");
  EXPECT_EQ(suggestion("plam", {"compare", "plan", "price"}), "; did you mean plan?");
}

TEST(Suggestion, IsTheShortestNameThatBeginsSo) {
  EXPECT_EQ(suggestion("--least", kNames), "; did you mean --least-gain?");
  EXPECT_EQ(suggestion("criteo", {"criteo-terabyte", "criteo-kaggle"}),
            "; did you mean criteo-kaggle?");
}

TEST(Suggestion, IsNothingForWhatIsFarFromAllNames) {
  for (const std::string& name :
       {std::string(), std::string("x"), std::string("--quantum"), std::string(1'000'000, '-')}) {
    EXPECT_EQ(suggestion(name, kNames), "");
  }
  EXPECT_EQ(suggestion("plan", {}), "");
  EXPECT_EQ(suggestion("a", {"b"}), "");
}

}  // namespace
}  // namespace neuroshard
