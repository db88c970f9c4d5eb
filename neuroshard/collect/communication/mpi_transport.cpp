// MPI's non-blocking messages.
#include "neuroshard/collect/communication/mpi_transport.h"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <numeric>
#include <string>

#include "neuroshard/core/error.h"
#include "neuroshard/core/text/printable.h"

namespace neuroshard {

namespace {

/// MPI counts with int.
constexpr std::int64_t kLargestMessage = std::int64_t{1} << 30;

using Clock = std::chrono::steady_clock;

/// Calls body(offset, bytes) for messages of at most kLargestMessage that make up `bytes`.
template <typename F>
void for_each_message(std::int64_t bytes, const F& body) {
  for (std::int64_t offset = 0; offset < bytes; offset += kLargestMessage) {
    body(offset, static_cast<int>(std::min(bytes - offset, kLargestMessage)));
  }
}

void make_room(std::vector<char>& buffer, std::span<const std::int64_t> bytes) {
  const auto total =
      static_cast<std::size_t>(std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}));
  if (buffer.size() < total) buffer.resize(total, 1);
}

/// As one line on stderr; what cannot be written is lost without another error.
void print_error(const std::exception& error) {
  const bool is_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  const std::string what = is_memory ? "out of memory" : printable(error.what());
  const std::string line = "neuroshard: " + what + "\n";
  (void)std::fputs(line.c_str(), stderr);
}

/// By what mpirun says of this process, as MPI is not started yet.
HangWatch::LastWords last_words(int limit_seconds) {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const char* size = std::getenv("OMPI_COMM_WORLD_SIZE");
  std::array<char, HOST_NAME_MAX + 1> host{};
  (void)::gethostname(host.data(), host.size() - 1);
  const std::string expected =
      fmt::format("neuroshard: mpi: expected process {} of {}, on {}, to go on, got one that has ",
                  rank == nullptr ? "?" : rank, size == nullptr ? "?" : size, host.data());
  return {expected + fmt::format("stood still for {} s (NEUROSHARD_HANG_LIMIT): it is ended, and "
                                 "with it the run",
                                 limit_seconds),
          expected + "died, which ends the run"};
}

}  // namespace

bool started_by_mpirun() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr; }

MpiTransport::MpiTransport() {
  if (started_by_mpirun()) {
    const int limit = hang_limit_seconds();
    watch_.emplace(last_words(limit), limit);
  }
  if (MPI_Init(nullptr, nullptr) != MPI_SUCCESS) {
    throw MachineError("mpi: expected to start, got an error from MPI_Init");
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

MpiTransport::~MpiTransport() { MPI_Finalize(); }

double MpiTransport::now_ms() {
  return std::chrono::duration<double, std::milli>(Clock::now().time_since_epoch()).count();
}

void MpiTransport::wait_ms(double duration) {
  const double end = now_ms() + duration;
  while (now_ms() < end) {
  }
}

void MpiTransport::barrier() { MPI_Barrier(MPI_COMM_WORLD); }

namespace {

/// All messages at the same time; what goes to or comes from the processes lies side by side, by
/// rank.
void exchange_bytes(int rank, const char* sent, std::span<const std::int64_t> send_bytes,
                    char* received, std::span<const std::int64_t> receive_bytes) {
  const auto size = static_cast<int>(send_bytes.size());
  std::vector<MPI_Request> requests;
  const auto start_of = [](std::span<const std::int64_t> bytes, int peer) {
    return std::accumulate(bytes.begin(), bytes.begin() + peer, std::int64_t{0});
  };
  // Each process begins with its next neighbour, so that no process is the first target of all.
  for (int step = 1; step < size; ++step) {
    const int peer = (rank - step + size) % size;
    char* buffer = received + start_of(receive_bytes, peer);
    for_each_message(receive_bytes[peer], [&](std::int64_t offset, int bytes) {
      MPI_Irecv(buffer + offset, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD,
                &requests.emplace_back());
    });
  }
  for (int step = 1; step < size; ++step) {
    const int peer = (rank + step) % size;
    const char* buffer = sent + start_of(send_bytes, peer);
    for_each_message(send_bytes[peer], [&](std::int64_t offset, int bytes) {
      MPI_Isend(buffer + offset, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD,
                &requests.emplace_back());
    });
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

std::vector<std::int64_t> bytes_of_floats(std::span<const std::int64_t> counts) {
  std::vector<std::int64_t> bytes(counts.begin(), counts.end());
  for (std::int64_t& count : bytes) count *= static_cast<std::int64_t>(sizeof(float));
  return bytes;
}

}  // namespace

void MpiTransport::exchange(std::span<const std::int64_t> send_bytes,
                            std::span<const std::int64_t> receive_bytes) {
  make_room(sent_, send_bytes);
  make_room(received_, receive_bytes);
  exchange_bytes(rank_, sent_.data(), send_bytes, received_.data(), receive_bytes);
}

void MpiTransport::exchange_values(std::span<const float> sent,
                                   std::span<const std::int64_t> send_counts,
                                   std::span<float> received,
                                   std::span<const std::int64_t> receive_counts) const {
  exchange_bytes(rank_, reinterpret_cast<const char*>(sent.data()), bytes_of_floats(send_counts),
                 reinterpret_cast<char*>(received.data()), bytes_of_floats(receive_counts));
}

void MpiTransport::sum_values(std::span<float> values) {
  constexpr std::size_t kMost = std::size_t{1} << 28;
  for (std::size_t first = 0; first < values.size(); first += kMost) {
    const std::size_t count = std::min(values.size() - first, kMost);
    MPI_Allreduce(MPI_IN_PLACE, values.data() + first, static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
  }
}

void MpiTransport::all_reduce(std::int64_t bytes) {
  const auto count = static_cast<std::size_t>(bytes) / sizeof(float);
  // Zeros stay zeros: sums of sums would leave the range of numbers.
  if (reduced_.size() < count) reduced_.resize(count, 0.0F);
  sum_values(std::span(reduced_).first(count));
}

std::vector<double> MpiTransport::gather(double value) {
  std::vector<double> values(rank_ == 0 ? size_ : 0);
  MPI_Gather(&value, 1, MPI_DOUBLE, values.data(), 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return values;
}

bool MpiTransport::broadcast(bool value) { return broadcast_integer(value ? 1 : 0) != 0; }

std::int64_t MpiTransport::broadcast_integer(std::int64_t value) {
  MPI_Bcast(&value, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  return value;
}

std::vector<std::string> MpiTransport::all_gather(const std::string& text) const {
  const auto length = static_cast<int>(text.size());
  std::vector<int> lengths(size_);
  MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD);
  std::vector<int> starts(size_, 0);
  std::partial_sum(lengths.begin(), lengths.end() - 1, starts.begin() + 1);
  std::string all(static_cast<std::size_t>(starts.back() + lengths.back()), '\0');
  MPI_Allgatherv(text.data(), length, MPI_CHAR, all.data(), lengths.data(), starts.data(), MPI_CHAR,
                 MPI_COMM_WORLD);
  std::vector<std::string> texts;
  for (int rank = 0; rank < size_; ++rank) {
    texts.push_back(all.substr(static_cast<std::size_t>(starts[rank]),
                               static_cast<std::size_t>(lengths[rank])));
  }
  return texts;
}

void MpiTransport::require_agreement(const std::string& text) const {
  const std::vector<std::string> all = all_gather(text);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] != all[0]) {
      throw CollectiveInputError(
          "mpi", fmt::format("the same options in all processes, {} in process 0", all[0]),
          fmt::format("{} in process {}", all[rank], rank));
    }
  }
}

std::string MpiTransport::host_name() {
  std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
  int length = 0;
  MPI_Get_processor_name(name.data(), &length);
  return {name.data(), static_cast<std::size_t>(length)};
}

void MpiTransport::end_run_with(const std::exception& error) const {
  // One process alone has no others to end, by a call that says more than the error.
  if (size_ == 1 || dynamic_cast<const CollectiveInputError*>(&error) != nullptr) {
    // The first process to exit with an error makes mpirun end the others, so it prints the error
    // before.
    if (rank_ == 0) print_error(error);
    (void)std::fflush(stderr);
    MPI_Barrier(MPI_COMM_WORLD);
    (void)std::freopen("/dev/null", "w", stderr);
    return;
  }
  print_error(error);
  const auto* own = dynamic_cast<const Error*>(&error);
  abort(own != nullptr ? own->exit_code() : MachineError("").exit_code());
}

void MpiTransport::abort(int exit_code) const {
  if (watch_) watch_->expect_end();
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::abort();  // MPI_Abort does not return, but is not declared so
}

}  // namespace neuroshard
