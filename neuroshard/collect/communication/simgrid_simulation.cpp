// SimGrid's S4U interface: a platform, and one actor per device that runs the benchmark.
#include "neuroshard/collect/communication/simgrid_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <new>
#include <simgrid/Exception.hpp>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "neuroshard/collect/communication/simgrid_platform.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/interconnect.h"

namespace neuroshard {

namespace {

namespace s4u = simgrid::s4u;

/// State that the actors share; only one runs at a time, so nothing needs a lock.
struct Group {
  int size;
  int per_host;  ///< devices
  s4u::BarrierPtr barrier;
  std::vector<double> values;
  bool flag = false;
  /// By process, those on their way. They outlive a process that fails: of messages that are let go
  /// of before they arrive SimGrid prints where that was.
  std::vector<std::vector<s4u::CommPtr>> messages;
};

class SimulatedTransport final : public Transport {
 public:
  SimulatedTransport(Group& group, int rank)
      : group_(group), rank_(rank), to_(group.size), from_(group.size) {
    for (int peer = 0; peer < group.size; ++peer) {
      to_[peer] = s4u::Mailbox::by_name(fmt::format("{}-{}", rank, peer));
      from_[peer] = s4u::Mailbox::by_name(fmt::format("{}-{}", peer, rank));
    }
    // No message may find no room when it has begun.
    messages().reserve(2 * static_cast<std::size_t>(group.size));
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return group_.size; }
  [[nodiscard]] double now_ms() override { return s4u::Engine::get_clock() * 1e3; }
  void wait_ms(double duration) override {
    if (duration > 0.0) s4u::this_actor::sleep_for(duration * 1e-3);
  }
  void barrier() override { group_.barrier->wait(); }

  void exchange(std::span<const std::int64_t> send_bytes,
                std::span<const std::int64_t> receive_bytes) override {
    // Each process begins with its next neighbour, so that no process is the first target of all.
    for (int step = 1; step < group_.size; ++step) {
      const int peer = (rank_ - step + group_.size) % group_.size;
      if (receive_bytes[peer] > 0) {
        messages().push_back(from_[peer]->get_async<char>(&received_));
      }
    }
    for (int step = 1; step < group_.size; ++step) {
      const int peer = (rank_ + step) % group_.size;
      if (send_bytes[peer] > 0) {
        messages().push_back(
            to_[peer]->put_async(&nothing_, static_cast<std::uint64_t>(send_bytes[peer])));
      }
    }
    wait_for_messages();
  }

  void all_reduce(std::int64_t bytes) override {
    if (group_.size == 1 || bytes <= 0) return;
    if (bytes < kRingFromBytes) {
      reduce_by_doubling(bytes);
    } else {
      reduce_by_rings(bytes);
    }
  }

  std::vector<double> gather(double value) override {
    group_.values.resize(group_.size);
    group_.values[rank_] = value;
    barrier();
    std::vector<double> all = rank_ == 0 ? group_.values : std::vector<double>();
    barrier();
    return all;
  }

  bool broadcast(bool value) override {
    if (rank_ == 0) group_.flag = value;
    barrier();
    const bool result = group_.flag;
    barrier();
    return result;
  }

 private:
  static constexpr std::int64_t kRingFromBytes = 10'000;
  static constexpr int kNobody = -1;
  // Messages carry a pointer, never read.
  static inline char nothing_ = 0;
  static inline char* received_ = nullptr;

  std::vector<s4u::CommPtr>& messages() { return group_.messages[rank_]; }

  void wait_for_messages() {
    for (const s4u::CommPtr& message : messages()) message->wait();
    messages().clear();
  }

  /// A message to one process and one from another, at the same time.
  void send_and_receive(int to, std::int64_t sent, int from) {
    if (from != kNobody) messages().push_back(from_[from]->get_async<char>(&received_));
    if (to != kNobody) {
      messages().push_back(to_[to]->put_async(&nothing_, static_cast<std::uint64_t>(sent)));
    }
    wait_for_messages();
  }

  /// Pairs at distance 1, 2, 4, ... exchange everything. Of a number that is no power of two, the
  /// first ones join their neighbour before and hear from it afterwards.
  void reduce_by_doubling(std::int64_t bytes) {
    const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(group_.size)));
    const int joined = group_.size - power;  // pairs (0, 1), (2, 3), ...
    const bool joins = rank_ < 2 * joined && rank_ % 2 == 0;
    const bool is_joined = rank_ < 2 * joined && rank_ % 2 == 1;
    if (joins) {
      send_and_receive(rank_ + 1, bytes, kNobody);
      send_and_receive(kNobody, 0, rank_ + 1);
      return;
    }
    if (is_joined) send_and_receive(kNobody, 0, rank_ - 1);
    const int number = is_joined ? rank_ / 2 : rank_ - joined;
    for (int distance = 1; distance < power; distance *= 2) {
      const int partner = number ^ distance;
      const int peer = partner < joined ? 2 * partner + 1 : partner + joined;
      send_and_receive(peer, bytes, peer);
    }
    if (is_joined) send_and_receive(rank_ - 1, bytes, kNobody);
  }

  /// One pass around the `count` processes first, first + stride, ...: each sends a part on in each
  /// step, and all parts are sent on by all but one.
  void pass_around(int first, int stride, int count, std::int64_t bytes) {
    const int place = (rank_ - first) / stride;
    const int next = first + (place + 1) % count * stride;
    const int previous = first + (place + count - 1) % count * stride;
    for (int step = 0; step + 1 < count; ++step) {
      const int part = (place - step + count) % count;
      const std::int64_t size = bytes / count + (part < bytes % count ? 1 : 0);
      send_and_receive(next, std::max<std::int64_t>(size, 1), previous);
    }
  }

  /// Reduced and scattered in the host, summed between hosts, gathered in the host.
  void reduce_by_rings(std::int64_t bytes) {
    const int per_host = group_.per_host;
    const int hosts = group_.size / per_host;
    const int first = rank_ / per_host * per_host;
    if (per_host > 1) pass_around(first, 1, per_host, bytes);
    if (hosts > 1) {
      pass_around(rank_ % per_host, per_host, hosts, bytes / per_host);
      pass_around(rank_ % per_host, per_host, hosts, bytes / per_host);
    }
    if (per_host > 1) pass_around(first, 1, per_host, bytes);
  }

  Group& group_;
  int rank_;
  std::vector<s4u::Mailbox*> to_;
  std::vector<s4u::Mailbox*> from_;
};

/// One run with all its actors: each calls `measure` on every case.
template <typename Case, typename Result>
class Simulation {
 public:
  using OptionalCase = std::optional<std::pair<std::int64_t, Case>>;

  Simulation(const SimulationOptions& options, const std::function<OptionalCase()>& next,
             const std::function<Result(Transport&, const Case&)>& measure,
             const std::function<void(std::int64_t, const Result&)>& on_done)
      : platform_(options.platform),
        world_size_(options.world_size),
        next_(next),
        measure_(measure),
        on_done_(on_done) {
    group_.per_host = options.local_world_size;
  }

  void run(s4u::Engine& engine, const std::vector<s4u::Host*>& hosts) {
    group_.size = world_size_;
    group_.barrier = s4u::Barrier::create(world_size_);
    group_.messages.resize(world_size_);
    actors_left_ = world_size_;
    for (int rank = 0; rank < world_size_; ++rank) {
      s4u::Actor::create(fmt::format("process-{}", rank), hosts[rank], [this, rank] { act(rank); });
    }
    engine.run();
    if (error_) std::rethrow_exception(error_);
    if (actors_left_ > 0) {  // SimGrid says so in its log only
      throw InputError(platform_, "messages that arrive",
                       fmt::format("{} processes that wait for ever", actors_left_));
    }
  }

 private:
  void act(int rank) {
    // The others would wait for ever for one that has failed.
    try {
      measure_all(rank);
    } catch (const std::bad_alloc&) {
      error_ = std::current_exception();
      s4u::Actor::kill_all();
    } catch (const std::exception& failure) {  // e.g. a link that its platform switches off
      error_ =
          std::make_exception_ptr(InputError(platform_, "messages that arrive", failure.what()));
      s4u::Actor::kill_all();
    }
  }

  void measure_all(int rank) {
    SimulatedTransport transport(group_, rank);
    while (true) {
      if (rank == 0 && !error_) guarded([&] { current_ = next_(); });
      if (!transport.broadcast(current_.has_value() && !error_)) {
        --actors_left_;
        return;
      }
      const Result result = measure_(transport, current_->second);
      if (rank == 0) guarded([&] { on_done_(current_->first, result); });
    }
  }

  /// Exceptions must not leave an actor: the run ends, then they are thrown.
  void guarded(const std::function<void()>& body) {
    try {
      body();
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  const std::string& platform_;
  int world_size_;
  const std::function<OptionalCase()>& next_;
  const std::function<Result(Transport&, const Case&)>& measure_;
  const std::function<void(std::int64_t, const Result&)>& on_done_;
  Group group_{};
  OptionalCase current_;
  int actors_left_ = 0;  ///< that have not come to their end
  std::exception_ptr error_;
};

/// Processes that each sends a byte to in the trial of a platform: all, up to this many.
constexpr int kTrialPeers = 16;

/// A message from each process to its next neighbours.
bool exchange_bytes(Transport& transport) {
  const int size = transport.size();
  std::vector<std::int64_t> sent(size, 0);
  std::vector<std::int64_t> received(size, 0);
  for (int step = 1; step <= std::min(kTrialPeers, size - 1); ++step) {
    sent[(transport.rank() + step) % size] = 1;
    received[(transport.rank() - step + size) % size] = 1;
  }
  transport.exchange(sent, received);
  return true;
}

/// Messages on a platform file, before anything else is done with it.
void try_messages(const SimulationOptions& options, s4u::Engine& engine,
                  const std::vector<s4u::Host*>& hosts) {
  bool is_done = false;
  const std::function next = [&]() -> std::optional<std::pair<std::int64_t, int>> {
    if (std::exchange(is_done, true)) return std::nullopt;
    return std::pair<std::int64_t, int>{};
  };
  const std::function measure = [](Transport& transport, const int&) {
    return exchange_bytes(transport);
  };
  const std::function<void(std::int64_t, const bool&)> on_done = [](std::int64_t, const bool&) {};
  Simulation<int, bool>(options, next, measure, on_done).run(engine, hosts);
}

/// Starts SimGrid, once per process, and hands the platform's hosts to `run`.
void with_platform(const SimulationOptions& options,
                   const std::function<void(s4u::Engine&, const std::vector<s4u::Host*>&)>& run) {
  static bool used = false;
  if (used) throw std::logic_error("SimGrid can be started once per process");
  const bool from_file = is_platform_file(options.platform);
  // Before SimGrid starts: errors in the options do not depend on it.
  const Interconnect* interconnect = from_file ? nullptr : &platform_interconnect(options.platform);
  require_memory(options.world_size);
  used = true;
  std::string arguments[] = {
    "neuroshard",
    "--log=root.thres:critical",
    "--cfg=network/model:CM02",
    "--cfg=network/TCP-gamma:0",
    "--cfg=network/crosstraffic:0",
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    // Sanitizers do not follow SimGrid's own switching of stacks.
    "--cfg=contexts/factory:thread"
  };
#else
    "--cfg=contexts/stack-size:128"
  };
#endif
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  auto count = static_cast<int>(pointers.size());
  pointers.push_back(nullptr);
  if (from_file) {
    require_survival(options.platform, [&] {
      s4u::Engine engine(&count, pointers.data());
      try_messages(options, engine, load_platform(engine, options.platform, options.world_size));
    });
  }
  s4u::Engine engine(&count, pointers.data());
  const std::vector<s4u::Host*> hosts =
      from_file ? load_platform(engine, options.platform, options.world_size)
                : build_platform(*interconnect, options.world_size, options.local_world_size);
  run(engine, hosts);
}

/// A simulated repetition is like any other.
constexpr RepetitionOptions kOnce{
    .target_interval = 1.0, .warm_ups = 0, .min_repetitions = 1, .max_repetitions = 1};

}  // namespace

void simulate_all_to_alls(
    const SimulationOptions& options, const std::function<std::optional<NumberedCase>()>& next,
    const std::function<void(std::int64_t, const AllToAllMeasurement&)>& on_done) {
  const std::function measure = [&](Transport& transport, const CommunicationCase& sample) {
    return measure_all_to_alls(transport, sample, options.batch_size, options.data_type, kOnce);
  };
  with_platform(options, [&](s4u::Engine& engine, const std::vector<s4u::Host*>& hosts) {
    Simulation(options, next, measure, on_done).run(engine, hosts);
  });
}

void simulate_all_reduces(
    const SimulationOptions& options, const std::function<std::optional<NumberedBytes>()>& next,
    const std::function<void(std::int64_t, const CollectiveMeasurement&)>& on_done) {
  const std::function measure = [&](Transport& transport, const std::int64_t& bytes) {
    return measure_collective(
        transport, [&] { transport.all_reduce(bytes); }, kOnce);
  };
  with_platform(options, [&](s4u::Engine& engine, const std::vector<s4u::Host*>& hosts) {
    Simulation(options, next, measure, on_done).run(engine, hosts);
  });
}

void simulate_iterations(const SimulationOptions& options,
                         const std::function<std::optional<NumberedIteration>()>& next,
                         const std::function<void(std::int64_t, const IterationTimes&)>& on_done) {
  const std::function measure = [&](Transport& transport, const IterationCase& iteration) {
    return time_iteration(transport, iteration, options.batch_size, options.data_type);
  };
  with_platform(options, [&](s4u::Engine& engine, const std::vector<s4u::Host*>& hosts) {
    Simulation(options, next, measure, on_done).run(engine, hosts);
  });
}

}  // namespace neuroshard
