// Energy and draws of a chain.
#include "neuroshard/search/improve/improvement_chain.h"

#include <cmath>
#include <vector>

namespace neuroshard {

namespace {

/// Share of the mean device in what is minimised: where the slowest device cannot be helped at
/// once, less work elsewhere makes room for helping it later.
constexpr double kMeanShare = 0.1;

/// When a device is ready for the forward all-to-all: all of them end together, so what holds the
/// plan up is who starts it last.
double start_of(const DeviceCost& device) { return device.compute_ms + device.backward_comm_ms; }

}  // namespace

ImprovementChain::ImprovementChain(ChainKind kind, const Simulator& simulator,
                                   const ShardingPlan& plan, const LocalSearchOptions& options,
                                   std::uint64_t stream)
    : simulator_(simulator),
      options_(options),
      random_(Random::for_stream(options.seed, stream)),
      catalog_(simulator),
      assignment_(simulator, catalog_, plan),
      kind_(kind) {}

ChainStats ImprovementChain::stats() const {
  ChainStats stats;
  stats.kind = kind_;
  stats.best_cost_ms = best_cost_;
  stats.steps = steps_;
  stats.steps_accepted = steps_accepted_;
  stats.plans_priced = all_to_alls_priced_;
  stats.head_evaluations = assignment_.head_evaluations();
  stats.pieces_encoded = static_cast<std::int64_t>(catalog_.size());
  return stats;
}

double ImprovementChain::step_ns(int devices) {
  return NominalStepTime::kStep_ns + NominalStepTime::kStepPerDevice_ns * devices;
}

double ImprovementChain::all_to_alls_ns(int devices) {
  return NominalStepTime::kAllToAlls_ns + NominalStepTime::kAllToAllsPerDevice_ns * devices;
}

double ImprovementChain::random_rise(double scale, double first, double last, double progress) {
  const double temperature = scale * first * std::pow(last / first, progress);
  return -temperature * std::log(1.0 - random_.uniform());
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

std::int64_t ImprovementChain::random_part(const Piece& holding) {
  const std::int64_t least = narrowest_cut(table_of(holding)) / kColumnGranularity;
  const std::int64_t quanta = holding.num_columns / kColumnGranularity;
  return random_.integer(least, quanta - least) * kColumnGranularity;
}

}  // namespace neuroshard
