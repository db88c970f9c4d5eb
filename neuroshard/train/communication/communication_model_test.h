// How well a communication cost model predicts the measured or simulated costs of a file.
#pragma once

#include <string>
#include <vector>

#include "neuroshard/cost/communication/communication_model_io.h"
#include "neuroshard/train/compute/model_test.h"

namespace neuroshard {

/// A test for each of what the file has: "forward" and "backward" all-to-alls, device by device;
/// "all_reduce" and "partial_sums", by the slowest device. Throws InputError if the file is
/// malformed or has nothing of these, or if the model does not have the file's interconnect.
[[nodiscard]] std::vector<FileTest> test_communication_model(const CommunicationModelFile& model,
                                                             const std::string& path);

}  // namespace neuroshard
