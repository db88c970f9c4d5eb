// Stands in for MPI in builds without it (option NEUROSHARD_MPI): nothing can be constructed.
#include <cstdlib>

#include "neuroshard/collect/communication/mpi_transport.h"

namespace neuroshard {

namespace {

[[noreturn]] void fail() {
  throw MachineError(
      "mpi: expected an executable built with MPI, got one without, as wheels and `make portable` "
      "have; `make` builds one with it");
}

}  // namespace

bool started_by_mpirun() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr; }

MpiTransport::MpiTransport() { fail(); }
MpiTransport::~MpiTransport() = default;
double MpiTransport::now_ms() { fail(); }
void MpiTransport::wait_ms(double) { fail(); }
void MpiTransport::barrier() { fail(); }
void MpiTransport::exchange(std::span<const std::int64_t>, std::span<const std::int64_t>) {
  fail();
}
void MpiTransport::all_reduce(std::int64_t) { fail(); }
void MpiTransport::exchange_values(std::span<const float>, std::span<const std::int64_t>,
                                   std::span<float>, std::span<const std::int64_t>) const {
  fail();
}
void MpiTransport::sum_values(std::span<float>) { fail(); }
std::vector<double> MpiTransport::gather(double) { fail(); }
bool MpiTransport::broadcast(bool) { fail(); }
std::int64_t MpiTransport::broadcast_integer(std::int64_t) { fail(); }
std::vector<std::string> MpiTransport::all_gather(const std::string&) const { fail(); }
void MpiTransport::require_agreement(const std::string&) const { fail(); }
std::string MpiTransport::host_name() { fail(); }
void MpiTransport::abort(int exit_code) const { std::exit(exit_code); }
void MpiTransport::end_run_with(const std::exception&) const {}

}  // namespace neuroshard
