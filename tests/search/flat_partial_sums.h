// Communication for tests of the bound: partial sums that are no cheaper for being fewer.
#pragma once

#include "neuroshard/cost/communication/analytic_communication.h"

namespace neuroshard::testing_tasks {

/// Links as they are; to add up any partial sums takes a fixed time.
class FlatPartialSums final : public AnalyticCommunicationModel {
 public:
  explicit FlatPartialSums(double ms)
      : AnalyticCommunicationModel(find_interconnect("a100-nvswitch")), ms_(ms) {}

  [[nodiscard]] double partial_sums_ms(double bytes) const override {
    return bytes > 0.0 ? ms_ : 0.0;
  }

 private:
  double ms_;
};

}  // namespace neuroshard::testing_tasks
