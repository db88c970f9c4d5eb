// Even cuts of each table, priced at the mean device.
#include "neuroshard/search/beam/first_lists/cheapest_cuts.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>

#include "neuroshard/search/bound/mean_prices.h"

namespace neuroshard {

namespace {

/// Numbers of slices and of parts of columns that are tried.
constexpr std::array<int, 9> kSlices{1, 2, 3, 4, 6, 8, 12, 16, 32};
constexpr int kMostColumnParts = 16;
/// What a piece may take of a mean device's time, and of a device's memory: from a piece for each
/// device to a dozen.
constexpr std::array<double, 18> kTimes{1.0,  0.9,  0.8,  0.7,  0.62, 0.55, 0.5,   0.45, 0.39,
                                        0.33, 0.29, 0.25, 0.21, 0.18, 0.15, 0.125, 0.1,  0.08};
constexpr std::array<double, 5> kMemories{1.0, 0.5, 0.33, 0.25, 0.125};
/// Where all tables take less of the memory of all devices, pieces may have all of one.
constexpr double kTightMemory = 0.6;

/// A way of cutting a table.
struct Cut {
  PieceList pieces;
  double price_ms = 0.0;    ///< of all pieces, for all devices together
  double longest_ms = 0.0;  ///< alone on a device
  std::int64_t largest_bytes = 0;
};

class CheapestCuts {
 public:
  CheapestCuts(const Simulator& simulator, PieceCatalog& catalog, bool rows, const StopClock& clock)
      : simulator_(simulator), catalog_(catalog), rows_(rows), clock_(clock) {
    const Task& task = simulator.task();
    std::vector<double> mean(catalog.state_size(), 0.0);
    double columns = 0.0;
    for (std::size_t t = 0; t < task.tables.size(); ++t) {
      clock_.check();
      const PieceType whole = catalog.add(static_cast<int>(t), task.tables[t].embedding_dim);
      const auto contribution = catalog.contribution(whole);
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += contribution[i];
      columns += static_cast<double>(catalog.pooled_columns(whole));
      bytes_ += static_cast<double>(catalog.bytes(whole));
    }
    const double devices = task.topology.world_size;
    for (double& element : mean) element /= devices;
    columns /= devices;
    prices_.emplace(simulator, mean, columns);
    const auto& memory = task.topology.memory_bytes;
    memory_ = static_cast<double>(*std::max_element(memory.begin(), memory.end()));
    all_memory_ = std::accumulate(memory.begin(), memory.end(), 0.0);
    for (std::size_t t = 0; t < task.tables.size(); ++t) add_cuts(static_cast<int>(t));
  }

  std::vector<PieceList> lists(std::int64_t most_pieces) const {
    std::vector<PieceList> lists;
    const bool tight = bytes_ > kTightMemory * all_memory_;
    for (const double memory : kMemories) {
      if (memory < 1.0 && !tight) break;
      for (const double time : kTimes) {
        PieceList pieces;
        for (const std::vector<Cut>& cuts : cuts_) {
          const Cut& cut = cheapest(cuts, time * prices_->mean_ms(), memory * memory_);
          pieces.insert(pieces.end(), cut.pieces.begin(), cut.pieces.end());
        }
        most_pieces -= static_cast<std::int64_t>(pieces.size());
        if (most_pieces < 0 && !lists.empty()) return lists;
        lists.push_back(std::move(pieces));
      }
    }
    return lists;
  }

 private:
  double floor_ms(double columns) const {
    const Task& task = simulator_.task();
    return simulator_.communication().floor_ms(task.topology, task.batch_size, columns);
  }

  /// The cheapest cut whose pieces are small enough, or else those of the smallest pieces.
  static const Cut& cheapest(const std::vector<Cut>& cuts, double most_ms, double most_bytes) {
    const auto excess = [&](const Cut& cut) {
      return std::max(
          {cut.longest_ms / most_ms, static_cast<double>(cut.largest_bytes) / most_bytes, 1.0});
    };
    return *std::min_element(cuts.begin(), cuts.end(), [&](const Cut& a, const Cut& b) {
      return std::make_pair(excess(a), a.price_ms) < std::make_pair(excess(b), b.price_ms);
    });
  }

  void add_cuts(int table) {
    cuts_.emplace_back();
    const Table& of = simulator_.task().tables[table];
    for (const int num_slices : kSlices) {
      if (num_slices > 1 && (!rows_ || !catalog_.can_slice(table, num_slices))) continue;
      PieceList parts{catalog_.add(table, of.embedding_dim, num_slices)};
      for (int count = 1; count <= kMostColumnParts; count *= 2) {
        clock_.check();
        cuts_.back().push_back(cut_of(parts));
        if (!std::all_of(parts.begin(), parts.end(),
                         [&](PieceType part) { return catalog_.can_halve(part); })) {
          break;
        }
        PieceList halves;
        for (const PieceType part : parts) {
          const auto [wide, narrow] = catalog_.halves(part);
          halves.insert(halves.end(), {wide, narrow});
        }
        parts = std::move(halves);
      }
    }
  }

  /// Of the parts of columns, each of which has its slices.
  Cut cut_of(const PieceList& parts) const {
    Cut cut;
    for (const PieceType part : parts) add_slices(catalog_, part, cut.pieces);
    for (const PieceType piece : cut.pieces) {
      const auto columns = static_cast<double>(catalog_.pooled_columns(piece));
      cut.price_ms += prices_->price_ms(catalog_, piece);
      cut.longest_ms = std::max(cut.longest_ms, catalog_.single_cost(piece) + floor_ms(columns));
      cut.largest_bytes = std::max(cut.largest_bytes, catalog_.bytes(piece));
    }
    return cut;
  }

  const Simulator& simulator_;
  PieceCatalog& catalog_;
  bool rows_;
  PatientClock clock_;
  std::optional<MeanPrices> prices_;    ///< of a device with its share of whole tables
  double bytes_ = 0.0;                  ///< of all tables
  double memory_ = 0.0;                 ///< of the largest device
  double all_memory_ = 0.0;             ///< of all
  std::vector<std::vector<Cut>> cuts_;  ///< by table
};

}  // namespace

std::vector<PieceList> cheapest_lists(const Simulator& simulator, PieceCatalog& catalog, bool rows,
                                      std::int64_t most_pieces, const StopClock& clock) {
  if (!simulator.compute().is_convex_increasing()) return {};
  return CheapestCuts(simulator, catalog, rows, clock).lists(most_pieces);
}

}  // namespace neuroshard
