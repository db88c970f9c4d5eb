// Measured computation costs as training data: features of every piece, costs, and the split.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <string>
#include <vector>

#include "neuroshard/collect/compute/usual_speed.h"
#include "neuroshard/core/piece.h"
#include "neuroshard/cost/compute/neural_compute_model.h"
#include "neuroshard/io/compute_costs_io.h"

namespace neuroshard {

/// How the costs in a folder's files compare with those in the first folder's.
struct FolderSpeed {
  std::string folder;  ///< as its first file was given; "." of one without a folder
  double speed = 1.0;  ///< above 1: costs are higher, the host was slower
};

/// Samples of one or several files of one hardware and operator.
struct ComputeDataset {
  FeatureSchema schema = FeatureSchema::work;
  /// Features x pieces, not standardised; FeatureSchema::work's estimate is not fitted yet
  /// (set_estimate).
  Eigen::MatrixXf features;
  Eigen::MatrixXf work;          ///< work terms x pieces
  std::vector<int> first_piece;  ///< sample i has pieces [first_piece[i], first_piece[i + 1])
  /// Forward + backward; of samples with reference sets, at the usual speed (usual_speed.h).
  std::vector<double> cost_ms;
  std::vector<std::size_t> widest;    ///< class of each sample's widest piece (widest_class)
  std::vector<bool> rowwise_adagrad;  ///< whether that is each sample's optimizer
  std::vector<bool> held_out;         ///< made of tables that training must not see
  std::vector<bool> mixed;  ///< made of such tables and others: not used, in no part of a split
  /// The first sample of as many pieces with the same features: one set that was measured more than
  /// once, in one file or in several. A sample that has none before it has its own number.
  std::vector<int> same_as;
  /// Of sets of plans' devices (planned_sets.h), their places in the files' sequences
  /// (planned_place): those of one plan follow each other. Of others -1.
  std::vector<std::int64_t> planned_place;
  std::vector<std::size_t> first_sample;    ///< of each file, in the order given
  std::vector<std::string> reference_sets;  ///< of each file; "": none
  /// Where costs were divided by speeds, at the speed that they are of.
  UsualSpeed reference_ms;          ///< what reference sets usually took; empty: no sample has any
  std::vector<FolderSpeed> speeds;  ///< that costs were divided by; empty: by none
  TrainedRange range;
  std::string hardware;       ///< JSON object
  std::string operator_info;  ///< JSON object
  std::string data_sha256;

  [[nodiscard]] std::size_t size() const { return cost_ms.size(); }
  /// Sets that are neither held out nor mixed, each counted once.
  [[nodiscard]] std::size_t num_known() const;
};

/// Statistics of a measured piece's table, or of the slice of it that the piece is; `batch_size` is
/// that of the file.
[[nodiscard]] TableStatistics measured_statistics(const MeasuredTable& table, double row_share,
                                                  std::int64_t batch_size);

/// Whether the file's sets are those of devices of plans (planned_sets.h).
[[nodiscard]] bool has_planned_sets(const ComputeCostsHeader& header);

/// Replaces the estimate among the features of every piece by this one's.
void set_estimate(const PhysicalEstimate& estimate, const Eigen::MatrixXf& work,
                  Eigen::MatrixXf& features);

/// Throws InputError, "PLACE: hardware: name: expected ..., as in the first file, got ...", unless
/// costs of this hardware and operator may be trained on together with those of the first file.
void require_same_origin(const ComputeCostsHeader& first, const Json& hardware,
                         const Json& operator_info, const std::string& place);

/// Sets of pieces of one batch size and optimizer that are to be priced, not measured.
struct UnmeasuredSets {
  OperatorSettings settings;
  std::vector<TableStatistics> tables;
  std::vector<std::vector<Piece>> sets;  ///< of `tables`, slices of rows among them
};

/// Them as samples with costs of 0; nothing is held out, and hardware, operator, range and checksum
/// are empty.
[[nodiscard]] ComputeDataset dataset_of(const std::vector<UnmeasuredSets>& groups,
                                        FeatureSchema schema);

/// Appends the samples of `other`, which has the same schema, at these costs.
void append(ComputeDataset& dataset, const ComputeDataset& other,
            const std::vector<double>& costs_ms);

/// By which a model names the files that it was trained on, in their order. Throws InputError if
/// one cannot be read.
[[nodiscard]] std::string training_data_sha256(const std::vector<std::string>& paths);

/// Share of the tables that the files keep from training, the largest of theirs; 0 if none keeps
/// any. Throws InputError if a file is malformed.
[[nodiscard]] double largest_held_out_share(const std::vector<std::string>& paths);

/// Tables that one of the files keeps from training are kept from it in all of them. Costs are
/// brought to the `usual` speed, by default that of these files' samples.
/// Throws InputError if a file is malformed or given twice, if there are no samples, or if a file
/// was measured on other hardware or with another operator than the first.
[[nodiscard]] ComputeDataset load_compute_dataset(const std::vector<std::string>& paths,
                                                  FeatureSchema schema,
                                                  const UsualSpeed* usual = nullptr);

/// Indices of samples, by use.
struct DatasetSplit {
  std::vector<int> training;
  std::vector<int> validation;
  std::vector<int> unseen_combinations;  ///< test: known tables, sets never seen
  std::vector<int> unseen_tables;        ///< test: sets of tables never seen
};

/// 80/10/10 of the samples that are not held out, at random; the held-out ones are the second test.
/// A set that was measured more than once counts once: all its samples are in one part, one after
/// the other.
[[nodiscard]] DatasetSplit split_dataset(const ComputeDataset& dataset, std::uint64_t seed);

}  // namespace neuroshard
