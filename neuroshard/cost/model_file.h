// Model files of every kind: the parts that their readers and writers share.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "neuroshard/cost/compute/compute_network.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/io/safetensors.h"

namespace neuroshard {

inline constexpr const char* kModelFormat = "neuroshard/model/1";

/// A model file under examination: its entries by name, with errors that name file and entry.
class ModelFile {
 public:
  /// Throws InputError if the file cannot be read, or is not of the model format of this build.
  explicit ModelFile(const std::string& path);

  /// "compute" or "communication".
  [[nodiscard]] const std::string& kind() const { return metadata("kind"); }

  [[nodiscard]] const std::string& metadata(const std::string& key) const;
  /// Whether there is such an entry, for those that a file may lack.
  [[nodiscard]] bool has_metadata(const std::string& key) const {
    return file_.metadata.contains(key);
  }
  /// Throws InputError unless the entry has this value.
  void expect(const std::string& key, const std::string& value) const;
  /// An entry that is a JSON document.
  [[nodiscard]] Json json(const std::string& key) const;
  /// An entry that is a JSON object of numbers.
  [[nodiscard]] std::map<std::string, double> numbers(const std::string& key) const;
  /// The name of an entry in errors.
  [[nodiscard]] std::string place(const std::string& key) const;

  [[nodiscard]] bool has(const std::string& name) const { return file_.tensors.contains(name); }
  /// 1 + the largest N of tensors named "prefix.N.something"; 0 if there are none.
  [[nodiscard]] std::size_t count_numbered(std::string_view prefix) const;
  [[nodiscard]] const Tensor& tensor(const std::string& name, std::size_t dimensions) const;
  [[nodiscard]] std::vector<float> vector(const std::string& name, std::size_t size) const;
  /// NAME.weight and NAME.bias.
  [[nodiscard]] DenseLayer layer(const std::string& name, int inputs) const;
  /// Fails if one of the values of a tensor is negative.
  void expect_no_negative(const std::string& name) const;

  [[noreturn]] void fail(const std::string& place, const std::string& expected,
                         const std::string& actual) const;

 private:
  std::string path_;
  TensorFile file_;
};

[[nodiscard]] Tensor vector_tensor(const std::vector<float>& values);
/// Adds NAME.weight (outputs x inputs, row-major) and NAME.bias.
void add_layer(TensorFile& file, const std::string& name, const DenseLayer& layer);
[[nodiscard]] Json to_json(const std::map<std::string, double>& numbers);

}  // namespace neuroshard
