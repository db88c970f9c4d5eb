// The communication benchmark's network on MPI: real processes, real messages.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "neuroshard/collect/communication/transport.h"

namespace neuroshard {

/// True if this process was started by mpirun (Open MPI).
[[nodiscard]] bool started_by_mpirun();

/// MPI from here to the end of the object, of which a process has one at most. A process that dies
/// makes mpirun end the others.
class MpiTransport final : public Transport {
 public:
  /// Throws MachineError if MPI does not start.
  MpiTransport();
  ~MpiTransport() override;
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] double now_ms() override;
  /// Busy, as computation is.
  void wait_ms(double duration) override;
  void barrier() override;
  void exchange(std::span<const std::int64_t> send_bytes,
                std::span<const std::int64_t> receive_bytes) override;
  [[nodiscard]] std::vector<double> gather(double value) override;
  [[nodiscard]] bool broadcast(bool value) override;

  /// Collective: process 0's number for all.
  [[nodiscard]] std::int64_t broadcast_integer(std::int64_t value);
  /// Collective: the texts of all processes, by rank, for every process.
  [[nodiscard]] std::vector<std::string> all_gather(const std::string& text);

  /// Name of the host that this process runs on.
  [[nodiscard]] static std::string host_name();

  /// Ends all processes of the run with this exit code.
  [[noreturn]] static void abort(int exit_code);

 private:
  int rank_ = 0;
  int size_ = 1;
  std::vector<char> sent_;      ///< content of what is sent, of no meaning
  std::vector<char> received_;  ///< where messages lie one after the other
};

}  // namespace neuroshard
