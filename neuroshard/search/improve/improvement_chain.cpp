// The run of a chain, whatever its neighbours are.
#include "neuroshard/search/improve/improvement_chain.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace neuroshard {

namespace {

/// Share of the mean device's cost in the objective: where no single step relieves the slowest
/// device, less work elsewhere makes room for relieving it later.
constexpr double kMeanShare = 0.1;

/// When a device is ready for the forward all-to-all: it ends on all devices together, so the
/// device that starts it last delays the plan.
double start_of(const DeviceCost& device) { return device.compute_ms + device.backward_comm_ms; }

/// With a limit on what plans move: what a plan that moves all of it adds to the objective, as a
/// share of the first cost. Of two plans that cost the same, the one that moves less is better.
constexpr double kMovingShare = 0.02;

/// Pieces that are looked at for one that lies where it did not lie before.
constexpr int kWayHomeAttempts = 4;

double all_to_alls_ns(int devices) {
  return NominalStepTime::kAllToAlls_ns + NominalStepTime::kAllToAllsPerDevice_ns * devices;
}

}  // namespace

ImprovementChain::ImprovementChain(const Traits& traits, const Simulator& simulator,
                                   const ShardingPlan& plan, const ChainSettings& settings,
                                   std::uint64_t stream)
    : random_(Random::for_stream(settings.seed, stream)),
      catalog_(simulator),
      assignment_(simulator, catalog_, plan, StopClock(settings.deadline)),
      traits_(traits),
      simulator_(simulator),
      settings_(settings) {
  stats_.kind = traits.kind;
  if (settings.move_limit != nullptr) {
    ledger_.emplace(*settings.move_limit, plan);
    moved_bytes_ = ledger_->moved_bytes();
  }
}

void ImprovementChain::run() {
  const double scale = assignment_.cost().cost_ms;
  stats_.best_cost_ms = scale;
  double energy = current_energy() + moving_energy(scale, moved_bytes_);
  arrived();
  for (double progress = share_done(); progress < 1.0; progress = share_done()) {
    if (is_too_late()) break;
    ++stats_.steps;
    prepare_step();
    const double allowed = energy + random_rise(scale, progress);
    if (!step()) continue;
    if (!may_move()) {
      step_back();
      changes_.clear();
      continue;
    }
    const double of_moving = moving_energy(scale, moved_bytes_);
    if (const std::optional<double> next = energy_within(allowed - of_moving)) {
      energy = *next + of_moving;
      if (ledger_) ledger_->commit();
      arrived();
      keep_if_best();
    } else {
      step_back();
      changes_.clear();
    }
  }
  undo(since_best_);
}

ChainStats ImprovementChain::stats() const {
  ChainStats stats = stats_;
  stats.head_evaluations = assignment_.head_evaluations();
  stats.pieces_encoded = static_cast<std::int64_t>(catalog_.size());
  return stats;
}

void ImprovementChain::change(int table, std::int64_t num_columns, int device) {
  assignment_.add(table, num_columns, device);
  changes_.push_back({table, num_columns, device});
}

void ImprovementChain::undo(std::vector<Change>& changes) {
  for (; !changes.empty(); changes.pop_back()) {
    const Change& last = changes.back();
    assignment_.add(last.table, -last.num_columns, last.device);
  }
}

bool ImprovementChain::may_move() {
  if (!ledger_) return true;
  moved_bytes_ = ledger_->moved_with(changes_);
  return moved_bytes_ <= std::max(ledger_->limit().limit_bytes(), ledger_->moved_bytes());
}

double ImprovementChain::moving_energy(double scale, std::int64_t moved_bytes) const {
  if (!ledger_) return 0.0;
  const auto limit = static_cast<double>(std::max<std::int64_t>(ledger_->limit().limit_bytes(), 1));
  return kMovingShare * scale * static_cast<double>(moved_bytes) / limit;
}

std::optional<Transfer> ImprovementChain::random_way_home() {
  if (!ledger_) return std::nullopt;
  for (int attempt = 0; attempt < kWayHomeAttempts; ++attempt) {
    const int from = random_device();
    if (assignment_.holdings(from).empty()) continue;
    const Piece holding = random_holding(from);
    if (ledger_->moved_bytes(holding.table) == 0) continue;
    std::vector<TablePart> homes = ledger_->limit().held(holding.table);
    std::erase_if(homes, [&](const TablePart& home) {
      return home.device >= assignment_.num_devices() || home.device == from ||
             !permits(holding, home.device);
    });
    if (homes.empty()) continue;
    const TablePart& home = homes[random_.below(homes.size())];
    std::int64_t columns = holding.num_columns;
    const std::int64_t lacking =
        home.num_columns - assignment_.columns_of(holding.table, home.device);
    const std::int64_t least = narrowest_cut(table_of(holding));
    const bool can_part = is_cuttable(holding) && lacking >= least &&
                          holding.num_columns - lacking >= least &&
                          lacking % kColumnGranularity == 0;
    if (can_part) columns = lacking;
    return Transfer{holding.table, columns, from, home.device};
  }
  return std::nullopt;
}

bool ImprovementChain::is_too_late() const {
  return settings_.deadline && stats_.steps % traits_.steps_between_looks == 0 &&
         std::chrono::steady_clock::now() >= *settings_.deadline;
}

double ImprovementChain::step_ns(int devices) {
  return NominalStepTime::kStep_ns + NominalStepTime::kStepPerDevice_ns * devices;
}

double ImprovementChain::share_done() const {
  const int devices = assignment_.num_devices();
  const double steps = nominal_steps();
  const double nominal_ns =
      steps * step_ns(devices) + static_cast<double>(stats_.plans_priced) * all_to_alls_ns(devices);
  return std::max(steps / static_cast<double>(settings_.steps),
                  nominal_ns * 1e-6 / settings_.nominal_ms);
}

double ImprovementChain::random_rise(double scale, double progress) {
  const double first = traits_.first_temperature;
  const double temperature = scale * first * std::pow(traits_.last_temperature / first, progress);
  return -temperature * std::log(1.0 - random_.uniform());
}

std::optional<double> ImprovementChain::energy_within(double allowed) {
  // Most neighbours are far too expensive, which shows without pricing the all-to-alls.
  if (least_energy() > allowed) return std::nullopt;
  ++stats_.plans_priced;
  const double energy = current_energy();
  if (energy > allowed) return std::nullopt;
  return energy;
}

double ImprovementChain::current_energy() {
  const PlanCost& cost = assignment_.cost();
  double sum = 0.0;
  for (const DeviceCost& device : cost.devices) sum += start_of(device);
  return cost.cost_ms + kMeanShare * sum / static_cast<double>(cost.devices.size());
}

double ImprovementChain::least_energy() {
  const ColumnAssignment::Floor floor = assignment_.floor();
  return floor.cost_ms + kMeanShare * floor.compute_sum_ms / assignment_.num_devices();
}

void ImprovementChain::keep_if_best() {
  ++stats_.steps_accepted;
  since_best_.insert(since_best_.end(), changes_.begin(), changes_.end());
  changes_.clear();
  const double cost = assignment_.cost().cost_ms;
  if (cost >= stats_.best_cost_ms) return;
  stats_.best_cost_ms = cost;
  since_best_.clear();
}

int ImprovementChain::random_device() {
  return static_cast<int>(random_.below(assignment_.num_devices()));
}

int ImprovementChain::slowest_device() {
  const std::vector<DeviceCost>& devices = assignment_.cost().devices;
  std::size_t slowest = 0;
  for (std::size_t d = 1; d < devices.size(); ++d) {
    if (start_of(devices[d]) > start_of(devices[slowest])) slowest = d;
  }
  return static_cast<int>(slowest);
}

int ImprovementChain::quickest_device() {
  const std::vector<DeviceCost>& devices = assignment_.cost().devices;
  std::size_t quickest = 0;
  for (std::size_t d = 1; d < devices.size(); ++d) {
    if (start_of(devices[d]) < start_of(devices[quickest])) quickest = d;
  }
  return static_cast<int>(quickest);
}

Piece ImprovementChain::random_holding(int device) {
  const auto holdings = assignment_.holdings(device);
  return holdings[random_.below(holdings.size())];
}

int ImprovementChain::random_permitted(const Piece& holding) {
  const std::span<const int> devices = catalog_.pins().devices_of(holding.table);
  return devices[random_.below(devices.size())];
}

std::int64_t ImprovementChain::random_part(const Piece& holding) {
  const std::int64_t least = narrowest_cut(table_of(holding)) / kColumnGranularity;
  const std::int64_t quanta = holding.num_columns / kColumnGranularity;
  return random_.integer(least, quanta - least) * kColumnGranularity;
}

}  // namespace neuroshard
