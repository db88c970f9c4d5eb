// The communication benchmark's transport on MPI: real processes, real messages.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "neuroshard/collect/communication/hang_watch.h"
#include "neuroshard/collect/communication/transport.h"
#include "neuroshard/core/error.h"

namespace neuroshard {

/// True if this process was started by mpirun (Open MPI).
[[nodiscard]] bool started_by_mpirun();

/// Bad input that every process of a run has found, so that all can end in order: process 0 prints
/// it.
class CollectiveInputError : public InputError {
 public:
  using InputError::InputError;
};

/// MPI from here to the end of the object, of which a process has one at most. A process that dies
/// makes mpirun end the others, and one that hangs is ended; a line names either (HangWatch).
class MpiTransport final : public Transport {
 public:
  /// Throws MachineError if MPI does not start, InputError as hang_limit_seconds.
  MpiTransport();
  ~MpiTransport() override;
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] double now_ms() override;
  /// Busy waiting, as computation would be.
  void wait_ms(double duration) override;
  void barrier() override;
  void exchange(std::span<const std::int64_t> send_bytes,
                std::span<const std::int64_t> receive_bytes) override;
  /// MPI_Allreduce.
  void all_reduce(std::int64_t bytes) override;
  [[nodiscard]] std::vector<double> gather(double value) override;
  [[nodiscard]] bool broadcast(bool value) override;

  /// Collective: as `exchange`, with content. What goes to or comes from the processes lies side by
  /// side, by rank, counted in values; a process's own part has its place too, but is not copied.
  void exchange_values(std::span<const float> sent, std::span<const std::int64_t> send_counts,
                       std::span<float> received,
                       std::span<const std::int64_t> receive_counts) const;
  /// Collective: the sums over all processes take the place of the values.
  static void sum_values(std::span<float> values);

  /// Collective: process 0's number for all.
  [[nodiscard]] static std::int64_t broadcast_integer(std::int64_t value);
  /// Collective: the texts of all processes, by rank, for every process.
  [[nodiscard]] std::vector<std::string> all_gather(const std::string& text) const;

  /// Collective. Throws CollectiveInputError unless all of them give the same text.
  void require_agreement(const std::string& text) const;

  /// Name of the host that this process runs on.
  [[nodiscard]] static std::string host_name();

  /// For the handler of an exception of one process, while the others may wait for it: prints it
  /// and ends the run. If all have the same one, process 0 prints it, and all return and print
  /// nothing more.
  void end_run_with(const std::exception& error) const;

 private:
  /// Ends all processes of the run with this exit code.
  [[noreturn]] void abort(int exit_code) const;

  std::optional<HangWatch> watch_;  ///< from before MPI starts to after its end
  int rank_ = 0;
  int size_ = 1;
  std::vector<char> sent_;      ///< arbitrary content of the messages
  std::vector<char> received_;  ///< where messages lie one after the other
  std::vector<float> reduced_;  ///< arbitrary content too
};

}  // namespace neuroshard
