// Presets as SimGrid's zones, platform files, and their gate.
#include "neuroshard/collect/communication/simgrid_platform.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <simgrid/Exception.hpp>
#include <simgrid/s4u.hpp>
#include <string_view>

#include "neuroshard/collect/communication/platform.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/machine/child_process.h"
#include "neuroshard/core/machine/memory_limit.h"
#include "neuroshard/core/task.h"
#include "neuroshard/core/units.h"
#include "neuroshard/io/file.h"

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

std::string without_comments(std::string_view text) {
  std::string rest;
  while (!text.empty()) {
    const std::size_t begin = std::min(text.find("<!--"), text.size());
    rest += text.substr(0, begin);
    text.remove_prefix(begin);
    const std::size_t end = text.empty() ? std::string_view::npos : text.find("-->", 4);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 3);
  }
  return rest;
}

/// Whether an element has this attribute, in any of its forms: name, spaces, "=".
bool has_attribute(std::string_view text, std::string_view name) {
  for (std::size_t at = 0; (at = text.find(name, at)) != std::string_view::npos;) {
    at += name.size();
    const std::size_t next = text.find_first_not_of(" \t\r\n", at);
    if (next != std::string_view::npos && text[next] == '=') return true;
  }
  return false;
}

/// Memory of a simulation, measured at 32 and 64 devices: of each pair its route, its mailbox
/// and its messages, and of each device its process.
constexpr double kBytesPerPair = 2500.0;
constexpr double kBytesPerDevice = 256.0 * 1024.0;

/// The number at the start of the text, which is taken off it.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{} || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// Hosts of a cluster by its attribute "0-3,8,12-15". Any other text is left to SimGrid, which
/// refuses it.
double hosts_of_radical(std::string_view list) {
  double hosts = 0.0;
  while (const std::optional<std::int64_t> first = take_number(list)) {
    hosts += 1.0;
    if (list.starts_with('-')) {
      list.remove_prefix(1);
      const std::int64_t last = take_number(list).value_or(*first);
      hosts += std::max(static_cast<double>(last) - static_cast<double>(*first), 0.0);
    }
    if (!list.starts_with(',')) break;
    list.remove_prefix(1);
  }
  return hosts;
}

/// A line of a platform file may stand for any number of hosts, which SimGrid makes one by one.
void require_few_hosts(std::string_view text, const std::string& platform) {
  constexpr std::string_view kRadical = "radical";
  constexpr std::string_view kSpaces = " \t\r\n";
  double hosts = 0.0;
  for (std::size_t at = 0; (at = text.find(kRadical, at)) != std::string_view::npos;) {
    at += kRadical.size();
    const std::size_t equals = text.find_first_not_of(kSpaces, at);
    if (equals == std::string_view::npos || text[equals] != '=') continue;
    const std::size_t quote = text.find_first_not_of(kSpaces, equals + 1);
    if (quote == std::string_view::npos) break;
    hosts += hosts_of_radical(text.substr(quote + 1));
  }
  for (const std::string_view element : {"<host ", "<host\t", "<host\n", "<peer "}) {
    for (std::size_t at = 0; (at = text.find(element, at)) != std::string_view::npos; ++at) {
      hosts += 1.0;
    }
  }
  if (hosts > kMaxWorldSize) {
    throw InputError(platform, fmt::format("at most {} hosts", kMaxWorldSize),
                     fmt::format("{:.0f}", hosts));
  }
}

/// SimGrid obeys the settings of a file: they make it write traces to any path, scale all
/// latencies, or read further files. Not even a comment may have one, as SimGrid's idea of what a
/// comment is may be another than ours.
void require_no_settings(std::string_view text, const std::string& platform) {
  for (const std::string_view element : {"<config", "<include", "<!ENTITY"}) {
    if (text.find(element) != std::string_view::npos) {
      throw InputError(platform, "links and hosts alone, without settings of SimGrid",
                       fmt::format("\"{}\"", element));
    }
  }
}

/// Profiles make SimGrid's platforms change at times of a simulation, over which the samples of a
/// collection are spread as it happens to go on; and some of their values end the process when
/// their time comes. SimGrid does not tell which platforms have profiles, its files do.
void require_constant(const std::string& platform) {
  const std::string whole_text = read_file(platform);
  require_no_settings(whole_text, platform);
  const std::string text = without_comments(whole_text);
  require_few_hosts(text, platform);
  const auto refuse = [&](const char* what) {
    throw InputError(platform, "links and hosts that do not change over time", what);
  };
  for (const char* name :
       {"bandwidth_file", "latency_file", "speed_file", "availability_file", "state_file"}) {
    if (has_attribute(text, name)) refuse(name);
  }
  if (text.find("<trace_connect") != std::string::npos) refuse("trace_connect");
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
      if (!is_link_latency(latency * 1e3)) {
        throw InputError(
            fmt::format("{}: route from {} to {}", platform, from->get_name(), to->get_name()),
            "a latency between 0 and 1000 s", fmt::format("{}", latency));
      }
    }
  }
}

/// SimGrid takes any number for these and ends its process, or waits for ever, when a message meets
/// it.
void require_links(const s4u::Engine& engine, const std::string& platform) {
  for (const s4u::Link* link : engine.get_all_links()) {
    // Hosts must be attached to it, which files cannot say; SimGrid looks for them past its memory.
    if (link->get_sharing_policy() == s4u::Link::SharingPolicy::WIFI) {
      throw InputError(fmt::format("{}: link {}", platform, link->get_name()),
                       "a link between two ends", "sharing policy WIFI");
    }
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

/// Precedes the message of an error in what a trial leaves on stderr; SimGrid writes before it.
constexpr char kErrorMark = '\x01';

/// The text after `mark`, up to the end of its line; nothing if there is no mark.
std::string line_after(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return "";
  text.remove_prefix(at + mark.size());
  return std::string(text.substr(0, text.find('\n')));
}

/// What SimGrid said of the mistake before it ended the process.
std::string last_words(std::string_view text) {
  for (const std::string_view mark : {"CRITICAL] ", "what():  "}) {
    if (std::string line = line_after(text, mark); !line.empty()) return line;
  }
  return "one that ends it";
}

/// 0 if the trial went well. All that it writes to stderr goes to the descriptor.
int exit_code_of(int descriptor, const std::function<void()>& trial) {
  (void)::dup2(descriptor, STDERR_FILENO);
  try {
    trial();
  } catch (const std::exception& error) {
    const std::string message = kErrorMark + std::string(error.what());
    (void)!::write(STDERR_FILENO, message.data(), message.size());
    return 1;
  }
  return 0;
}

}  // namespace

void require_survival(const std::string& platform, const std::function<void()>& trial) {
  const std::optional<EndedChild> ended =
      run_in_child([&](int descriptor) { return exit_code_of(descriptor, trial); });
  // Without a process, what comes after the trial is the trial.
  if (!ended || ended->exit_code == 0) return;
  const std::string& text = ended->written;
  if (const std::size_t mark = text.rfind(kErrorMark); mark != std::string::npos) {
    throw InputError(text.substr(mark + 1));
  }
  throw InputError(platform, "a platform that SimGrid can simulate", last_words(text));
}

void require_memory(int world_size) {
  const auto devices = static_cast<double>(world_size);
  const double bytes = devices * (devices * kBytesPerPair + kBytesPerDevice);
  const auto available = static_cast<double>(available_memory_bytes());
  if (available <= 0.0 || bytes <= available) return;  // 0: not known
  throw OutOfMemory(fmt::format("memory: expected {} free to simulate {} devices, got {}",
                                format_bytes(bytes), world_size, format_bytes(available)));
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

std::vector<s4u::Host*> load_platform(s4u::Engine& engine, const std::string& platform,
                                      int world_size) {
  require_constant(platform);
  try {
    engine.load_platform(platform);
  } catch (const std::exception& error) {
    std::string reason = error.what();
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    throw InputError(platform, "a SimGrid platform", reason);
  }
  require_links(engine, platform);
  std::vector<s4u::Host*> hosts = engine.get_all_hosts();
  require_speeds(hosts, platform);
  // host-2 before host-10
  std::sort(hosts.begin(), hosts.end(), [](const s4u::Host* a, const s4u::Host* b) {
    return strverscmp(a->get_cname(), b->get_cname()) < 0;
  });
  if (static_cast<int>(hosts.size()) < world_size) {
    throw InputError(platform, fmt::format("at least {} hosts", world_size),
                     fmt::format("{}", hosts.size()));
  }
  hosts.resize(world_size);
  require_routes(hosts, platform);
  return hosts;
}

}  // namespace neuroshard
