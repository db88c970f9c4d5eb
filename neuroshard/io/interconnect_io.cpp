// Writes and reads links.
#include "neuroshard/io/interconnect_io.h"

namespace neuroshard {

namespace {

double rate_from(const JsonReader& object, const char* key) {
  const JsonReader field = object.field(key);
  const double value = field.number();
  if (!is_link_rate(value)) field.fail("a bandwidth between 1e-9 and 1e9 GB/s");
  return value;
}

double latency_from(const JsonReader& object, const char* key) {
  const JsonReader field = object.field(key);
  const double value = field.number();
  if (!is_link_latency(value)) field.fail("a time between 0 and 1e6 ms");
  return value;
}

}  // namespace

void set_links(Json& object, const Interconnect& interconnect) {
  object.set("intra_host_gb_per_s", interconnect.effective_intra_host_gb_per_s())
      .set("intra_host_latency_ms", interconnect.intra_host_latency_ms)
      .set("inter_host_gb_per_s", interconnect.effective_card_gb_per_s())
      .set("inter_host_latency_ms", interconnect.inter_host_latency_ms)
      .set("devices_per_card", interconnect.devices_per_card);
}

Interconnect links_from(const JsonReader& object) {
  Interconnect interconnect;
  interconnect.intra_host_gb_per_s = rate_from(object, "intra_host_gb_per_s");
  interconnect.intra_host_latency_ms = latency_from(object, "intra_host_latency_ms");
  interconnect.card_gb_per_s = rate_from(object, "inter_host_gb_per_s");
  interconnect.inter_host_latency_ms = latency_from(object, "inter_host_latency_ms");
  interconnect.devices_per_card =
      static_cast<int>(object.field("devices_per_card").integer(1, 1 << 30));
  return interconnect;
}

}  // namespace neuroshard
