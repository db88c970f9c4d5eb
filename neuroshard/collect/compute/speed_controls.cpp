// Samples that are measured again.
#include "neuroshard/collect/compute/speed_controls.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "neuroshard/collect/compute/usual_speed.h"
#include "neuroshard/core/numbers/median.h"
#include "neuroshard/io/compute_costs_io.h"

namespace neuroshard {

namespace {

using TableNumbers = std::map<std::string, int>;

/// The sample's pieces among `tables`; nothing if one is missing.
std::optional<std::vector<Piece>> pieces_of(const ComputeCostSample& sample,
                                            const ComputeCostsHeader& header,
                                            std::span<const Table> tables,
                                            const TableNumbers& numbers) {
  std::vector<Piece> pieces;
  for (const Piece& piece : sample.pieces) {
    const MeasuredTable& measured = header.tables[piece.table];
    const auto number = numbers.find(measured.name);
    if (number == numbers.end()) return std::nullopt;
    const Table& table = tables[number->second];
    if (table.data_type != measured.data_type || table.num_embeddings != measured.num_embeddings ||
        table.pooling_factor != measured.pooling_factor) {
      return std::nullopt;
    }
    Piece same = piece;  // a slice of rows stays one
    same.table = number->second;
    pieces.push_back(same);
  }
  return pieces;
}

std::vector<ComputeCosts> read_all(const std::vector<std::string>& files) {
  std::vector<ComputeCosts> costs;
  for (const std::string& file : files) costs.push_back(read_compute_costs(file));
  return costs;
}

}  // namespace

SpeedControls::SpeedControls(const std::vector<std::string>& files, std::span<const Table> tables)
    : SpeedControls(read_all(files), tables) {}

SpeedControls::SpeedControls(const std::vector<ComputeCosts>& files,
                             std::span<const Table> tables) {
  TableNumbers numbers;
  for (std::size_t i = 0; i < tables.size(); ++i) numbers[tables[i].name] = static_cast<int>(i);
  const UsualSpeed usual = usual_speed(files);
  for (const ComputeCosts& costs : files) {
    Group& group = groups_.emplace_back();
    group.batch_size = costs.header.batch_size;
    group.optimizer = costs.header.optimizer;
    for (const ComputeCostSample& sample : costs.samples) {
      const double cost_ms = usual_cost_ms(sample, costs.header.reference_sets, usual, "controls");
      auto pieces = pieces_of(sample, costs.header, tables, numbers);
      if (pieces && cost_ms > 0.0) group.samples.push_back({tables, std::move(*pieces), cost_ms});
    }
  }
}

std::vector<SpeedControl> SpeedControls::draw(std::int64_t batch_size, Optimizer optimizer,
                                              std::size_t count, Random random) const {
  std::vector<const SpeedControl*> candidates;
  for (const Group& group : groups_) {
    if (group.batch_size != batch_size || group.optimizer != optimizer) continue;
    for (const SpeedControl& sample : group.samples) candidates.push_back(&sample);
  }
  random.shuffle(candidates);
  candidates.resize(std::min(candidates.size(), count));
  std::vector<SpeedControl> drawn;
  for (const SpeedControl* candidate : candidates) drawn.push_back(*candidate);
  return drawn;
}

double median_drift(std::vector<double> ratios) {
  return ratios.empty() ? 1.0 : median(std::move(ratios));
}

}  // namespace neuroshard
