// SimGrid's S4U interface: a platform, and one actor per device that runs the benchmark.
#include "neuroshard/collect/communication/simgrid_simulation.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <simgrid/Exception.hpp>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/core/interconnect.h"

namespace neuroshard {

namespace {

namespace s4u = simgrid::s4u;

constexpr double kBytesPerGb = 1e9;

/// Links of one device or card, there and back.
struct LinkPair {
  s4u::Link* up;
  s4u::Link* down;
};

LinkPair make_links(s4u::NetZone& zone, const std::string& name, double gb_per_s,
                    double latency_ms) {
  // Half of the latency on the way up, half on the way down.
  const auto make = [&](const char* way) {
    return zone.create_link(name + way, gb_per_s * kBytesPerGb)->set_latency(latency_ms * 0.5e-3);
  };
  return {make("-up"), make("-down")};
}

std::vector<s4u::Host*> build_platform(const Interconnect& interconnect, int world_size,
                                       int local_world_size) {
  s4u::NetZone* zone = s4u::create_full_zone("cluster");
  std::vector<s4u::Host*> hosts;
  std::vector<LinkPair> device_links;
  std::vector<LinkPair> card_links;
  const int cards_per_host =
      (local_world_size + interconnect.devices_per_card - 1) / interconnect.devices_per_card;
  const auto card_of = [&](int device) {
    return device / local_world_size * cards_per_host +
           device % local_world_size / interconnect.devices_per_card;
  };
  for (int device = 0; device < world_size; ++device) {
    hosts.push_back(zone->create_host(fmt::format("device-{}", device), 1e9));
    device_links.push_back(make_links(*zone, fmt::format("device-{}", device),
                                      interconnect.effective_intra_host_gb_per_s(),
                                      interconnect.intra_host_latency_ms));
    if (card_of(device) == static_cast<int>(card_links.size())) {
      card_links.push_back(make_links(*zone, fmt::format("card-{}", card_links.size()),
                                      interconnect.effective_card_gb_per_s(),
                                      interconnect.inter_host_latency_ms));
    }
  }
  for (int from = 0; from < world_size; ++from) {
    for (int to = 0; to < world_size; ++to) {
      if (from == to) continue;
      const bool same_host = from / local_world_size == to / local_world_size;
      const LinkPair& source = same_host ? device_links[from] : card_links[card_of(from)];
      const LinkPair& target = same_host ? device_links[to] : card_links[card_of(to)];
      zone->add_route(hosts[from]->get_netpoint(), hosts[to]->get_netpoint(), nullptr, nullptr,
                      {s4u::LinkInRoute(source.up), s4u::LinkInRoute(target.down)}, false);
    }
  }
  zone->seal();
  return hosts;
}

void require_routes(const std::vector<s4u::Host*>& hosts, const std::string& platform) {
  for (const s4u::Host* from : hosts) {
    for (const s4u::Host* to : hosts) {
      if (from == to) continue;
      std::vector<s4u::Link*> links;
      double latency = 0.0;
      try {
        from->route_to(to, links, &latency);
      } catch (const std::exception&) {
        links.clear();
      }
      if (links.empty()) {
        throw InputError(platform,
                         fmt::format("a route from {} to {}", from->get_name(), to->get_name()),
                         "none");
      }
    }
  }
}

/// SimGrid takes any number for these and ends its process, or waits for ever, when a message meets
/// it.
void require_links(const s4u::Engine& engine, const std::string& platform) {
  for (const s4u::Link* link : engine.get_all_links()) {
    const double bytes_per_s = link->get_bandwidth();
    if (!is_link_rate(bytes_per_s / kBytesPerGb)) {
      throw InputError(fmt::format("{}: link {}", platform, link->get_name()),
                       "a bandwidth between 1 and 1e18 bytes/s", fmt::format("{}", bytes_per_s));
    }
    const double latency_s = link->get_latency();
    if (!is_link_latency(latency_s * 1e3)) {
      throw InputError(fmt::format("{}: link {}", platform, link->get_name()),
                       "a latency between 0 and 1000 s", fmt::format("{}", latency_s));
    }
  }
}

void require_speeds(const std::vector<s4u::Host*>& hosts, const std::string& platform) {
  for (const s4u::Host* host : hosts) {
    const double speed = host->get_speed();
    if (!std::isfinite(speed) || speed <= 0.0) {
      throw InputError(fmt::format("{}: host {}", platform, host->get_name()),
                       "a speed above 0 flop/s", fmt::format("{}", speed));
    }
  }
}

std::vector<s4u::Host*> load_platform(s4u::Engine& engine, const SimulationOptions& options) {
  try {
    engine.load_platform(options.platform);
  } catch (const std::exception& error) {
    std::string reason = error.what();
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    throw InputError(options.platform, "a SimGrid platform", reason);
  }
  require_links(engine, options.platform);
  std::vector<s4u::Host*> hosts = engine.get_all_hosts();
  require_speeds(hosts, options.platform);
  // host-2 before host-10
  std::sort(hosts.begin(), hosts.end(), [](const s4u::Host* a, const s4u::Host* b) {
    return strverscmp(a->get_cname(), b->get_cname()) < 0;
  });
  if (static_cast<int>(hosts.size()) < options.world_size) {
    throw InputError(options.platform, fmt::format("at least {} hosts", options.world_size),
                     fmt::format("{}", hosts.size()));
  }
  hosts.resize(options.world_size);
  require_routes(hosts, options.platform);
  return hosts;
}

/// Throws InputError if SimGrid, asked for the routes of the platform, ends its process, as it does
/// for some mistakes in platforms. SimGrid's own message appears in the second try.
void require_survival(const SimulationOptions& options, std::vector<char*> arguments) {
  const pid_t child = fork();
  if (child < 0) return;  // then the second try is the first
  if (child == 0) {
    (void)std::freopen("/dev/null", "w", stderr);
    try {
      auto count = static_cast<int>(arguments.size()) - 1;
      s4u::Engine engine(&count, arguments.data());
      (void)load_platform(engine, options);
    } catch (const std::exception&) {
      _exit(0);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw InputError(options.platform, "a platform with a route between all hosts",
                     "one that SimGrid rejects");
  }
}

/// State that the actors share; only one runs at a time, so nothing needs a lock.
struct Group {
  int size;
  int per_host;  ///< devices
  s4u::BarrierPtr barrier;
  std::vector<double> values;
  bool flag = false;
};

class SimulatedTransport final : public Transport {
 public:
  SimulatedTransport(Group& group, int rank)
      : group_(group), rank_(rank), to_(group.size), from_(group.size) {
    for (int peer = 0; peer < group.size; ++peer) {
      to_[peer] = s4u::Mailbox::by_name(fmt::format("{}-{}", rank, peer));
      from_[peer] = s4u::Mailbox::by_name(fmt::format("{}-{}", peer, rank));
    }
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
    static char nothing;  // messages carry a pointer, never read
    std::vector<s4u::CommPtr> messages;
    std::vector<char*> received(group_.size);
    // Each process begins with its next neighbour, so that no process is the first target of all.
    for (int step = 1; step < group_.size; ++step) {
      const int peer = (rank_ - step + group_.size) % group_.size;
      if (receive_bytes[peer] > 0) {
        messages.push_back(from_[peer]->get_async<char>(&received[peer]));
      }
    }
    for (int step = 1; step < group_.size; ++step) {
      const int peer = (rank_ + step) % group_.size;
      if (send_bytes[peer] > 0) {
        messages.push_back(
            to_[peer]->put_async(&nothing, static_cast<std::uint64_t>(send_bytes[peer])));
      }
    }
    for (const s4u::CommPtr& message : messages) message->wait();
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

  /// A message to one process and one from another, at the same time.
  void send_and_receive(int to, std::int64_t sent, int from) {
    static char nothing;
    char* received = nullptr;
    std::vector<s4u::CommPtr> messages;
    if (from != kNobody) messages.push_back(from_[from]->get_async<char>(&received));
    if (to != kNobody) {
      messages.push_back(to_[to]->put_async(&nothing, static_cast<std::uint64_t>(sent)));
    }
    for (const s4u::CommPtr& message : messages) message->wait();
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
      : world_size_(options.world_size), next_(next), measure_(measure), on_done_(on_done) {
    group_.per_host = options.local_world_size;
  }

  void run(s4u::Engine& engine, const std::vector<s4u::Host*>& hosts) {
    group_.size = world_size_;
    group_.barrier = s4u::Barrier::create(world_size_);
    actors_left_ = world_size_;
    for (int rank = 0; rank < world_size_; ++rank) {
      s4u::Actor::create(fmt::format("process-{}", rank), hosts[rank], [this, rank] { act(rank); });
    }
    engine.run();
    if (error_) std::rethrow_exception(error_);
    if (actors_left_ > 0) {  // SimGrid says so in its log only
      throw InputError("simulation", "messages that arrive",
                       fmt::format("{} processes that wait for ever", actors_left_));
    }
  }

 private:
  void act(int rank) {
    SimulatedTransport transport(group_, rank);
    while (true) {
      if (rank == 0 && !error_) guarded([&] { current_ = next_(); });
      if (!transport.broadcast(current_.has_value() && !error_)) {
        --actors_left_;
        return;
      }
      Result result;
      try {
        result = measure_(transport, current_->second);
      } catch (const std::exception& failure) {
        // e.g. a link that its platform switches off; the others would wait for ever
        error_ = std::make_exception_ptr(
            InputError("simulation", "messages that arrive", failure.what()));
        s4u::Actor::kill_all();
        return;
      }
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

  int world_size_;
  const std::function<OptionalCase()>& next_;
  const std::function<Result(Transport&, const Case&)>& measure_;
  const std::function<void(std::int64_t, const Result&)>& on_done_;
  Group group_{};
  OptionalCase current_;
  int actors_left_ = 0;  ///< that have not come to their end
  std::exception_ptr error_;
};

/// Starts SimGrid, once per process, and hands the platform's hosts to `run`.
void with_platform(const SimulationOptions& options,
                   const std::function<void(s4u::Engine&, const std::vector<s4u::Host*>&)>& run) {
  static bool used = false;
  if (used) throw std::logic_error("SimGrid can be started once per process");
  const bool from_file = is_platform_file(options.platform);
  // Before SimGrid starts: errors in the options do not depend on it.
  const Interconnect* interconnect = from_file ? nullptr : &platform_interconnect(options.platform);
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
  if (from_file) require_survival(options, pointers);
  s4u::Engine engine(&count, pointers.data());
  const std::vector<s4u::Host*> hosts =
      from_file ? load_platform(engine, options)
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
