// Workloads as JSON (docs/formats.md, "Answers of commands").
#pragma once

#include <cstdint>

#include "neuroshard/io/json/json.h"
#include "neuroshard/workload/workload.h"

namespace neuroshard {

[[nodiscard]] Json to_json(const WorkloadInfo& info);

/// "neuroshard/workloads/1": all workloads that can be asked for by name.
[[nodiscard]] Json workloads_json();

/// "neuroshard/workload/1": the tables, and what one batch of this size does to them.
[[nodiscard]] Json workload_json(const Workload& workload, std::int64_t batch_size);

}  // namespace neuroshard
