// What moves where, as text.
#include "neuroshard/report/moves_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "neuroshard/core/units.h"
#include "neuroshard/report/text_table.h"

namespace neuroshard {

namespace {

double moved_share(const PlanMoves& moves) {
  if (moves.placed_bytes == 0) return 0.0;
  return static_cast<double>(moves.moved_bytes) / static_cast<double>(moves.placed_bytes);
}

}  // namespace

std::string moves_text(const PlanMoves& moves, std::size_t max_pairs) {
  std::string text = fmt::format(
      "moves {} of the {} that the older plan placed: {:.1f}%, of {:.4g}% allowed{}\n",
      format_bytes(static_cast<double>(moves.moved_bytes)),
      format_bytes(static_cast<double>(moves.placed_bytes)), 100.0 * moved_share(moves),
      100.0 * moves.max_move,
      moves.ms && !moves.pairs.empty()
          ? fmt::format("; at the links' rates that takes {}", format_seconds(*moves.ms * 1e-3))
          : "");
  if (moves.pairs.empty()) return text;
  std::vector<PlanMoves::Pair> shown = moves.pairs;
  std::stable_sort(shown.begin(), shown.end(),
                   [](const PlanMoves::Pair& a, const PlanMoves::Pair& b) {
                     return a.transfer.bytes > b.transfer.bytes;
                   });
  const std::size_t hidden = shown.size() - std::min(shown.size(), max_pairs);
  shown.resize(shown.size() - hidden);
  TextTable table;
  for (const char* title : {"from device", "to device", "moves", "alone"}) table.add_column(title);
  for (const PlanMoves::Pair& pair : shown) {
    table.add_row({fmt::format("{}", pair.transfer.from), fmt::format("{}", pair.transfer.to),
                   format_bytes(static_cast<double>(pair.transfer.bytes)),
                   pair.ms ? format_seconds(*pair.ms * 1e-3) : "unknown"});
  }
  text += table.to_string();
  if (hidden > 0) {
    text += fmt::format("({} of fewer bytes not shown)\n",
                        format_count(static_cast<std::int64_t>(hidden), "pair"));
  }
  return text;
}

}  // namespace neuroshard
