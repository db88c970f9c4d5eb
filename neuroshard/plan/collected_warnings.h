// Warnings about many tasks or plans, each once: how many it is about, and the first of them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace neuroshard {

/// Collects warnings item by item. Two are of one reason if they differ in what the item has alone
/// (after ", got "), in the table that they name, or in how far the networks disagree.
class CollectedWarnings {
 public:
  /// What the items are, as lines call several: "tasks".
  explicit CollectedWarnings(std::string items) : items_(std::move(items)) {}

  /// The warnings of one item, as of `model_warnings` or `plan_warnings`; may be none.
  void add(const std::string& item, std::span<const std::string> warnings);

  /// A line for each reason, in the order in which they were met: the first item's own warning,
  /// and, of more than one item, that item's name and how many items there are.
  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  struct Reason {
    std::string key;
    std::string first_warning;
    std::string first_item;
    std::size_t count = 0;
  };

  std::string items_;
  std::vector<Reason> reasons_;
  std::size_t count_ = 0;
};

/// What is to be said of another plan after the warnings `known` about a first one: those of
/// `lines` of other reasons, each after "`item`: ", and adds them to `known` as they are.
[[nodiscard]] std::vector<std::string> further_warnings(const std::string& item,
                                                        std::span<const std::string> lines,
                                                        std::vector<std::string>& known);

}  // namespace neuroshard
