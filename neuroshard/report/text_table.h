// Tables of text for people: columns as wide as their widest cell.
#pragma once

#include <string>
#include <vector>

namespace neuroshard {

class TextTable {
 public:
  enum class Align { left, right };

  /// Adds a column; cells of later rows belong to columns in this order.
  void add_column(std::string title, Align align = Align::right);
  /// A row has at most as many cells as there are columns. Cells are shown as `printable` says.
  void add_row(std::vector<std::string> cells);

  /// Lines ending in newline, no trailing spaces.
  [[nodiscard]] std::string to_string() const;

 private:
  std::vector<std::string> titles_;
  std::vector<Align> aligns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace neuroshard
