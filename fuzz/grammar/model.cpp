// The grammar of model files: whole ones, and absurd ones whose checksum is right.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/grammar/damage.h"
#include "fuzz/grammar/grammar.h"
#include "neuroshard/cost/communication/communication_model_io.h"
#include "neuroshard/cost/compute/compute_model_io.h"
#include "neuroshard/io/checksum.h"
#include "neuroshard/io/safetensors.h"
#include "tests/cost/arbitrary_communication.h"
#include "tests/cost/arbitrary_network.h"

namespace neuroshard::fuzz {

namespace {

/// Small models of every architecture, as their writers write them.
std::vector<TensorFile> valid_models() {
  namespace networks = testing_networks;
  std::string folder = (std::filesystem::temp_directory_path() / "neuroshard-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no temporary folder");
  const std::string path = folder + "/model.safetensors";
  const networks::NetworkSizes sizes{.encoder = {4, 3}, .head = 2};
  std::vector<TensorFile> files;
  for (const auto architecture :
       {ComputeArchitecture::bounded_loads, ComputeArchitecture::published}) {
    for (const std::uint64_t seed : {3U, 4U}) {  // one network, and an ensemble
      write_compute_model(*networks::random_model(architecture, seed, sizes), path);
      files.push_back(read_tensors(path));
    }
  }
  CommunicationModelInfo info = networks::two_clusters();
  write_communication_model(*networks::random_communication_network(1), info, path);
  files.push_back(read_tensors(path));
  info.clusters.resize(1);
  info.clusters[0].collectives = {std::vector<double>(kNumAllReduceTerms, 0.5),
                                  std::vector<double>(kNumPartialSumTerms, 0.25)};
  write_communication_model(*networks::random_communication_network(2), info, path);
  files.push_back(read_tensors(path));
  std::filesystem::remove_all(folder);
  return files;
}

float absurd_value(Random& random) {
  using Limits = std::numeric_limits<float>;
  constexpr float kValues[] = {0.0F,
                               -0.0F,
                               1.0F,
                               -1.0F,
                               1e-45F,
                               1e-38F,
                               1e10F,
                               -1e10F,
                               1e30F,
                               -1e30F,
                               Limits::max(),
                               Limits::lowest(),
                               Limits::min(),
                               Limits::infinity(),
                               -Limits::infinity(),
                               Limits::quiet_NaN()};
  return one_of(kValues, random);
}

void damage_values(Tensor& tensor, Random& random) {
  if (tensor.values.empty()) return;
  if (once_in(3, random)) {
    constexpr float kFactors[] = {0.0F, -1.0F, 1e-30F, 1e5F, 1e20F, 1e38F};
    const float factor = one_of(kFactors, random);
    for (float& value : tensor.values) value *= factor;
  } else if (once_in(3, random)) {
    const float value = absurd_value(random);
    for (float& each : tensor.values) each = value;
  } else {
    tensor.values[random.below(tensor.values.size())] = absurd_value(random);
  }
}

/// Sizes that the values do not fill, or fill otherwise.
void damage_shape(Tensor& tensor, Random& random) {
  constexpr std::int64_t kSizes[] = {0,
                                     1,
                                     2,
                                     7,
                                     -1,
                                     65'536,
                                     std::int64_t{1} << 32,
                                     std::int64_t{1} << 48,
                                     std::numeric_limits<std::int64_t>::max()};
  switch (random.below(4)) {
    case 0:
      tensor.shape.push_back(one_of(kSizes, random));
      break;
    case 1:
      if (!tensor.shape.empty()) tensor.shape.pop_back();
      break;
    case 2:
      if (!tensor.shape.empty()) tensor.shape.back() = one_of(kSizes, random);
      break;
    default:
      std::reverse(tensor.shape.begin(), tensor.shape.end());
  }
}

/// As large as its shape says, where that is small: then the file is consistent.
void fill_shape(Tensor& tensor) {
  std::size_t size = 1;
  for (const std::int64_t each : tensor.shape) {
    if (each < 0 || each > 1000 || size > 10'000) return;
    size *= static_cast<std::size_t>(each);
  }
  tensor.values.resize(size, 0.5F);
}

std::string name_of_one(const TensorFile& file, Random& random) {
  auto chosen = file.tensors.begin();
  std::advance(chosen, static_cast<std::ptrdiff_t>(random.below(file.tensors.size())));
  return chosen->first;
}

void damage_tensors(TensorFile& file, Random& random) {
  const std::string name = name_of_one(file, random);
  Tensor& tensor = file.tensors[name];
  switch (random.below(8)) {
    case 0:
      file.tensors.erase(name);
      break;
    case 1: {
      constexpr std::string_view kNames[] = {"encoder.2.weight",     "members.7.offset",
                                             "members.65535.offset", "encoder.-1.weight",
                                             "layers.2.weight",      "members.0.encoder.0.weight"};
      const Tensor copy = tensor;
      file.tensors[once_in(2, random) ? odd_name(random) : std::string(one_of(kNames, random))] =
          copy;
      break;
    }
    case 2:
      damage_shape(tensor, random);
      if (once_in(2, random)) fill_shape(tensor);
      break;
    default:
      damage_values(tensor, random);
  }
}

void damage_metadata(TensorFile& file, Random& random) {
  auto chosen = file.metadata.begin();
  std::advance(chosen, static_cast<std::ptrdiff_t>(random.below(file.metadata.size())));
  std::string& value = chosen->second;
  if (value.starts_with('{') || value.starts_with('[')) {
    JsonText json = json_text(parse_json(value, "metadata"));
    for (std::uint64_t i = random.below(2) + 1; i > 0; --i) damage(json, random);
    value = to_string(json);
  } else if (once_in(3, random)) {
    file.metadata.erase(chosen);
  } else {
    value = once_in(2, random) ? odd_name(random) : extreme_number(random);
  }
}

template <typename T>
void append(std::string& data, const std::vector<float>& values) {
  for (const float value : values) {
    const auto stored = static_cast<T>(value);
    char bytes[sizeof(T)];
    std::memcpy(bytes, &stored, sizeof(T));
    data.append(bytes, sizeof(T));
  }
}

JsonText header_entry(const char* type, const Tensor& tensor, std::size_t begin, std::size_t end) {
  JsonText shape = array({});
  for (const std::int64_t size : tensor.shape) shape.elements.push_back(number(size));
  return object({{"dtype", text(type)},
                 {"shape", std::move(shape)},
                 {"data_offsets", array({number(static_cast<std::int64_t>(begin)),
                                         number(static_cast<std::int64_t>(end))})}});
}

/// What write_tensors writes, of tensors that it would refuse too.
std::string bytes_of(const TensorFile& file, Random& random) {
  std::string data;
  JsonText tensors = object({});
  for (const auto& [name, tensor] : file.tensors) {
    const std::size_t begin = data.size();
    const bool is_double = once_in(10, random);
    if (is_double) {
      append<double>(data, tensor.values);
    } else {
      append<float>(data, tensor.values);
    }
    tensors.add(name, header_entry(is_double ? "F64" : "F32", tensor, begin, data.size()));
  }
  JsonText metadata = object({});
  for (const auto& [key, value] : file.metadata) {
    if (key != kDataChecksum) metadata.add(key, text(value));
  }
  if (!once_in(30, random)) metadata.add(kDataChecksum, text(sha256_hex(data)));
  JsonText header = object({{"__metadata__", std::move(metadata)}});
  for (std::size_t i = 0; i < tensors.elements.size(); ++i) {
    header.keys.push_back(tensors.keys[i]);
    header.elements.push_back(std::move(tensors.elements[i]));
  }
  if (once_in(6, random)) damage(header, random);
  std::string text_of_header = to_string(header);
  text_of_header.append((8 - text_of_header.size() % 8) % 8, ' ');
  std::uint64_t size = text_of_header.size();
  if (once_in(40, random)) size = random() >> random.below(64);
  std::string bytes(sizeof(size), '\0');
  std::memcpy(bytes.data(), &size, sizeof(size));
  return bytes + text_of_header + data;
}

}  // namespace

std::string make_model(Random& random) {
  static const std::vector<TensorFile> valid = valid_models();
  TensorFile file = one_of(valid, random);
  if (!once_in(4, random)) {
    for (std::uint64_t i = random.below(3) + 1; i > 0 && !file.tensors.empty(); --i) {
      damage_tensors(file, random);
    }
  }
  if (once_in(4, random)) damage_metadata(file, random);
  std::string bytes = bytes_of(file, random);
  if (once_in(30, random)) damage_bytes(bytes, random);
  return bytes;
}

}  // namespace neuroshard::fuzz
