// An interconnect's links in files of communication costs and of communication models.
#pragma once

#include "neuroshard/core/interconnect.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/io/json/json_reader.h"

namespace neuroshard {

/// Adds intra_host_gb_per_s, intra_host_latency_ms, inter_host_gb_per_s (of a card),
/// inter_host_latency_ms and devices_per_card; rates are the effective ones.
void set_links(Json& object, const Interconnect& interconnect);

/// An interconnect of these fields, with shares of 1; name, size of hosts and source are left at
/// their defaults. Throws InputError for rates that are not above 0 or latencies below 0.
[[nodiscard]] Interconnect links_from(const JsonReader& object);

}  // namespace neuroshard
