// Sets placed, drawn and run on one device.
#include "neuroshard/collect/compute/cuda/device_worker.h"

#include <algorithm>
#include <future>
#include <utility>

#include "neuroshard/collect/compute/cuda/measuring_kernels.h"

namespace neuroshard::cuda {

namespace {

constexpr std::int64_t kAlignment = 256;
/// Small enough that weights and optimizer state hardly change, however long it runs.
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

/// The set that a worker has ready; there is one at a time.
class DeviceWorker::Prepared final : public PreparedSet {
 public:
  Prepared(DeviceWorker& worker, std::int64_t bytes_touched)
      : worker_(worker), bytes_touched_(bytes_touched) {}

  std::future<double> forward() override {
    return start([&](float* activations) { worker_.operator_->forward(activations); });
  }
  std::future<double> backward() override {
    return start([&](float* activations) { worker_.operator_->backward(activations); });
  }
  [[nodiscard]] std::int64_t bytes_touched() const override { return bytes_touched_; }

 private:
  struct Events {
    Event start, end;
  };

  template <class Pass>
  std::future<double> start(const Pass& pass) {
    const auto events = std::make_shared<Events>();
    events->start.record(worker_.stream_);
    pass(worker_.activations_.as<float>());
    events->end.record(worker_.stream_);
    return std::async(std::launch::deferred, [events] {
      events->end.synchronize();
      return events->end.milliseconds_since(events->start);
    });
  }

  DeviceWorker& worker_;
  std::int64_t bytes_touched_;
};

DeviceWorker::DeviceWorker(int device, const CudaBackendOptions& options)
    : device_(device),
      options_(options),
      info_((check(cudaSetDevice(device), "device"), device_info(device))) {
  arena_.allocate(static_cast<std::size_t>(options.arena_bytes));
  disturbance_.allocate(static_cast<std::size_t>(info_.l2_bytes * options.disturbance));
  sink_.reserve(sizeof(unsigned));
  launch_fill(arena_.as<>(), arena_.size(), options.data_type == DataType::fp16, stream_.get());
  launch_fill(disturbance_.as<>(), disturbance_.size(), false, stream_.get());
  stream_.synchronize();
}

std::vector<OperatorTable> DeviceWorker::place(const PieceSet& set, Random& random) const {
  const std::int64_t room = options_.arena_bytes / kAlignment * kAlignment;
  std::int64_t next = random.integer(0, room / kAlignment - 1) * kAlignment;
  const auto take = [&](std::int64_t bytes) {
    if (next + bytes > room) next = 0;
    std::byte* place = arena_.as<>() + next;
    next += aligned(bytes);
    return place;
  };
  std::vector<OperatorTable> tables;
  for (const Piece& piece : set.pieces) {
    const Table& table = set.table_of(piece);
    const DataType type = table.data_type;
    const std::int64_t row_bytes = piece.num_columns * element_bytes(type);
    // A state of 4 bytes per row must fit as well.
    const std::int64_t rows = std::min(
        {table.num_embeddings, options_.most_rows, room / std::max(row_bytes, std::int64_t{4})});
    if (rows < 1) throw OutOfMemory("arena: expected room for one row of a piece, got less");
    void* weights = take(rows * row_bytes);
    tables.push_back(
        {weights, reinterpret_cast<float*>(take(rows * 4)), rows, piece.num_columns, type});
  }
  return tables;
}

std::vector<DeviceLookups> DeviceWorker::draw(const PieceSet& set,
                                              const std::vector<OperatorTable>& tables,
                                              Random& random) {
  const std::int64_t batch_size = set.batch_size;
  std::vector<const Table*> drawn;
  for (const Piece& piece : set.pieces) drawn.push_back(&set.table_of(piece));
  distributions_.add(drawn, batch_size, stream_);
  std::vector<DrawPlan> plans;
  std::int64_t blocks = 0;
  std::int64_t words = 0;
  for (std::size_t i = 0; i < set.pieces.size(); ++i) {
    const Table& table = set.table_of(set.pieces[i]);
    const BagLengths lengths = bag_lengths(table.pooling_factor, random());
    const std::int64_t lookups = lengths.offset(batch_size);
    plans.push_back({distributions_.of(table), lengths, random(), tables[i].num_embeddings, lookups,
                     blocks, nullptr, nullptr});
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

std::unique_ptr<PreparedSet> DeviceWorker::prepare(const PieceSet& set) {
  check(cudaSetDevice(device_), "device");  // of the thread, whichever it is
  operator_.reset();
  try {
    try_to_prepare(set);
  } catch (const OutOfDeviceMemory&) {
    // Earlier sets have left buffers as large as they needed them: whether a set has room must not
    // depend on them.
    free_working_memory();
    try_to_prepare(set);
  }
  // Counts the pooled outputs only: with one set at a time the number does not matter.
  return std::make_unique<Prepared>(*this, static_cast<std::int64_t>(activations_.size()));
}

void DeviceWorker::free_working_memory() {
  batch_ = {};
  activations_ = {};
  workspace_ = {};
}

void DeviceWorker::try_to_prepare(const PieceSet& set) {
  Random random = set.random;
  const std::vector<OperatorTable> tables = place(set, random);
  const std::vector<DeviceLookups> lookups = draw(set, tables, random);
  std::int64_t columns = 0;
  for (const OperatorTable& table : tables) columns += table.num_columns;
  const std::size_t before = activations_.size();
  activations_.reserve(static_cast<std::size_t>(set.batch_size * columns) * sizeof(float));
  if (activations_.size() != before) {
    launch_fill(activations_.as<>(), activations_.size(), false, stream_.get());
  }
  operator_ = std::make_unique<CudaEmbeddingOperator>(
      tables, lookups, set.batch_size, OperatorOptions{set.optimizer, kLearningRate, kEpsilon},
      info_.resident_threads, workspace_, stream_);
}

std::int64_t DeviceWorker::disturb_caches(std::int64_t bytes) {
  const std::size_t read = std::min(static_cast<std::size_t>(bytes), disturbance_.size());
  launch_read(disturbance_.as<>(), read, sink_.as<unsigned>(), stream_.get());
  return static_cast<std::int64_t>(read);
}

}  // namespace neuroshard::cuda
