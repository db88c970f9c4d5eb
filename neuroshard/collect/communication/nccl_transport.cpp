// NCCL's point-to-point messages, and a clock of device events.
#include "neuroshard/collect/communication/nccl_transport.h"

#include <fmt/format.h>
#include <nccl.h>

#include <numeric>

#include "neuroshard/collect/compute/cuda/device.h"
#include "neuroshard/collect/compute/cuda/measuring_kernels.h"

namespace neuroshard {

namespace {

void check_nccl(ncclResult_t status, const char* what) {
  if (status == ncclSuccess) return;
  throw MachineError(fmt::format("nccl: {}: {}", what, ncclGetErrorString(status)));
}

/// The communicator of all processes.
class Communicator {
 public:
  explicit Communicator(const MpiTransport& processes) {
    ncclUniqueId id{};
    if (processes.rank() == 0) check_nccl(ncclGetUniqueId(&id), "start");
    const std::string of_first =
        processes.all_gather(std::string(id.internal, sizeof(id.internal))).front();
    of_first.copy(id.internal, sizeof(id.internal));
    check_nccl(ncclCommInitRank(&communicator_, processes.size(), id, processes.rank()), "start");
  }
  ~Communicator() { (void)ncclCommDestroy(communicator_); }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] ncclComm_t get() const { return communicator_; }

 private:
  ncclComm_t communicator_ = nullptr;
};

class NcclTransport final : public Transport {
 public:
  NcclTransport(MpiTransport& processes, int device) : processes_(processes) {
    cuda::check(cudaSetDevice(device), "device");
    stream_ = std::make_unique<cuda::Stream>();
    epoch_ = std::make_unique<cuda::Event>();
    now_ = std::make_unique<cuda::Event>();
    communicator_ = std::make_unique<Communicator>(processes);
    epoch_->record(*stream_);
  }

  [[nodiscard]] int rank() const override { return processes_.rank(); }
  [[nodiscard]] int size() const override { return processes_.size(); }

  /// The time at which the stream has finished all its work.
  double now_ms() override {
    now_->record(*stream_);
    now_->synchronize();
    return epoch_ms_ + now_->milliseconds_since(*epoch_);
  }
  void wait_ms(double duration) override { cuda::launch_wait(duration, stream_->get()); }

  void barrier() override {
    // Elapsed times are floats: from a new epoch, so that they stay exact.
    epoch_ms_ = now_ms();
    std::swap(epoch_, now_);
    processes_.barrier();
  }

  void exchange(std::span<const std::int64_t> send_bytes,
                std::span<const std::int64_t> receive_bytes) override {
    reserve(sent_, send_bytes);
    reserve(received_, receive_bytes);
    check_nccl(ncclGroupStart(), "messages");
    std::size_t send_from = 0;
    std::size_t receive_to = 0;
    for (int peer = 0; peer < size(); ++peer) {
      const auto sends = static_cast<std::size_t>(send_bytes[peer]);
      const auto receives = static_cast<std::size_t>(receive_bytes[peer]);
      if (peer != rank()) {
        // Empty messages are not sent: both sides know the sizes.
        if (sends > 0) {
          check_nccl(ncclSend(sent_.as<char>() + send_from, sends, ncclInt8, peer,
                              communicator_->get(), stream_->get()),
                     "messages");
        }
        if (receives > 0) {
          check_nccl(ncclRecv(received_.as<char>() + receive_to, receives, ncclInt8, peer,
                              communicator_->get(), stream_->get()),
                     "messages");
        }
      }
      send_from += sends;
      receive_to += receives;
    }
    check_nccl(ncclGroupEnd(), "messages");
  }

  void all_reduce(std::int64_t bytes) override {
    const std::int64_t all[] = {bytes};
    reserve(reduced_, all);
    check_nccl(ncclAllReduce(reduced_.as<float>(), reduced_.as<float>(),
                             static_cast<std::size_t>(bytes) / sizeof(float), ncclFloat32, ncclSum,
                             communicator_->get(), stream_->get()),
               "all-reduce");
  }

  [[nodiscard]] std::vector<double> gather(double value) override {
    return processes_.gather(value);
  }
  [[nodiscard]] bool broadcast(bool value) override { return processes_.broadcast(value); }

 private:
  void reserve(cuda::DeviceBuffer& buffer, std::span<const std::int64_t> bytes) {
    const auto all =
        static_cast<std::size_t>(std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}));
    if (all <= buffer.size()) return;
    stream_->synchronize();
    buffer.reserve(all);
    cuda::launch_fill(buffer.as<>(), buffer.size(), false, stream_->get());
  }

  MpiTransport& processes_;
  std::unique_ptr<cuda::Stream> stream_;
  std::unique_ptr<cuda::Event> epoch_;
  std::unique_ptr<cuda::Event> now_;
  std::unique_ptr<Communicator> communicator_;
  cuda::DeviceBuffer sent_;
  cuda::DeviceBuffer received_;
  cuda::DeviceBuffer reduced_;
  double epoch_ms_ = 0.0;  ///< time of `epoch_`
};

}  // namespace

std::unique_ptr<Transport> make_nccl_transport(MpiTransport& processes, int device) {
  return std::make_unique<NcclTransport>(processes, device);
}

std::string nccl_version() {
  int version = 0;
  check_nccl(ncclGetVersion(&version), "version");
  return fmt::format("{}.{}.{}", version / 10'000, version / 100 % 100, version % 100);
}

}  // namespace neuroshard
