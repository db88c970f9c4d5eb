// The target of each fuzzer. A target may only refuse input by InputError, in one printable line;
// accepted input must survive being written and read again. Anything else is thrown and ends a
// fuzzer. Targets return whether the input was accepted.
#pragma once

#include <string>
#include <string_view>

#include "fuzz/promise.h"
#include "neuroshard/evaluate/evaluation_file.h"
#include "neuroshard/io/communication_costs_io.h"
#include "neuroshard/io/compute_costs_io.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/io/safetensors.h"
#include "neuroshard/io/task_io.h"

namespace neuroshard::fuzz {

inline bool task(std::string_view bytes) {
  return accept_or_refuse([&] {
    const std::string text = task_text(parse_task(bytes, "f"));
    require(task_text(parse_task(text, "again")) == text, "a task reads back as written");
  });
}

inline bool plan(std::string_view bytes) {
  return accept_or_refuse([&] {
    const PlanDocument document = parse_plan(bytes, "f");
    const std::string text = plan_text(document);
    require(plan_text(parse_plan(text, "again")) == text, "a plan reads back as written");
    (void)violations(document.task, document.plan);
  });
}

inline bool evaluation(std::string_view bytes) {
  return accept_or_refuse([&] {
    const EvaluationRecord record = parse_evaluation(bytes, "f");
    require(!record.actual.devices.empty(), "an evaluation has devices");
    require(record.predicted.devices.size() == record.actual.devices.size(),
            "each device is predicted and measured");
    require(record.interval.empty() || record.interval.size() == record.actual.devices.size(),
            "intervals are of each device");
  });
}

inline bool compute_costs(std::string_view bytes) {
  return accept_or_refuse([&] {
    const ComputeCosts costs = parse_compute_costs(bytes, "f");
    const auto num_tables = static_cast<int>(costs.header.tables.size());
    for (const ComputeCostSample& sample : costs.samples) {
      require(!sample.pieces.empty(), "a sample has shards");
      require(sample.forward_ms > 0.0 && sample.backward_ms > 0.0, "times are above 0");
      for (const Piece& piece : sample.pieces) {
        require(piece.table >= 0 && piece.table < num_tables, "tables are in range");
        require(piece.num_columns > 0, "shards have columns");
        require(piece.row_share > 0.0 && piece.row_share <= 1.0, "shards have rows");
      }
    }
  });
}

inline bool communication_costs(std::string_view bytes) {
  return accept_or_refuse([&] {
    const CommunicationCosts costs = parse_communication_costs(bytes, "f");
    const auto world_size = static_cast<std::size_t>(costs.header.world_size);
    for (const CommunicationCostSample& sample : costs.samples) {
      require(sample.columns.size() == world_size && sample.start_ms.size() == world_size &&
                  sample.forward_ms.size() == world_size && sample.backward_ms.size() == world_size,
              "a sample has one value for each device");
    }
  });
}

inline bool safetensors(std::string_view bytes) {
  return accept_or_refuse([&] {
    const TensorFile file = parse_tensors(bytes, "f", ChecksumPolicy::if_present);
    require(parse_tensors(tensor_bytes(file), "again").tensors == file.tensors,
            "tensors read back as written");
  });
}

}  // namespace neuroshard::fuzz
