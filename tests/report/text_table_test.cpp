// Tables of text: columns line up, whatever they contain.
#include "neuroshard/report/text_table.h"

#include <gtest/gtest.h>

namespace neuroshard {
namespace {

using Align = TextTable::Align;

TEST(TextTable, AlignsColumnsToTheirWidestCell) {
  TextTable table;
  table.add_column("name", Align::left);
  table.add_column("ms");
  table.add_column("note", Align::left);
  table.add_row({"a", "12.500", "slow"});
  table.add_row({"longer name", "1.0", ""});
  EXPECT_EQ(table.to_string(),
            "name             ms  note\n"
            "a            12.500  slow\n"
            "longer name     1.0\n");
}

TEST(TextTable, MissingCellsAreEmpty) {
  TextTable table;
  table.add_column("a");
  table.add_column("b");
  table.add_column("c");
  table.add_row({"1"});
  table.add_row({});
  table.add_row({"10", "2", "3"});
  EXPECT_EQ(table.to_string(),
            " a  b  c\n"
            " 1\n"
            "\n"
            "10  2  3\n");
}

TEST(TextTable, CountsCharactersNotBytes) {
  TextTable table;
  table.add_column("tablé", Align::left);
  table.add_column("n");
  table.add_row({"é", "1"});
  table.add_row({"abcde", "2"});
  EXPECT_EQ(table.to_string(),
            "tablé  n\n"
            "é      1\n"
            "abcde  2\n");
}

TEST(TextTable, WithoutRowsIsItsTitles) {
  TextTable table;
  table.add_column("only");
  EXPECT_EQ(table.to_string(), "only\n");
}

}  // namespace
}  // namespace neuroshard
