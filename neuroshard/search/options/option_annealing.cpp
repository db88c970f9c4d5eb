// Improvement of a choice of options.
#include "neuroshard/search/options/option_annealing.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/search/options/option_places.h"

namespace neuroshard {

namespace {

/// Devices of which the one with the most, or the least, to do is taken.
constexpr int kTournament = 4;
/// Share of changed options whose places are drawn, not the best.
constexpr double kRandomPlaces = 0.1;
/// Where the cost should go: this share of the way from the best one to the bound.
constexpr double kTargetShare = 0.9;
/// Steps without a better plan after which the target comes half as near.
constexpr std::int64_t kPatience = 4'000;

/// Changes since the best plan that are worth keeping in the place of a copy.
constexpr std::size_t kLongestJournal = 4'096;

/// One chain.
class Chain {
 public:
  Chain(const OptionAssignment& first, const OptionAnnealingSettings& settings,
        OptionAnnealingStats& stats)
      : settings_(settings),
        stats_(stats),
        random_(settings.seed),
        now_(first),
        best_(first),
        best_cost_(first.fits() ? first.slowest() : kNone),
        energy_(first.space().world_size()) {
    aim();
  }

  OptionAssignment run() {
    for (std::int64_t step = 0; step < settings_.steps; ++step) {
      const double progress = static_cast<double>(step) / static_cast<double>(settings_.steps);
      const double factor = std::pow(settings_.last_temperature, progress);
      ++stats_.steps;
      try_neighbour(factor * scale_);
      if (is_done_) break;
      if (step - last_gain_ >= kPatience && best_cost_ != kNone) {
        share_ *= 0.5;
        last_gain_ = step;
        aim();
      } else if (has_gained_) {
        has_gained_ = false;
        last_gain_ = step;
        share_ = std::min(kTargetShare, 2.0 * share_);
        aim();
      }
    }
    recall();
    return std::move(best_);
  }

 private:
  /// How to take back one change: a part moved, or a table with another option.
  struct Undo {
    int table;
    int part;
    int place;
    int option;  ///< -1: a part was moved
    Places places;
  };

  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] const OptionSpace& space() const { return now_.space(); }

  /// Sets the target between the best cost and the bound, and all energies.
  void aim() {
    const std::int64_t cost = best_cost_ == kNone ? now_.slowest() : best_cost_;
    const double gap = std::max(0.0, static_cast<double>(cost) - settings_.bound);
    is_done_ = best_cost_ != kNone && gap < 1.0;
    target_ = std::max<std::int64_t>(
        1, std::llround(static_cast<double>(cost) - std::max(1.0, share_ * gap)));
    const double relative = std::max(1e-6, share_ * gap / static_cast<double>(target_));
    for (int device = 0; device < space().world_size(); ++device) {
      energy_[device] = device_energy(now_, device, target_);
    }
    // Where nothing fits yet, energies are of memory exceeded: all of them together, at first.
    scale_ = best_cost_ == kNone ? std::accumulate(energy_.begin(), energy_.end(), 1e-3)
                                 : settings_.first_temperature * relative * relative;
  }

  /// The device of most energy, or of least load, of some.
  int busy_device() {
    int chosen = random_device();
    for (int i = 1; i < kTournament; ++i) {
      const int other = random_device();
      if (std::pair(energy_[other], now_.load()[other]) >
          std::pair(energy_[chosen], now_.load()[chosen])) {
        chosen = other;
      }
    }
    return chosen;
  }
  int idle_device() {
    int chosen = random_device();
    for (int i = 1; i < kTournament; ++i) {
      const int other = random_device();
      if (now_.load()[other] < now_.load()[chosen]) chosen = other;
    }
    return chosen;
  }
  int random_device() { return static_cast<int>(random_.below(space().world_size())); }

  /// A part on the device, on its host or everywhere.
  PlacedPart part_on(int device) {
    const auto single = now_.on_device(device);
    const int host = device / space().local_world_size();
    const auto groups =
        host < space().num_hosts() ? now_.on_host(host) : std::span<const PlacedPart>{};
    const auto all = now_.everywhere();
    const std::size_t count = single.size() + groups.size() + all.size();
    if (count == 0) return {static_cast<int>(random_.below(space().tables().size())), 0};
    std::size_t index = random_.below(count);
    if (index < single.size()) return single[index];
    index -= single.size();
    return index < groups.size() ? groups[index] : all[index - groups.size()];
  }

  void try_neighbour(double temperature) {
    now_.clear_touched();
    undo_.clear();
    const PlacedPart given = part_on(random_.uniform() < 0.8 ? busy_device() : random_device());
    const double kind = random_.uniform();
    bool changed = false;
    if (kind < 0.35) {
      changed = move(given);
    } else if (kind < 0.7) {
      changed = exchange(given);
    }
    if (!changed) change_option(given.table);
    decide(temperature);
  }

  /// Whether single parts of it may go to any place of their kind.
  [[nodiscard]] bool is_free(int table) const {
    const ScaledOption& option = now_.option(table);
    return option.placement == ShardPlacement::any_device ||
           (option.placement == ShardPlacement::whole_hosts && now_.places(table).size() == 1);
  }
  [[nodiscard]] bool is_group(int table) const {
    return now_.option(table).placement == ShardPlacement::whole_hosts;
  }
  /// A device, or for a group its host, that is mostly idle.
  int other_place(int table) {
    const int device = random_.uniform() < 0.7 ? idle_device() : random_device();
    if (!is_group(table)) return device;
    return std::min(device / space().local_world_size(), space().num_hosts() - 1);
  }

  void move_part(int table, int part, int place) {
    undo_.push_back({table, part, now_.places(table)[part], -1, {}});
    now_.move(table, part, place);
  }

  bool move(PlacedPart given) {
    if (!is_free(given.table)) return false;
    const int to = other_place(given.table);
    if (to == now_.places(given.table)[given.part]) return false;
    move_part(given.table, given.part, to);
    return true;
  }

  bool exchange(PlacedPart given) {
    if (!is_free(given.table)) return false;
    const int from = now_.places(given.table)[given.part];
    const int to = other_place(given.table);
    const auto list = is_group(given.table) ? now_.on_host(to) : now_.on_device(to);
    if (from == to || list.empty()) return false;
    const PlacedPart taken = list[random_.below(list.size())];
    if (!is_free(taken.table)) return false;
    move_part(given.table, given.part, to);
    move_part(taken.table, taken.part, from);
    return true;
  }

  void change_option(int table) {
    const auto count = static_cast<int>(space().tables()[table].size());
    const int old = now_.choice(table);
    // The same option is one of those tried: its shards may lie better elsewhere.
    const int option = static_cast<int>(random_.below(count));
    Places places = now_.remove(table);
    undo_.push_back({table, -1, 0, old, std::move(places)});
    const ScaledOption& chosen = space().tables()[table][option];
    now_.place(table, option,
               random_.uniform() < kRandomPlaces
                   ? random_places(space(), chosen, random_)
                   : best_places(now_, chosen, {target_, random_.uniform() < 0.5}));
  }

  void decide(double temperature) {
    double change = 0.0;
    for (const int device : now_.touched()) {
      change += device_energy(now_, device, target_) - energy_[device];
    }
    const bool is_accepted = change <= 0.0 || random_.uniform() < std::exp(-change / temperature);
    if (!is_accepted) {
      take_back(now_, undo_);
      return;
    }
    ++stats_.accepted;
    for (const int device : now_.touched()) {
      energy_[device] = device_energy(now_, device, target_);
    }
    if (is_journaling_) {
      std::move(undo_.begin(), undo_.end(), std::back_inserter(journal_));
      if (journal_.size() > kLongestJournal) recall();
    }
    keep_if_best();
  }

  static void take_back(OptionAssignment& assignment, std::vector<Undo>& changes) {
    while (!changes.empty()) {
      Undo change = std::move(changes.back());
      changes.pop_back();
      if (change.option < 0) {
        assignment.move(change.table, change.part, change.place);
      } else {
        assignment.remove(change.table);
        assignment.place(change.table, change.option, std::move(change.places));
      }
    }
  }

  void keep_if_best() {
    const std::int64_t cost = now_.slowest();
    if (cost >= best_cost_ || !now_.fits()) return;
    best_cost_ = cost;
    is_journaling_ = true;
    journal_.clear();
    has_gained_ = has_gained_ || cost <= target_;
  }

  /// Makes `best_` from the present assignment and the changes since the best one, of which there
  /// are far more than of copies worth their time.
  void recall() {
    if (!is_journaling_) return;
    best_ = now_;
    take_back(best_, journal_);
    best_.clear_touched();
    is_journaling_ = false;
  }

  OptionAnnealingSettings settings_;
  OptionAnnealingStats& stats_;
  Random random_;
  OptionAssignment now_;
  OptionAssignment best_;
  std::int64_t best_cost_;
  std::int64_t target_ = 1;
  double share_ = kTargetShare;
  double scale_ = 1.0;
  std::int64_t last_gain_ = 0;
  bool has_gained_ = false;
  bool is_journaling_ = false;  ///< since the best one, which `best_` is not yet
  bool is_done_ = false;
  std::vector<double> energy_;
  std::vector<Undo> undo_;     ///< of this step
  std::vector<Undo> journal_;  ///< of all steps since the best one
};

}  // namespace

OptionAssignment anneal(const OptionAssignment& first, const OptionAnnealingSettings& settings,
                        OptionAnnealingStats& stats) {
  return Chain(first, settings, stats).run();
}

}  // namespace neuroshard
