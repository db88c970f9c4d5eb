// safetensors: the golden file, the round trip, and hostile files.
#include "neuroshard/io/safetensors.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "io_test_util.h"

namespace neuroshard {
namespace {

TensorFile golden_file() {
  TensorFile file;
  file.metadata = {{"format", "neuroshard/model/1"}, {"hardware", "CPU \"é\"\n"}};
  file.tensors["encoder.0.weight"] = {{2, 3}, {1.0f, -2.5f, 0.0f, -0.0f, 1e-45f, 3.4e38f}};
  file.tensors["encoder.0.bias"] = {{2}, {0.1f, 0.2f}};
  file.tensors["empty"] = {{0, 4}, {}};
  file.tensors["scalar"] = {{}, {7.0f}};
  return file;
}

/// A file with this header and these data.
std::string file_bytes(std::string_view header, std::string_view data) {
  const std::uint64_t size = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &size, 8);
  return bytes.append(header).append(data);
}

std::string tensors_error(const std::string& bytes,
                          ChecksumPolicy policy = ChecksumPolicy::if_present) {
  return input_error([&] { (void)parse_tensors(bytes, "f", policy); });
}

TEST(Safetensors, GoldenFile) {
  const std::string written = tensor_bytes(golden_file());
  const std::string bytes = golden("model.safetensors", written);
  EXPECT_EQ(written, bytes);
  TensorFile file = parse_tensors(bytes, "f");
  EXPECT_EQ(file.metadata.erase(std::string(kDataChecksum)), 1u);
  EXPECT_EQ(file, golden_file());
  EXPECT_TRUE(std::signbit(file.tensors["encoder.0.weight"].values[3]));
}

TEST(Safetensors, DataAreAlignedTo8Bytes) {
  TensorFile file;
  for (int i = 0; i < 8; ++i) {
    file.metadata["pad"] += 'x';
    std::uint64_t size = 0;
    const std::string bytes = tensor_bytes(file);
    std::memcpy(&size, bytes.data(), 8);
    EXPECT_EQ(size % 8, 0u);
  }
}

TEST(Safetensors, ReadsAndWritesFiles) {
  const TemporaryFolder folder;
  write_tensors(golden_file(), folder.file("model.safetensors"));
  EXPECT_EQ(read_tensors(folder.file("model.safetensors")).tensors, golden_file().tensors);
}

TEST(Safetensors, ReadsDoublesAsFloats) {
  const double values[] = {0.1, -2.0};
  std::string data(sizeof(values), '\0');
  std::memcpy(data.data(), values, sizeof(values));
  const std::string header = R"({"a": {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}})";
  const TensorFile file = parse_tensors(file_bytes(header, data), "f", ChecksumPolicy::if_present);
  EXPECT_EQ(file.tensors.at("a").values, (std::vector<float>{0.1f, -2.0f}));
  const double large[] = {0.1, 1e300};
  std::memcpy(data.data(), large, sizeof(large));
  EXPECT_EQ(tensors_error(file_bytes(header, data)),
            "f: a[1]: expected a finite number that a float can hold, got 1e+300");
}

TEST(Safetensors, ChecksumsGuardTheData) {
  std::string bytes = tensor_bytes(golden_file());
  bytes.back() ^= 1;
  EXPECT_THAT(tensors_error(bytes),
              testing::MatchesRegex("f: __metadata__.data_sha256: expected [0-9a-f]+, got "
                                    "\"[0-9a-f]+\""));
  const std::string without = file_bytes("{}", "");
  EXPECT_NO_THROW((void)parse_tensors(without, "f", ChecksumPolicy::if_present));
  EXPECT_EQ(tensors_error(without, ChecksumPolicy::required),
            "f: __metadata__.data_sha256: expected the checksum of the tensors, got nothing");
}

TEST(Safetensors, RefusesToWriteWhatItWouldNotRead) {
  TensorFile file;
  file.tensors["a"] = {{2, 2}, {1.0f}};
  EXPECT_EQ(input_error([&] { (void)tensor_bytes(file); }),
            "a: expected 4 values to fill its shape, got 1");
  file.tensors["a"] = {{1}, {std::numeric_limits<float>::infinity()}};
  EXPECT_EQ(input_error([&] { (void)tensor_bytes(file); }),
            "a[0]: expected a finite number that a float can hold, got inf");
  file.tensors = {{"__metadata__", {{1}, {1.0f}}}};
  EXPECT_EQ(input_error([&] { (void)tensor_bytes(file); }),
            "tensors: expected another name, got \"__metadata__\"");
}

TEST(Safetensors, RefusesHostileHeaderSizes) {
  EXPECT_EQ(tensors_error(""), "f: expected a safetensors file, of at least 8 bytes, got 0 bytes");
  EXPECT_EQ(tensors_error("1234567"),
            "f: expected a safetensors file, of at least 8 bytes, got 7 bytes");
  EXPECT_EQ(tensors_error(std::string(8, '\xff')),
            "f: header size: expected at most 0 bytes, got 18446744073709551615");
  std::string bytes = file_bytes("{}", "");
  bytes[0] = 3;
  EXPECT_EQ(tensors_error(bytes), "f: header size: expected at most 2 bytes, got 3");
  EXPECT_EQ(tensors_error(file_bytes("", "")), "f: header: expected JSON, got nothing");
  EXPECT_EQ(tensors_error(file_bytes("[]", "")), "f: expected an object, got an empty array");
}

const std::string kValidTensors =
    R"({"__metadata__": {"k": "v"}, "a": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]}, "b": {"dtype": "F32", "shape": [], "data_offsets": [8, 12]}})";

const Malformed kMalformedTensors[] = {
    {"{\"k\": \"v\"}", "{\"k\": 1}", "f: __metadata__.k: expected a string, got 1"},
    {"{\"k\": \"v\"}", "[]", "f: __metadata__: expected an object, got an empty array"},
    {"\"b\"", "\"a\"", "f: header: a: expected this field once, got it more than once"},
    {"\"F32\", \"shape\": []", "\"I64\", \"shape\": []",
     "f: b.dtype: expected \"F32\" or \"F64\", got \"I64\""},
    {"\"shape\": [], ", "", "f: b.shape: expected this required field, got nothing"},
    {"\"shape\": []", "\"shape\": [], \"strides\": []",
     "f: b: expected no fields but dtype, shape, data_offsets, got \"strides\""},
    {"[2, 1]", "[3, 1]",
     "f: a.data_offsets: expected 12 bytes as the shape has 3 values, got [0, 8]"},
    {"[2, 1]", "[-2, -1]",
     "f: a.shape[0]: expected an integer between 0 and 9223372036854775807, got -2"},
    {"[2, 1]", "[4294967296, 4294967296]",
     "f: a.shape: expected a product of at most 2^48 values, got a larger one"},
    {"[2, 1]", "[9223372036854775807, 4]",
     "f: a.shape: expected a product of at most 2^48 values, got a larger one"},
    {"[0, 8]", "[8, 0]",
     "f: a.data_offsets: expected 8 bytes as the shape has 2 values, got [8, 0]"},
    {"[0, 8]", "[0, 8, 8]", "f: a.data_offsets: expected a pair [begin, end], got an array of 3"},
    {"[0, 8]", "[1, 9]",
     "f: a.data_offsets: expected a begin of 0, where the tensor before ends, got 1"},
    {"[0, 8]", "[4, 12]",
     "f: a.data_offsets: expected a begin of 0, where the tensor before ends, got 4"},
    {"[8, 12]", "[4, 8]",
     "f: b.data_offsets: expected a begin of 8, where the tensor before ends, got 4"},
    {"[8, 12]", "[12, 16]", "f: b.data_offsets[1]: expected an integer between 0 and 12, got 16"},
    {", \"b\": {\"dtype\": \"F32\", \"shape\": [], \"data_offsets\": [8, 12]}", "",
     "f: expected 8 bytes of tensor data, got 12"},
    {"\"a\"", "a",
     "f: header, column 30: expected string literal, got invalid literal in \"\\\"v\\\"}, a\""},
};

TEST(Safetensors, RefusesMalformedHeaders) {
  const std::string data(12, '\0');
  EXPECT_NO_THROW(
      (void)parse_tensors(file_bytes(kValidTensors, data), "f", ChecksumPolicy::if_present));
  for (const Malformed& variant : kMalformedTensors) {
    const std::string header = replaced(kValidTensors, variant.from, variant.to);
    EXPECT_EQ(tensors_error(file_bytes(header, data)), variant.message);
  }
  std::string with_nan = data;
  const float nan = std::nanf("");
  std::memcpy(with_nan.data() + 4, &nan, 4);
  EXPECT_EQ(tensors_error(file_bytes(kValidTensors, with_nan)),
            "f: a[1]: expected a finite number that a float can hold, got nan");
}

TEST(Safetensors, RefusesEveryTruncation) {
  const std::string bytes = tensor_bytes(golden_file());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(tensors_error(bytes.substr(0, size)), "no error") << size;
  }
}

RC_GTEST_PROP(Safetensors, ReadsBackBitForBit, ()) {
  TensorFile file;
  for (int i = *rc::gen::inRange(0, 5); i > 0; --i) {
    Tensor tensor;
    std::int64_t num_values = 1;
    for (int rank = *rc::gen::inRange(0, 4); rank > 0; --rank) {
      tensor.shape.push_back(*rc::gen::inRange(0, 6));
      num_values *= tensor.shape.back();
    }
    tensor.values = *rc::gen::container<std::vector<float>>(
        static_cast<std::size_t>(num_values),
        rc::gen::map(rc::gen::inRange(-(1 << 24), 1 << 24),
                     [](int value) { return std::ldexp(static_cast<float>(value), -10); }));
    file.tensors["tensor " + std::to_string(i)] = tensor;
  }
  const std::string bytes = tensor_bytes(file);
  const TensorFile back = parse_tensors(bytes, "f");
  RC_ASSERT(back.tensors == file.tensors);
  RC_ASSERT(tensor_bytes(back) == bytes);
}

}  // namespace
}  // namespace neuroshard
