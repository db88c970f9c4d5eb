// The grammar of evaluations, of all three kinds.
#include <string>
#include <utility>

#include "fuzz/grammar/damage.h"
#include "fuzz/grammar/grammar.h"

namespace neuroshard::fuzz {

namespace {

constexpr std::string_view kFormats[] = {"neuroshard/evaluation/1",
                                         "neuroshard/simulated-iteration/1",
                                         "neuroshard/measured-iterations/1"};

}  // namespace

std::string make_evaluation(Random& random) {
  const std::uint64_t kind = random.below(std::size(kFormats));
  const std::string prefix = kind == 1 ? "simulated_" : "measured_";
  const auto ms = [&] { return number(once_in(10, random) ? 0.0 : random.uniform(0.0, 20.0)); };
  const bool has_copies = once_in(3, random);
  const std::int64_t num_devices = integer_between(1, 8, random);
  JsonText devices = array({});
  for (std::int64_t d = 0; d < num_devices; ++d) {
    JsonText device = object({});
    for (const char* part : {"compute_ms", "forward_comm_ms", "backward_comm_ms", "total_ms"}) {
      device.add("predicted_" + std::string(part), ms());
      const bool is_measured = std::string_view(part) != "compute_ms" || kind == 0;
      if (is_measured) device.add(prefix + part, ms());
    }
    if (has_copies) {
      device.add("predicted_all_reduce_ms", ms());
      device.add(prefix + "all_reduce_ms", ms());
    }
    if (kind == 0) {
      device.add("interval", number(random.uniform(0.0, 0.1)));
      device.add("memory_bytes", number(integer_between(0, 1 << 30, random)));
      device.add("num_columns", number(integer_between(0, 4096, random)));
    } else if (kind == 2) {
      device.add("measured_update_ms", ms());
      device.add("measured_lookup_ms", ms());
      device.add("measured_indices_ms", ms());
    }
    devices.elements.push_back(std::move(device));
  }
  JsonText json = object({{"format", text(kFormats[kind])}, {"predicted_ms", ms()}});
  json.add(prefix + "ms", ms());
  if (once_in(2, random)) json.add("plan_sha256", text(std::string(64, 'a')));
  json.add("last_to_enter", number(random.integer(0, num_devices - 1)));
  json.add("devices", std::move(devices));
  return damaged_text(std::move(json), random);
}

}  // namespace neuroshard::fuzz
