// The grammar of SimGrid platform files: clusters of a few hosts, with links that may be absurd.
#include <fmt/format.h>

#include <string>

#include "fuzz/grammar/damage.h"
#include "fuzz/grammar/grammar.h"

namespace neuroshard::fuzz {

namespace {

constexpr std::string_view kUnits[] = {"",   "Bps", "GBps", "MBps",    "Gbps", "kBps", "us",
                                       "ms", "f",   "Gf",   "parsecs", "s",    "w"};
constexpr std::string_view kZones[] = {"Full", "Full",    "Full", "Floyd",   "Dijkstra",
                                       "None", "Vivaldi", "Star", "nonsense"};

/// An attribute's value: mostly this one, sometimes absurd.
std::string value_or(std::string_view usual, Random& random) {
  if (!once_in(12, random)) return std::string(usual);
  if (once_in(6, random)) return odd_name(random);
  return extreme_number(random) + std::string(one_of(kUnits, random));
}

std::string link(const std::string& id, Random& random) {
  std::string more;
  if (once_in(10, random)) more = " sharing_policy=\"FATPIPE\"";
  if (once_in(20, random)) more = " sharing_policy=\"" + odd_name(random) + "\"";
  if (once_in(30, random)) more += " bandwidth_file=\"profile.txt\"";
  return fmt::format("<link id=\"{}\" bandwidth=\"{}\" latency=\"{}\"{}/>", id,
                     value_or("1GBps", random), value_or("1us", random), more);
}

std::string host(const std::string& id, Random& random) {
  return fmt::format("<host id=\"{}\" speed=\"{}\"/>", id, value_or("1Gf", random));
}

/// Hosts with a link between each two.
std::string zone(Random& random) {
  const std::int64_t num_hosts = integer_between(1, 4, random);
  std::string out = fmt::format("<zone id=\"{}\" routing=\"{}\">", value_or("z", random),
                                once_in(6, random) ? one_of(kZones, random) : "Full");
  std::vector<std::string> hosts;
  for (std::int64_t i = 0; i < num_hosts; ++i) {
    hosts.push_back(once_in(30, random) ? odd_name(random) : fmt::format("host-{}", i));
    out += host(hosts.back(), random);
  }
  std::string links;
  std::string routes;
  for (std::size_t a = 0; a < hosts.size(); ++a) {
    for (std::size_t b = a + 1; b < hosts.size(); ++b) {
      const std::string id = fmt::format("link-{}-{}", a, b);
      links += link(id, random);
      if (once_in(40, random)) continue;
      routes += fmt::format("<route src=\"{}\" dst=\"{}\"{}><link_ctn id=\"{}\"/></route>",
                            hosts[a], hosts[b], once_in(20, random) ? " symmetrical=\"NO\"" : "",
                            once_in(40, random) ? "nowhere" : id);
    }
  }
  return out + links + routes + "</zone>";
}

std::string cluster(Random& random) {
  constexpr std::string_view kRadicals[] = {"0-3", "0-1,3", "1",    "3-0",
                                            "0-",  "a-b",   "-1-2", "0-99999"};
  return fmt::format(
      "<cluster id=\"{}\" prefix=\"{}\" suffix=\"\" radical=\"{}\" speed=\"{}\" bw=\"{}\" "
      "lat=\"{}\"{}/>",
      value_or("own", random), value_or("host-", random),
      once_in(5, random) ? one_of(kRadicals, random) : "0-3", value_or("1Gf", random),
      value_or("500MBps", random), value_or("20us", random),
      once_in(2, random) ? " sharing_policy=\"SPLITDUPLEX\"" : "");
}

}  // namespace

std::string make_platform(Random& random) {
  std::string out =
      "<?xml version='1.0'?><!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">"
      "<platform version=\"" +
      value_or("4.1", random) + "\">" + (once_in(3, random) ? cluster(random) : zone(random)) +
      "</platform>";
  if (once_in(20, random)) {
    constexpr std::string_view kSettings[] = {"network/latency-factor", "network/bandwidth-factor",
                                              "network/TCP-gamma", "maxmin/precision"};
    const std::size_t inside = out.find('>', out.find("<platform ")) + 1;
    out.insert(inside, fmt::format("<config><prop id=\"{}\" value=\"{}\"/></config>",
                                   one_of(kSettings, random), value_or("1", random)));
  }
  if (once_in(6, random)) damage_bytes(out, random);
  return out;
}

}  // namespace neuroshard::fuzz
