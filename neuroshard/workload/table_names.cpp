// Naming the tables of a workload.
#include "neuroshard/workload/table_names.h"

#include <fmt/format.h>

namespace neuroshard {

void name_tables(std::vector<Table>& tables) {
  const std::size_t width = std::to_string(tables.size() - 1).size();
  for (std::size_t i = 0; i < tables.size(); ++i) {
    tables[i].name = fmt::format("t{:0{}}", i, width);
  }
}

}  // namespace neuroshard
