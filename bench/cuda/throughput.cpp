// Throughput of the CUDA operator on the workloads' tables at batch 65,536: the times of forward
// and backward, the lower bound from the bytes moved, and the share of the device's copy bandwidth
// reached.
//
//   cuda_throughput                  measures, prints the table
//   cuda_throughput --dump FOLDER    writes the cases and a batch of each for embedding_bag.py
//   ... --cases TEXT                 only the cases whose names contain TEXT
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "neuroshard/collect/compute/cuda/device.h"
#include "neuroshard/collect/compute/cuda/device_worker.h"
#include "neuroshard/collect/compute/cuda/measuring_kernels.h"
#include "neuroshard/collect/compute/measure_sets.h"
#include "neuroshard/io/file.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/report/text_table.h"
#include "neuroshard/workload/reuse/index_distribution.h"
#include "neuroshard/workload/workload.h"

namespace neuroshard {
namespace {

constexpr std::int64_t kBatch = 65'536;
/// So that every case fits into the memory of a device with all its tables apart: fewer rows of the
/// largest tables, far more still than the caches hold.
constexpr std::int64_t kMostRows = 10'000'000;

struct Case {
  std::string name;
  std::vector<Table> tables;  ///< embedding_dim: the columns
  Optimizer optimizer = Optimizer::sgd;
};

std::vector<Table> with_columns(std::vector<Table> tables, std::int64_t columns, DataType type) {
  for (Table& table : tables) {
    table.embedding_dim = columns;
    table.data_type = type;
  }
  return tables;
}

std::vector<Table> some_tables(const std::string& workload, std::size_t count) {
  std::vector<Table> all = find_workload(workload, 0).tables;
  if (all.size() <= count) return all;
  std::vector<Table> chosen;
  for (std::size_t i = 0; i < count; ++i) chosen.push_back(all[i * all.size() / count]);
  return chosen;
}

/// Those whose names contain `text`.
std::vector<Case> cases_with(const std::string& text) {
  const std::vector<Table> dcnv2 = some_tables("mlperf-dlrm-dcnv2", 26);
  const std::vector<Table> dlrm = some_tables("dlrm-2021", 40);
  std::vector<Case> cases;
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::rowwise_adagrad}) {
    const char* suffix = optimizer == Optimizer::sgd ? "" : "-adagrad";
    const auto add = [&](const std::string& name, const std::vector<Table>& tables,
                         std::int64_t columns, DataType type) {
      cases.push_back(
          {fmt::format("{}-{}x{}-{}{}", name, tables.size(), columns, to_string(type), suffix),
           with_columns(tables, columns, type), optimizer});
    };
    for (const std::int64_t columns : {128, 32}) add("dcnv2", dcnv2, columns, DataType::fp32);
    add("dcnv2", dcnv2, 128, DataType::fp16);
    for (const std::int64_t columns : {128, 64, 16, 4}) {
      add("dlrm-2021", dlrm, columns, DataType::fp32);
    }
    add("dlrm-2021", dlrm, 64, DataType::fp16);
  }
  Table hot{"hot", 1'000'000, 128, 20.0, DataType::fp32, std::nullopt, std::nullopt};
  hot.index_distribution = IndexDistribution{0.0, {{1, 0.9}, {999'999, 0.1}}};
  cases.push_back({"one-hot-row-128-fp32", {hot}, Optimizer::sgd});
  std::erase_if(cases, [&](const Case& each) { return each.name.find(text) == std::string::npos; });
  return cases;
}

/// Bytes that a pass must move at least, and bytes that it moves if no row is found in a cache.
struct Bytes {
  double floor = 0.0;
  double looked_up = 0.0;
};

struct PassBytes {
  Bytes forward, backward;
};

PassBytes bytes_of(const Case& measured) {
  PassBytes bytes;
  for (const Table& table : measured.tables) {
    const ReuseStatistics reuse = reuse_statistics(table, kBatch);
    const double distinct = std::min(
        reuse.distinct_rows, static_cast<double>(std::min(table.num_embeddings, kMostRows)));
    const auto columns = static_cast<double>(table.embedding_dim);
    const double row = columns * static_cast<double>(element_bytes(table.data_type));
    const double batch = 8.0 * (reuse.num_indices + kBatch + 1);
    const double pooled = 4.0 * columns * kBatch;
    bytes.forward.floor += distinct * row + batch + pooled;
    bytes.forward.looked_up += reuse.num_indices * row + batch + pooled;
    // Rows are read and written once each, however often they are looked up; a gradient is read at
    // least once, and otherwise for each lookup of its bag. The sort is part of this operator, not
    // of the problem.
    const double state = measured.optimizer == Optimizer::rowwise_adagrad ? 8.0 : 0.0;
    bytes.backward.floor += distinct * (2.0 * row + state) + batch + pooled;
    bytes.backward.looked_up +=
        distinct * (2.0 * row + state) + batch + 4.0 * columns * reuse.num_indices;
  }
  return bytes;
}

/// Bytes read plus bytes written per second by a copy within the device's memory.
double copy_bandwidth() {
  constexpr std::size_t kBytes = std::size_t{2} << 30;
  cuda::DeviceBuffer from;
  cuda::DeviceBuffer to;
  from.allocate(kBytes);
  to.allocate(kBytes);
  const cuda::Stream stream;
  cuda::launch_fill(from.as<>(), kBytes, false, stream.get());
  cuda::Event start;
  cuda::Event end;
  double best_ms = 1e9;
  for (int run = 0; run < 12; ++run) {
    start.record(stream);
    cuda::check(
        cudaMemcpyAsync(to.as<>(), from.as<>(), kBytes, cudaMemcpyDeviceToDevice, stream.get()),
        "copy");
    end.record(stream);
    stream.synchronize();
    best_ms = std::min(best_ms, end.milliseconds_since(start));
  }
  return 2.0 * static_cast<double>(kBytes) / (best_ms * 1e-3);
}

void measure(const std::string& cases) {
  const cuda::DeviceInfo info = cuda::device_info(0);
  const double bandwidth = copy_bandwidth();
  fmt::print("{}, {} multiprocessors, L2 {} MiB: copies {:.2f} TB/s (read and written)\n",
             info.name, info.num_multiprocessors, info.l2_bytes >> 20, bandwidth * 1e-12);
  fmt::print(
      "batch {}; floor: every distinct row, index, gradient and output once at that rate; "
      "share: floor over time;\n"
      "moved: bytes without any reuse of rows (forward) or gradients (backward), over time, as "
      "a share of the rate\n\n",
      kBatch);
  std::size_t free = 0;
  std::size_t total = 0;
  cuda::check(cudaMemGetInfo(&free, &total), "memory");
  CudaBackendOptions options;
  options.arena_bytes = static_cast<std::int64_t>(free) / 2;
  options.most_rows = kMostRows;
  options.repetitions.min_repetitions = 15;
  options.repetitions.further_repetitions = 7;
  const auto backend = one_device(std::make_unique<cuda::DeviceWorker>(0, options));
  TextTable table;
  table.add_column("case", TextTable::Align::left);
  for (const char* title : {"M lookups", "forward ms", "floor ms", "share", "moved", "backward ms",
                            "floor ms", "share", "moved"}) {
    table.add_column(title);
  }
  for (const Case& measured : cases_with(cases)) {
    std::optional<PieceSet> set =
        PieceSet{0, measured.tables, {}, Random(1), kBatch, measured.optimizer};
    double lookups = 0.0;
    for (const Table& each : measured.tables) {
      set->pieces.push_back({static_cast<int>(set->pieces.size()), each.embedding_dim});
      lookups += each.pooling_factor * static_cast<double>(kBatch);
    }
    std::vector<std::string> cells{measured.name, fmt::format("{:.1f}", lookups * 1e-6)};
    const auto add_times = [&](const ComputeMeasurement& times) {
      const PassBytes bytes = bytes_of(measured);
      const auto add = [&](double ms, const Bytes& moved) {
        const double floor_ms = moved.floor / bandwidth * 1e3;
        cells.push_back(fmt::format("{:.3f}", ms));
        cells.push_back(fmt::format("{:.3f}", floor_ms));
        cells.push_back(fmt::format("{:.0f}%", 100.0 * floor_ms / ms));
        cells.push_back(fmt::format("{:.0f}%", 100.0 * moved.looked_up / bandwidth * 1e3 / ms));
      };
      add(times.forward_ms, bytes.forward);
      add(times.backward_ms, bytes.backward);
    };
    measure_sets(
        *backend, 1, [&] { return std::exchange(set, std::nullopt); },
        [&](const PieceSetResult& result) {
          if (result.measurement) {
            add_times(*result.measurement);
          } else {
            cells.emplace_back("no memory");
            cells.resize(10);
          }
        });
    table.add_row(std::move(cells));
  }
  fmt::print("{}", table.to_string());
}

/// NAME.json, NAME.indices and NAME.offsets: int64, of all tables one after the other; bag b of
/// table t holds indices[offsets[t * batch + b] .. offsets[t * batch + b + 1]).
void dump(const std::string& folder, const std::string& cases) {
  std::filesystem::create_directories(folder);
  for (const Case& each : cases_with(cases)) {
    std::vector<std::int64_t> indices;
    std::vector<std::int64_t> offsets{0};
    Json::Array tables;
    IndexBatch batch;
    for (std::size_t t = 0; t < each.tables.size(); ++t) {
      const Table& table = each.tables[t];
      const std::int64_t rows = std::min(table.num_embeddings, kMostRows);
      Random random = Random::for_stream(1, t);
      IndexSampler(table, kBatch).draw(kBatch, random, batch);
      const auto before = static_cast<std::int64_t>(indices.size());
      for (const std::int64_t row : batch.indices) indices.push_back(row % rows);
      for (std::size_t bag = 1; bag < batch.offsets.size(); ++bag) {
        offsets.push_back(before + batch.offsets[bag]);
      }
      tables.push_back(Json::Object{{"num_embeddings", rows},
                                    {"embedding_dim", table.embedding_dim},
                                    {"data_type", to_string(table.data_type)}});
    }
    const std::string base = folder + "/" + each.name;
    const auto write = [&](const std::string& suffix, const std::vector<std::int64_t>& values) {
      std::ofstream(base + suffix, std::ios::binary)
          .write(reinterpret_cast<const char*>(values.data()),
                 static_cast<std::streamsize>(values.size() * sizeof(std::int64_t)));
    };
    write(".indices", indices);
    write(".offsets", offsets);
    write_file(base + ".json", to_document(Json::Object{{"batch_size", kBatch},
                                                        {"optimizer", to_string(each.optimizer)},
                                                        {"tables", std::move(tables)}}));
  }
}

}  // namespace
}  // namespace neuroshard

int main(int argc, char** argv) {
  CLI::App app("Throughput of the CUDA operator");
  std::string folder;
  std::string cases;
  app.add_option("--dump", folder,
                 "Folder for the cases and a batch of each, for embedding_bag.py");
  app.add_option("--cases", cases, "Only the cases whose names contain this");
  CLI11_PARSE(app, argc, argv);
  try {
    if (folder.empty()) {
      neuroshard::measure(cases);
    } else {
      neuroshard::dump(folder, cases);
    }
    return 0;
  } catch (const neuroshard::Error& error) {
    fmt::print(stderr, "cuda_throughput: {}\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    fmt::print(stderr, "cuda_throughput: {}\n", error.what());
    return 3;
  }
}
