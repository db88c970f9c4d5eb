// Entries of model files.
#include "neuroshard/cost/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "neuroshard/core/error.h"
#include "neuroshard/io/json/json_reader.h"

namespace neuroshard {

namespace {

/// Row-major (as files have it) from column-major, or back with rows and columns exchanged.
std::vector<float> transposed(const std::vector<float>& values, int rows, int columns) {
  std::vector<float> result(values.size());
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      result[static_cast<std::size_t>(row) * columns + column] =
          values[static_cast<std::size_t>(column) * rows + row];
    }
  }
  return result;
}

}  // namespace

ModelFile::ModelFile(const std::string& path) : path_(path), file_(read_tensors(path)) {
  expect("format", kModelFormat);
}

const std::string& ModelFile::metadata(const std::string& key) const {
  const auto entry = file_.metadata.find(key);
  if (entry == file_.metadata.end()) fail("__metadata__." + key, "an entry", "none");
  return entry->second;
}

void ModelFile::expect(const std::string& key, const std::string& value) const {
  if (metadata(key) != value) {
    fail("__metadata__." + key, "\"" + value + "\"", describe(Json(metadata(key))));
  }
}

std::string ModelFile::place(const std::string& key) const {
  return path_ + ": __metadata__." + key;
}

Json ModelFile::json(const std::string& key) const { return parse_json(metadata(key), place(key)); }

std::map<std::string, double> ModelFile::numbers(const std::string& key) const {
  std::map<std::string, double> result;
  const Json object = json(key);
  JsonReader(object, place(key))
      .for_each_field(
          [&](const std::string& name, const JsonReader& value) { result[name] = value.number(); });
  return result;
}

const Tensor& ModelFile::tensor(const std::string& name, std::size_t dimensions) const {
  const auto entry = file_.tensors.find(name);
  if (entry == file_.tensors.end()) fail(name, "a tensor", "none");
  if (entry->second.shape.size() != dimensions) {
    fail(name, fmt::format("{} dimensions", dimensions),
         fmt::format("{}", entry->second.shape.size()));
  }
  return entry->second;
}

std::vector<float> ModelFile::vector(const std::string& name, std::size_t size) const {
  const Tensor& found = tensor(name, 1);
  if (found.values.size() != size) {
    fail(name, fmt::format("{} elements", size), fmt::format("{}", found.values.size()));
  }
  return found.values;
}

std::size_t ModelFile::count_numbered(std::string_view prefix) const {
  std::size_t count = 0;
  for (const auto& [name, tensor] : file_.tensors) {
    if (!name.starts_with(prefix) || name.size() <= prefix.size() || name[prefix.size()] != '.') {
      continue;
    }
    const char* end = name.data() + name.size();
    std::uint16_t number = 0;
    const auto [at, status] = std::from_chars(name.data() + prefix.size() + 1, end, number);
    if (status == std::errc{} && at != end && *at == '.') {
      count = std::max<std::size_t>(count, number + 1U);
    }
  }
  return count;
}

DenseLayer ModelFile::layer(const std::string& name, int inputs) const {
  const Tensor& weight = tensor(name + ".weight", 2);
  if (weight.shape[1] != inputs) {
    fail(name + ".weight", fmt::format("{} inputs", inputs), fmt::format("{}", weight.shape[1]));
  }
  const auto outputs = static_cast<int>(weight.shape[0]);
  return {inputs, outputs, transposed(weight.values, inputs, outputs),
          vector(name + ".bias", outputs)};
}

void ModelFile::expect_no_negative(const std::string& name) const {
  for (const float value : file_.tensors.at(name).values) {
    if (value < 0.0F) fail(name, "no value below 0", fmt::format("{}", value));
  }
}

void ModelFile::fail(const std::string& place, const std::string& expected,
                     const std::string& actual) const {
  throw InputError(path_ + ": " + place, expected, actual);
}

Tensor vector_tensor(const std::vector<float>& values) {
  return {{static_cast<std::int64_t>(values.size())}, values};
}

void add_layer(TensorFile& file, const std::string& name, const DenseLayer& layer) {
  file.tensors[name + ".weight"] = {{layer.outputs, layer.inputs},
                                    transposed(layer.weights, layer.outputs, layer.inputs)};
  file.tensors[name + ".bias"] = vector_tensor(layer.bias);
}

Json to_json(const std::map<std::string, double>& numbers) {
  Json::Object object;
  for (const auto& [name, value] : numbers) object.push_back({name, value});
  return object;
}

}  // namespace neuroshard
