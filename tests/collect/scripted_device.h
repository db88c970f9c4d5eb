// A device whose clock is a script, and which records the calls that it gets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "neuroshard/collect/compute/compute_backend.h"
#include "neuroshard/core/error.h"

namespace neuroshard::testing_collection {

enum class Action {
  prepare,
  forward,
  backward,
  disturb,
  ask  ///< for a time of a pass
};

/// A step of a device.
struct Step {
  Action action;
  std::int64_t id = -1;    ///< of the set; -1 for none
  std::int64_t bytes = 0;  ///< read by a disturbance
  friend bool operator==(const Step&, const Step&) = default;
};

struct Script {
  RepetitionOptions repetitions{
      .target_interval = 0.0, .warm_ups = 1, .min_repetitions = 2, .max_repetitions = 3};
  int max_in_flight = 1'000;
  std::int64_t bytes_between_passes = 0;
  std::int64_t block_bytes = 1;  ///< disturbances are multiples of it
  std::function<std::int64_t(std::int64_t id)> bytes_touched = [](std::int64_t) { return 0; };
  /// Milliseconds of a set's pass; `run` counts its passes of the kind from 0.
  std::function<double(std::int64_t id, Action pass, int run)> time = [](std::int64_t, Action,
                                                                         int) { return 1.0; };
  std::function<void(std::int64_t id)> on_prepare = [](std::int64_t) {};  ///< may throw
  std::function<void(std::int64_t id, Action pass)> on_pass = [](std::int64_t, Action) {
  };  ///< same
  std::function<bool(std::size_t num_ready)> has_room = [](std::size_t) { return true; };
  std::function<void(const PieceSet& set)> on_set = [](const PieceSet&) {};
};

class ScriptedDevice final : public MeasuringDevice {
 public:
  explicit ScriptedDevice(Script script) : script_(std::move(script)) {}

  void forget_tables() override { forgotten_before.push_back(static_cast<int>(prepared_)); }
  std::unique_ptr<PreparedSet> prepare(const PieceSet& set) override {
    ++prepared_;
    steps.push_back({Action::prepare, set.id});
    script_.on_prepare(set.id);
    script_.on_set(set);
    ready.insert(set.id);
    most_ready = std::max(most_ready, ready.size());
    return std::make_unique<Prepared>(*this, set.id);
  }
  [[nodiscard]] int max_in_flight() const override { return script_.max_in_flight; }
  [[nodiscard]] bool has_room() const override { return script_.has_room(ready.size()); }
  [[nodiscard]] std::int64_t bytes_between_passes() const override {
    return script_.bytes_between_passes;
  }
  std::int64_t disturb_caches(std::int64_t bytes) override {
    const std::int64_t blocks = (bytes + script_.block_bytes - 1) / script_.block_bytes;
    steps.push_back({Action::disturb, -1, blocks * script_.block_bytes});
    return blocks * script_.block_bytes;
  }
  [[nodiscard]] RepetitionOptions repetitions() const override { return script_.repetitions; }

  std::vector<Step> steps;
  std::set<std::int64_t> ready;  ///< sets prepared and not yet given back
  std::size_t most_ready = 0;
  std::vector<int> forgotten_before;  ///< sets prepared at each call of forget_tables

 private:
  class Prepared final : public PreparedSet {
   public:
    Prepared(ScriptedDevice& device, std::int64_t id) : device_(device), id_(id) {}
    ~Prepared() override { device_.ready.erase(id_); }
    std::future<double> forward() override { return run(Action::forward, forwards_++); }
    std::future<double> backward() override { return run(Action::backward, backwards_++); }
    [[nodiscard]] std::int64_t bytes_touched() const override {
      return device_.script_.bytes_touched(id_);
    }

   private:
    std::future<double> run(Action pass, int number) {
      device_.steps.push_back({pass, id_});
      device_.script_.on_pass(id_, pass);
      return std::async(std::launch::deferred, [this, pass, number] {
        device_.steps.push_back({Action::ask, id_});
        return device_.script_.time(id_, pass, number);
      });
    }

    ScriptedDevice& device_;
    std::int64_t id_;
    int forwards_ = 0;
    int backwards_ = 0;
  };

  Script script_;
  std::int64_t prepared_ = 0;
};

}  // namespace neuroshard::testing_collection
