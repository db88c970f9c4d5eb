// Training data from files of measured computation costs.
#include "neuroshard/train/compute/compute_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "neuroshard/collect/compute/compute_collector.h"
#include "neuroshard/collect/compute/set_sampling.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/cost/compute/compute_network.h"
#include "neuroshard/cost/compute/piece_work.h"
#include "neuroshard/io/checksum.h"
#include "neuroshard/io/compute_costs_io.h"
#include "neuroshard/train/compute/device_scatter.h"

namespace neuroshard {

namespace {

void require_equal_field(const Json& expected, const Json& actual, const std::string& field,
                         const std::string& file) {
  const Json* first = expected.find(field);
  const Json* other = actual.find(field);
  if (first == other || (first != nullptr && other != nullptr && *first == *other)) return;
  const auto shown = [](const Json* value) { return value ? describe(*value) : "nothing"; };
  throw InputError(fmt::format("{}: {}", file, field), shown(first) + ", as in the first file",
                   shown(other));
}

/// Share of tables that a file's collector kept apart; 0 if it kept none.
double held_out_share(const ComputeCostsHeader& header) {
  if (!header.sampling) return 0.0;
  const Json* share = header.sampling->find("held_out_share");
  if (share == nullptr) return 0.0;
  const double* value = std::get_if<double>(&share->value());
  return value == nullptr ? 0.0 : *value;
}

template <typename T>
void insert_once(std::vector<T>& values, T value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

/// By the samples of a file that training or its validation may see; `is_kept_back` tells of each
/// whether it is of tables kept from training.
void widen(TrainedRange& range, const ComputeCosts& costs,
           const std::function<bool(std::size_t sample)>& is_kept_back) {
  const ComputeCostsHeader& header = costs.header;
  const bool first = range.optimizers.empty();
  range.min_batch_size =
      first ? header.batch_size : std::min(range.min_batch_size, header.batch_size);
  range.max_batch_size = std::max(range.max_batch_size, header.batch_size);
  insert_once(range.optimizers, header.optimizer);
  for (std::size_t i = 0; i < costs.samples.size(); ++i) {
    if (is_kept_back(i)) continue;
    const ComputeCostSample& sample = costs.samples[i];
    range.max_pieces = std::max(range.max_pieces, static_cast<int>(sample.pieces.size()));
    for (const Piece& piece : sample.pieces) {
      const MeasuredTable& table = header.tables[piece.table];
      range.min_columns = range.min_columns == 0 ? piece.num_columns
                                                 : std::min(range.min_columns, piece.num_columns);
      range.max_columns = std::max(range.max_columns, piece.num_columns);
      const PieceWork work =
          piece_work(measured_statistics(table, piece.row_share, header.batch_size),
                     piece.num_columns, {header.batch_size, header.optimizer});
      const std::int64_t rows = rows_of_share(table.num_embeddings, piece.row_share);
      const double pooling = table.pooling_factor * piece.row_share;
      const bool is_first = range.max_embeddings == 0;
      range.min_embeddings = is_first ? rows : std::min(range.min_embeddings, rows);
      range.max_embeddings = std::max(range.max_embeddings, rows);
      range.min_pooling_factor = is_first ? pooling : std::min(range.min_pooling_factor, pooling);
      range.max_pooling_factor = std::max(range.max_pooling_factor, pooling);
      range.max_hits_per_row =
          std::max(range.max_hits_per_row, work.lookups / std::max(work.distinct_rows, 1e-9));
      insert_once(range.data_types, table.data_type);
    }
  }
}

ComputeDataset empty_dataset(FeatureSchema schema) {
  ComputeDataset dataset;
  dataset.schema = schema;
  dataset.features.resize(static_cast<Eigen::Index>(feature_names(schema).size()), 0);
  dataset.work.resize(static_cast<Eigen::Index>(work_terms().size()), 0);
  dataset.first_piece.push_back(0);
  return dataset;
}

/// Room for the pieces of that many more.
void add_pieces(ComputeDataset& dataset, std::size_t pieces) {
  const Eigen::Index size = dataset.features.cols() + static_cast<Eigen::Index>(pieces);
  dataset.features.conservativeResize(Eigen::NoChange, size);
  dataset.work.conservativeResize(Eigen::NoChange, size);
}

/// A sample, whose pieces there is room for.
void add_sample(ComputeDataset& dataset, const std::vector<Piece>& pieces,
                const std::function<TableStatistics(const Piece&)>& statistics_of,
                const OperatorSettings& settings, double cost_ms) {
  // Before the fit, a piece's estimate is 1 ms.
  PhysicalEstimate unit;
  unit.weights_ms.assign(work_terms().size(), 0.0);
  unit.weights_ms.front() = 1.0;
  std::vector<double> terms(work_terms().size());
  Eigen::Index next = dataset.first_piece.back();
  std::int64_t widest = 0;
  for (const Piece& piece : pieces) {
    const TableStatistics statistics = statistics_of(piece);
    auto column = dataset.features.col(next);
    shard_features(dataset.schema, statistics, piece.num_columns, settings, unit,
                   {column.data(), static_cast<std::size_t>(column.size())});
    write_work_terms(piece_work(statistics, piece.num_columns, settings), statistics, settings,
                     terms);
    for (std::size_t i = 0; i < terms.size(); ++i) {
      dataset.work(static_cast<Eigen::Index>(i), next) = static_cast<float>(terms[i]);
    }
    widest = std::max(widest, piece.num_columns);
    ++next;
  }
  dataset.first_piece.push_back(static_cast<int>(next));
  dataset.cost_ms.push_back(cost_ms);
  dataset.widest.push_back(widest_class(widest));
  dataset.rowwise_adagrad.push_back(settings.optimizer == Optimizer::rowwise_adagrad);
}

/// `share` of the tables are kept from training; the file is the one of this number.
void append_costs(ComputeDataset& dataset, const ComputeCosts& costs, double share,
                  std::size_t file) {
  const ComputeCostsHeader& header = costs.header;
  const OperatorSettings settings{header.batch_size, header.optimizer};
  std::size_t pieces = 0;
  for (const ComputeCostSample& sample : costs.samples) pieces += sample.pieces.size();
  add_pieces(dataset, pieces);
  const auto statistics_of = [&](const Piece& piece) {
    return measured_statistics(header.tables[piece.table], piece.row_share, header.batch_size);
  };
  const bool is_planned = has_planned_sets(header);
  for (const ComputeCostSample& sample : costs.samples) {
    dataset.planned_place.push_back(
        is_planned && sample.info.id ? planned_place(file, *sample.info.id) : -1);
    add_sample(dataset, sample.pieces, statistics_of, settings,
               usual_cost_ms(sample, header.reference_sets, dataset.reference_ms, "costs"));
    const auto held_out_pieces = std::count_if(
        sample.pieces.begin(), sample.pieces.end(),
        [&](const Piece& piece) { return is_held_out(header.tables[piece.table].name, share); });
    const bool all_held_out = held_out_pieces == static_cast<std::ptrdiff_t>(sample.pieces.size());
    dataset.held_out.push_back(all_held_out);
    dataset.mixed.push_back(held_out_pieces > 0 && !all_held_out);
  }
}

/// Of features; the same in any order of the pieces.
std::uint64_t hash_of_set(const Eigen::MatrixXf& features, int first_piece, int end_piece) {
  std::uint64_t sum = static_cast<std::uint64_t>(end_piece - first_piece);
  for (int piece = first_piece; piece < end_piece; ++piece) {
    std::uint64_t hash = 0;
    for (const float feature : features.col(piece)) {
      hash = mix64(hash ^ std::bit_cast<std::uint32_t>(feature));
    }
    sum += hash;
  }
  return mix64(sum);
}

void find_same_sets(ComputeDataset& dataset) {
  std::unordered_map<std::uint64_t, int> first_of_set;
  for (int i = 0; i < static_cast<int>(dataset.size()); ++i) {
    const std::uint64_t hash =
        hash_of_set(dataset.features, dataset.first_piece[i], dataset.first_piece[i + 1]);
    dataset.same_as.push_back(first_of_set.emplace(hash, i).first->second);
  }
}

}  // namespace

std::size_t ComputeDataset::num_known() const {
  std::unordered_set<int> known;
  for (std::size_t i = 0; i < size(); ++i) {
    if (!held_out[i] && !mixed[i]) known.insert(same_as[i]);
  }
  return known.size();
}

TableStatistics measured_statistics(const MeasuredTable& table, double row_share,
                                    std::int64_t batch_size) {
  const TableStatistics statistics{.num_embeddings = table.num_embeddings,
                                   .pooling_factor = table.pooling_factor,
                                   .data_type = table.data_type,
                                   .reuse_histogram = table.reuse_histogram,
                                   .distinct_rows = table.distinct_rows.value_or(0.0),
                                   .hottest_row_share = table.hottest_row_share.value_or(0.0)};
  return statistics.slice(row_share, batch_size);
}

bool has_planned_sets(const ComputeCostsHeader& header) {
  const Json* kind = header.sampling ? header.sampling->find("kind") : nullptr;
  const std::string* name = kind != nullptr ? kind->text() : nullptr;
  return name != nullptr && *name == kPlannedSetsKind;
}

void require_same_origin(const ComputeCostsHeader& first, const Json& hardware,
                         const Json& operator_info, const std::string& place) {
  for (const char* field : {"kind", "name", "num_cores"}) {
    require_equal_field(first.hardware, hardware, field, place + ": hardware");
  }
  for (const char* field : {"name", "version", "num_threads"}) {
    require_equal_field(first.operator_info, operator_info, field, place + ": operator");
  }
}

void set_estimate(const PhysicalEstimate& estimate, const Eigen::MatrixXf& work,
                  Eigen::MatrixXf& features) {
  const Eigen::VectorXd weights = Eigen::Map<const Eigen::VectorXd>(
      estimate.weights_ms.data(), static_cast<Eigen::Index>(estimate.weights_ms.size()));
  for (Eigen::Index piece = 0; piece < work.cols(); ++piece) {
    features(0, piece) = static_cast<float>(std::log2(weights.dot(work.col(piece).cast<double>())));
  }
}

ComputeDataset dataset_of(const std::vector<UnmeasuredSets>& groups, FeatureSchema schema) {
  ComputeDataset dataset = empty_dataset(schema);
  for (const UnmeasuredSets& group : groups) {
    std::size_t pieces = 0;
    for (const std::vector<Piece>& set : group.sets) pieces += set.size();
    add_pieces(dataset, pieces);
    const auto statistics_of = [&](const Piece& piece) {
      return group.tables[piece.table].slice(piece.row_share, group.settings.batch_size);
    };
    for (const std::vector<Piece>& set : group.sets) {
      add_sample(dataset, set, statistics_of, group.settings, 0.0);
    }
  }
  dataset.planned_place.assign(dataset.size(), -1);
  dataset.held_out.assign(dataset.size(), false);
  dataset.mixed.assign(dataset.size(), false);
  find_same_sets(dataset);
  return dataset;
}

void append(ComputeDataset& dataset, const ComputeDataset& other,
            const std::vector<double>& costs_ms) {
  const Eigen::Index pieces = dataset.features.cols();
  const auto samples = static_cast<int>(dataset.size());
  add_pieces(dataset, static_cast<std::size_t>(other.features.cols()));
  dataset.features.rightCols(other.features.cols()) = other.features;
  dataset.work.rightCols(other.work.cols()) = other.work;
  for (std::size_t i = 0; i < other.size(); ++i) {
    dataset.first_piece.push_back(static_cast<int>(pieces) + other.first_piece[i + 1]);
    dataset.same_as.push_back(samples + other.same_as[i]);
  }
  dataset.cost_ms.insert(dataset.cost_ms.end(), costs_ms.begin(), costs_ms.end());
  // Places say which sets were measured after each other, which none of these was.
  dataset.planned_place.insert(dataset.planned_place.end(), other.size(), -1);
  dataset.widest.insert(dataset.widest.end(), other.widest.begin(), other.widest.end());
  dataset.rowwise_adagrad.insert(dataset.rowwise_adagrad.end(), other.rowwise_adagrad.begin(),
                                 other.rowwise_adagrad.end());
  dataset.held_out.insert(dataset.held_out.end(), other.held_out.begin(), other.held_out.end());
  dataset.mixed.insert(dataset.mixed.end(), other.mixed.begin(), other.mixed.end());
}

std::string training_data_sha256(const std::vector<std::string>& paths) {
  std::string checksums;
  for (const std::string& path : paths) checksums += sha256_file(path);
  return sha256_hex(checksums);
}

double largest_held_out_share(const std::vector<std::string>& paths) {
  double share = 0.0;
  for (const std::string& path : paths) {
    share = std::max(share, held_out_share(read_compute_costs(path).header));
  }
  return share;
}

ComputeDataset load_compute_dataset(const std::vector<std::string>& paths, FeatureSchema schema,
                                    const UsualSpeed* usual) {
  ComputeDataset dataset = empty_dataset(schema);
  std::string checksums;  // each file is read for them once: as training_data_sha256
  std::map<std::string, std::string> path_by_checksum;
  std::vector<ComputeCosts> files;
  double share = 0.0;
  for (const std::string& path : paths) {
    files.push_back(read_compute_costs(path));
    const ComputeCostsHeader& header = files.back().header;
    require_same_origin(files.front().header, header.hardware, header.operator_info, path);
    share = std::max(share, held_out_share(files.back().header));
    const std::string checksum = sha256_file(path);
    checksums += checksum;
    // The same samples in training and in the test would make the test worthless.
    const auto [other, is_new] = path_by_checksum.emplace(checksum, path);
    if (!is_new) throw InputError(path, "a file not given before", "the bytes of " + other->second);
  }
  dataset.reference_ms = usual != nullptr ? *usual : usual_speed(files);
  for (const ComputeCosts& costs : files) {
    dataset.first_sample.push_back(dataset.size());
    dataset.reference_sets.push_back(costs.header.reference_sets);
    append_costs(dataset, costs, share, dataset.reference_sets.size() - 1);
    widen(dataset.range, costs, [&, first = dataset.first_sample.back()](std::size_t i) {
      return dataset.held_out[first + i] || dataset.mixed[first + i];
    });
  }
  if (dataset.size() == 0) {
    throw InputError(paths.empty() ? "costs" : paths.front(), "measured samples", "none");
  }
  find_same_sets(dataset);
  dataset.hardware = to_line(files.front().header.hardware);
  dataset.operator_info = to_line(files.front().header.operator_info);
  dataset.data_sha256 = sha256_hex(checksums);
  return dataset;
}

DatasetSplit split_dataset(const ComputeDataset& dataset, std::uint64_t seed) {
  DatasetSplit split;
  std::vector<int> known;                 // of each set the first that is known
  std::map<int, std::vector<int>> again;  // the other samples of such a set, by that first
  std::unordered_map<int, int> first_known;
  for (int i = 0; i < static_cast<int>(dataset.size()); ++i) {
    if (dataset.mixed[i]) continue;
    if (dataset.held_out[i]) {
      split.unseen_tables.push_back(i);
      continue;
    }
    const auto [first, is_first] = first_known.emplace(dataset.same_as[i], i);
    if (is_first) {
      known.push_back(i);
    } else {
      again[first->second].push_back(i);
    }
  }
  Random random(seed);
  random.shuffle(known);
  const std::size_t tenth = known.size() / 10;
  for (std::size_t place = 0; place < known.size(); ++place) {
    const std::size_t from_end = known.size() - place;
    std::vector<int>& part = from_end <= tenth       ? split.unseen_combinations
                             : from_end <= 2 * tenth ? split.validation
                                                     : split.training;
    part.push_back(known[place]);
    const auto others = again.find(known[place]);
    if (others != again.end())
      part.insert(part.end(), others->second.begin(), others->second.end());
  }
  return split;
}

}  // namespace neuroshard
