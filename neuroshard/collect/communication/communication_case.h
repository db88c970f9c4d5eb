// The input of one sample of communication costs: a placement's columns and the devices' lags.
#pragma once

#include <cstdint>
#include <vector>

#include "neuroshard/core/table.h"

namespace neuroshard {

/// Columns on each device, and when each enters the forward all-to-all.
struct CommunicationCase {
  std::vector<std::int64_t> columns;
  std::vector<double> start_ms;  ///< the smallest is 0
};

/// Which cases are drawn. Case number i depends on the seed and i alone.
struct CommunicationSamplingOptions {
  int world_size = 2;
  std::int64_t batch_size = 65'536;  ///< samples over all devices
  DataType data_type = DataType::fp32;
  double max_start_ms = 20.0;
  std::uint64_t seed = 0;
};

/// A random set of tables of 4 to 128 columns, 2.5 to 15 per device as in the paper's tasks (10 to
/// 60 on four), dealt out to the device with the fewest columns, or, with a probability that is
/// drawn for each case, to any device; so that all degrees of balance occur. Lags are uniform up to
/// a bound that is drawn for each case, every tenth case has none.
[[nodiscard]] CommunicationCase sample_communication_case(
    const CommunicationSamplingOptions& options, std::int64_t index);

/// Bytes of the gradients that an all-reduce sums: multiples of 4, every order of magnitude from a
/// kibibyte to 256 MiB alike. Number i depends on the seed and i alone.
[[nodiscard]] std::int64_t sample_all_reduce_bytes(std::uint64_t seed, std::int64_t index);

/// Tables of one width that are cut into slices of rows, of which a device adds up the partial sums
/// of its samples.
struct PartialSumsCase {
  int slices = 2;            ///< of each table
  std::int64_t columns = 4;  ///< of each table
  std::int64_t num_tables = 1;
  std::int64_t num_samples = 1;  ///< that the device adds up

  /// Read and written: a slice's columns each, and the sums.
  [[nodiscard]] std::int64_t bytes() const {
    return 4 * (slices + 1) * columns * num_tables * num_samples;
  }
};

/// 2 to 8 slices of tables of 4 to 128 columns, as many tables as make any order of magnitude of
/// bytes up to 256 MiB, of the largest share of the batch that a device has, or as many samples as
/// that is of one table. Number i depends on the options and i alone.
[[nodiscard]] PartialSumsCase sample_partial_sums(const CommunicationSamplingOptions& options,
                                                  std::int64_t index);

/// Samples of the batch that device `rank` trains on: as even as they can be.
[[nodiscard]] std::int64_t local_batch_size(std::int64_t batch_size, int world_size, int rank);

}  // namespace neuroshard
