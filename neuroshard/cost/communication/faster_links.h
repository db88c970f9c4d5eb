// A communication model of wider links.
#pragma once

#include <memory>

#include "neuroshard/cost/communication/communication_cost_model.h"

namespace neuroshard {

/// The same model with every link and card `factor` times as fast, its latencies as they are: of an
/// analytic model, and of a learned one, whose weights follow from the ratio of the links' rates,
/// which stays. nullptr for a model whose links are not known.
[[nodiscard]] std::shared_ptr<const CommunicationCostModel> with_faster_links(
    const CommunicationCostModel& model, double factor);

}  // namespace neuroshard
