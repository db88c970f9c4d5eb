// Preparing and timing on one device.
#include "neuroshard/collect/compute/cuda/device_worker.h"

#include <algorithm>
#include <utility>

#include "neuroshard/collect/compute/cuda/measuring_kernels.h"
#include "neuroshard/workload/reuse/index_batch.h"

namespace neuroshard::cuda {

namespace {

constexpr std::int64_t kAlignment = 256;
/// Small enough that weights and optimizer state stay what they are however long it runs.
constexpr float kLearningRate = 1e-12F;
constexpr float kEpsilon = 1e-8F;

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

template <class T>
void upload(const T* values, std::size_t count, DeviceBuffer& buffer, const Stream& stream) {
  buffer.reserve(count * sizeof(T));
  check(cudaMemcpyAsync(buffer.as<>(), values, count * sizeof(T), cudaMemcpyHostToDevice,
                        stream.get()),
        "upload");
  stream.synchronize();
}

}  // namespace

DeviceWorker::DeviceWorker(int device, const CudaBackendOptions& options)
    : options_(options), info_((check(cudaSetDevice(device), "device"), device_info(device))) {
  arena_.allocate(static_cast<std::size_t>(options.arena_bytes));
  disturbance_.allocate(static_cast<std::size_t>(info_.l2_bytes * options.disturbance));
  sink_.reserve(sizeof(unsigned));
  launch_fill(arena_.as<>(), arena_.size(), options.data_type == DataType::fp16, stream_.get());
  launch_fill(disturbance_.as<>(), disturbance_.size(), false, stream_.get());
  stream_.synchronize();
}

const RowDistribution& DeviceWorker::distribution_of(const Table& table, std::int64_t batch_size) {
  const auto found = distributions_.find(&table);
  if (found != distributions_.end()) return found->second.rows;
  const IndexSampler sampler(table, batch_size);
  DeviceDistribution on_device{{}, {}, sampler.rows()};
  RowDistribution& rows = on_device.rows;
  upload(rows.pieces, rows.num_pieces, on_device.pieces, stream_);
  upload(rows.slots, rows.num_pieces, on_device.slots, stream_);
  rows.pieces = on_device.pieces.as<RankPiece>();
  rows.slots = on_device.slots.as<AliasTable::Slot>();
  return distributions_.emplace(&table, std::move(on_device)).first->second.rows;
}

std::vector<OperatorTable> DeviceWorker::place(const PieceSet& set, std::int64_t most_rows,
                                               Random& random) const {
  const std::int64_t room = options_.arena_bytes / kAlignment * kAlignment;
  std::int64_t next = random.integer(0, room / kAlignment - 1) * kAlignment;
  const auto take = [&](std::int64_t bytes) {
    if (next + bytes > room) next = 0;
    std::byte* place = arena_.as<>() + next;
    next += aligned(bytes);
    return place;
  };
  std::vector<OperatorTable> tables;
  for (const TablePiece& piece : set.pieces) {
    const DataType type = piece.table->data_type;
    const std::int64_t row_bytes = piece.num_columns * element_bytes(type);
    // A state of 4 bytes per row must fit as well.
    const std::int64_t rows = std::min(
        {piece.table->num_embeddings, most_rows, room / std::max(row_bytes, std::int64_t{4})});
    if (rows < 1) throw MachineError("arena: expected room for one row of a piece, got less");
    void* weights = take(rows * row_bytes);
    tables.push_back(
        {weights, reinterpret_cast<float*>(take(rows * 4)), rows, piece.num_columns, type});
  }
  return tables;
}

std::vector<DeviceLookups> DeviceWorker::draw(const PieceSet& set,
                                              const std::vector<OperatorTable>& tables,
                                              std::int64_t batch_size, Random& random) {
  std::vector<DrawPlan> plans;
  std::int64_t blocks = 0;
  std::int64_t words = 0;
  for (std::size_t i = 0; i < set.pieces.size(); ++i) {
    const Table& table = *set.pieces[i].table;
    const BagLengths lengths = bag_lengths(table.pooling_factor, random());
    const std::int64_t lookups = lengths.offset(batch_size);
    plans.push_back({distribution_of(table, batch_size), lengths, random(),
                     tables[i].num_embeddings, lookups, blocks, nullptr, nullptr});
    blocks += (lookups + kDrawsPerBlock - 1) / kDrawsPerBlock;
    words += lookups + batch_size + 1;
  }
  batch_.reserve(static_cast<std::size_t>(words) * sizeof(std::int64_t));
  auto* next = batch_.as<std::int64_t>();
  std::vector<DeviceLookups> result;
  for (DrawPlan& plan : plans) {
    plan.offsets = std::exchange(next, next + batch_size + 1);
    plan.indices = std::exchange(next, next + plan.num_lookups);
    result.push_back({plan.indices, plan.offsets, plan.num_lookups, plan.lengths.longest()});
  }
  upload(plans.data(), plans.size(), draw_plans_, stream_);
  launch_draw(draw_plans_.as<DrawPlan>(), static_cast<int>(plans.size()), blocks, batch_size,
              stream_.get());
  return result;
}

void DeviceWorker::prepare(const PieceSet& set, std::int64_t batch_size, Optimizer optimizer,
                           std::int64_t most_rows) {
  operator_.reset();
  try {
    try_to_prepare(set, batch_size, optimizer, most_rows);
  } catch (const OutOfDeviceMemory&) {
    // Earlier sets have left buffers as large as they needed them: whether a set has room must not
    // depend on them.
    free_working_memory();
    try_to_prepare(set, batch_size, optimizer, most_rows);
  }
}

void DeviceWorker::free_working_memory() {
  batch_ = {};
  activations_ = {};
  workspace_ = {};
}

void DeviceWorker::try_to_prepare(const PieceSet& set, std::int64_t batch_size, Optimizer optimizer,
                                  std::int64_t most_rows) {
  Random random = set.random;
  const std::vector<OperatorTable> tables = place(set, most_rows, random);
  const std::vector<DeviceLookups> lookups = draw(set, tables, batch_size, random);
  std::int64_t columns = 0;
  for (const OperatorTable& table : tables) columns += table.num_columns;
  const std::size_t before = activations_.size();
  activations_.reserve(static_cast<std::size_t>(batch_size * columns) * sizeof(float));
  if (activations_.size() != before) {
    launch_fill(activations_.as<>(), activations_.size(), false, stream_.get());
  }
  operator_ = std::make_unique<CudaEmbeddingOperator>(
      tables, lookups, batch_size, OperatorOptions{optimizer, kLearningRate, kEpsilon},
      info_.resident_threads, workspace_, stream_);
}

void DeviceWorker::disturb() {
  launch_read(disturbance_.as<>(), disturbance_.size(), sink_.as<unsigned>(), stream_.get());
}

void DeviceWorker::enqueue(Round& round) {
  disturb();
  round.start_forward.record(stream_);
  forward();
  round.end_forward.record(stream_);
  disturb();
  round.start_backward.record(stream_);
  backward();
  round.end_backward.record(stream_);
}

ComputeMeasurement DeviceWorker::time_passes() {
  RepeatedTiming total(options_.repetitions);
  std::vector<double> forward_ms;
  std::vector<double> backward_ms;
  // As many rounds at once as will be needed at least: the device never waits for the host.
  int count = options_.repetitions.warm_ups + options_.repetitions.min_repetitions;
  do {
    while (static_cast<int>(rounds_.size()) < count) rounds_.push_back(std::make_unique<Round>());
    for (int i = 0; i < count; ++i) enqueue(*rounds_[i]);
    synchronize();
    for (int i = 0; i < count; ++i) {
      const Round& round = *rounds_[i];
      const double forward = round.end_forward.milliseconds_since(round.start_forward);
      const double backward = round.end_backward.milliseconds_since(round.start_backward);
      if (!total.warming_up()) {
        forward_ms.push_back(forward);
        backward_ms.push_back(backward);
      }
      total.add(forward + backward,
                round.end_backward.milliseconds_since(round.start_forward) * 1e-3);
    }
    count = std::max(1, options_.repetitions.min_repetitions / 2);
  } while (!total.done());
  const double quantile = options_.repetitions.quantile;
  return {estimate_quantile(forward_ms, quantile).value,
          estimate_quantile(backward_ms, quantile).value, static_cast<int>(forward_ms.size()),
          total.estimate().interval};
}

}  // namespace neuroshard::cuda
