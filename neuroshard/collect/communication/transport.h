// The interface between the communication benchmark and an interconnect, real or simulated.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace neuroshard {

/// One process of a group, each of which runs the same code. Calls marked *collective* are made by
/// all of them in the same order.
class Transport {
 public:
  virtual ~Transport() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// This process's clock [ms], simulated where the interconnect is.
  [[nodiscard]] virtual double now_ms() = 0;
  /// Waits for this time [ms], as computation would.
  virtual void wait_ms(double duration) = 0;

  /// Collective: returns once all have called it.
  virtual void barrier() = 0;

  /// Collective: sends send_bytes[p] to and receives receive_bytes[p] from every process p, all
  /// messages at the same time; a process's own part costs nothing. Returns when all of this
  /// process's messages are sent and received.
  virtual void exchange(std::span<const std::int64_t> send_bytes,
                        std::span<const std::int64_t> receive_bytes) = 0;

  /// Collective: sums `bytes` of fp32 values that lie in each process over all of them, so that
  /// each has the sums (all-reduce). The content is arbitrary. `bytes` is a multiple of 4.
  virtual void all_reduce(std::int64_t bytes) = 0;

  /// Collective: the values of all processes, by rank, for process 0; empty for the others.
  [[nodiscard]] virtual std::vector<double> gather(double value) = 0;
  /// Collective: process 0's value for all.
  [[nodiscard]] virtual bool broadcast(bool value) = 0;
};

}  // namespace neuroshard
