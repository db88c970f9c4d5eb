// Model files: they are read back bit for bit, and every kind of damage is refused in one line that
// names the file and the place.
#include "neuroshard/cost/compute/compute_model_io.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "neuroshard/io/checksum.h"
#include "neuroshard/io/safetensors.h"
#include "tests/cost/arbitrary_network.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

using testing_networks::random_model;

constexpr auto kLoads = ComputeArchitecture::bounded_loads;
constexpr auto kPublished = ComputeArchitecture::published;

void expect_same(const DenseLayer& a, const DenseLayer& b) {
  EXPECT_EQ(a.inputs, b.inputs);
  EXPECT_EQ(a.outputs, b.outputs);
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.bias, b.bias);
}

void expect_same(const ComputeNetwork& a, const ComputeNetwork& b) {
  EXPECT_EQ(a.architecture, b.architecture);
  EXPECT_EQ(a.schema, b.schema);
  EXPECT_EQ(a.estimate.offset_ms, b.estimate.offset_ms);
  EXPECT_EQ(a.estimate.weights_ms, b.estimate.weights_ms);
  EXPECT_EQ(a.feature_mean, b.feature_mean);
  EXPECT_EQ(a.feature_scale, b.feature_scale);
  ASSERT_EQ(a.encoder.size(), b.encoder.size());
  for (std::size_t i = 0; i < a.encoder.size(); ++i) expect_same(a.encoder[i], b.encoder[i]);
  expect_same(a.head, b.head);
  EXPECT_EQ(a.head_output, b.head_output);
  EXPECT_EQ(a.linear, b.linear);
  EXPECT_EQ(a.offset, b.offset);
  EXPECT_EQ(a.rowwise_adagrad_offset, b.rowwise_adagrad_offset);
  EXPECT_EQ(a.widest_factors, b.widest_factors);
}

void expect_same(const TrainedRange& a, const TrainedRange& b) {
  EXPECT_EQ(a.min_batch_size, b.min_batch_size);
  EXPECT_EQ(a.max_batch_size, b.max_batch_size);
  EXPECT_EQ(a.min_columns, b.min_columns);
  EXPECT_EQ(a.max_columns, b.max_columns);
  EXPECT_EQ(a.min_embeddings, b.min_embeddings);
  EXPECT_EQ(a.max_embeddings, b.max_embeddings);
  EXPECT_EQ(a.min_pooling_factor, b.min_pooling_factor);
  EXPECT_EQ(a.max_pooling_factor, b.max_pooling_factor);
  EXPECT_EQ(a.max_hits_per_row, b.max_hits_per_row);
  EXPECT_EQ(a.max_pieces, b.max_pieces);
  EXPECT_EQ(a.optimizers, b.optimizers);
  EXPECT_EQ(a.data_types, b.data_types);
}

TEST(ComputeModelIo, ReadsBackBitForBit) {
  const TemporaryFolder folder;
  const std::string path = folder.file("m.safetensors");
  for (const ComputeArchitecture architecture : {kLoads, kPublished}) {
    const auto written = random_model(architecture, 5);
    write_compute_model(*written, path);
    const auto read = read_compute_model(path);
    ASSERT_EQ(read->members().size(), written->members().size());
    for (std::size_t m = 0; m < read->members().size(); ++m) {
      expect_same(read->members()[m], written->members()[m]);
    }
    expect_same(read->info().range, written->info().range);
    EXPECT_EQ(read->name(), "random");
    EXPECT_EQ(read->info().hardware, written->info().hardware);
    EXPECT_EQ(read->info().operator_info, written->info().operator_info);
    EXPECT_EQ(read->info().data_sha256, written->info().data_sha256);
    EXPECT_EQ(read->info().metrics, written->info().metrics);
    EXPECT_EQ(read->info().model_sha256, sha256_file(path));
    EXPECT_FALSE(read->is_estimate());
  }
  EXPECT_EQ(folder.num_files(), 1u);
}

TEST(ComputeModelIo, TheSameModelGivesTheSameBytes) {
  const TemporaryFolder folder;
  write_compute_model(*random_model(kLoads, 5), folder.file("a.safetensors"));
  const auto read = read_compute_model(folder.file("a.safetensors"));
  write_compute_model(*read, folder.file("b.safetensors"));
  EXPECT_EQ(read_file(folder.file("a.safetensors")), read_file(folder.file("b.safetensors")));
}

TEST(ComputeModelIo, MatricesAreRowMajorInTheFile) {
  const TemporaryFolder folder;
  const auto model = random_model(kPublished, 3);  // of one network
  write_compute_model(*model, folder.file("m.safetensors"));
  const TensorFile file = read_tensors(folder.file("m.safetensors"));
  const DenseLayer& head = model->members().front().head;
  const Tensor& weight = file.tensors.at("head.weight");
  EXPECT_EQ(weight.shape, (std::vector<std::int64_t>{head.outputs, head.inputs}));
  EXPECT_EQ(weight.values[1], head.weights[head.outputs]);  // row 0, column 1
}

/// A change to a valid file's contents, and the message after the path.
struct Damage {
  std::function<void(TensorFile&)> change;
  std::string message;
};

Damage metadata(const std::string& key, const std::string& value, const std::string& message) {
  return {[=](TensorFile& f) { f.metadata[key] = value; }, "__metadata__." + key + message};
}

Damage no_metadata(const std::string& key) {
  return {[=](TensorFile& f) { f.metadata.erase(key); },
          "__metadata__." + key + ": expected an entry, got none"};
}

Damage tensor(const std::string& name, const std::vector<std::int64_t>& shape,
              const std::string& message) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return {[=](TensorFile& f) {
            f.tensors[name] = {shape, std::vector<float>(static_cast<std::size_t>(count), 0.5F)};
          },
          name + ": " + message};
}

Damage no_tensor(const std::string& name) {
  return {[=](TensorFile& f) { f.tensors.erase(name); }, name + ": expected a tensor, got none"};
}

Damage negative(const std::string& name) {
  return {[=](TensorFile& f) { f.tensors.at(name).values.back() = -0.25F; },
          name + ": expected no value below 0, got -0.25"};
}

/// A seed of 3 gives a model of one network, 5 an ensemble of three.
void expect_refusals(ComputeArchitecture architecture, const std::vector<Damage>& cases,
                     std::uint64_t seed = 3) {
  const TemporaryFolder folder;
  const std::string path = folder.file("m.safetensors");
  write_compute_model(*random_model(architecture, seed), path);
  const TensorFile whole = read_tensors(path);
  for (const Damage& damage : cases) {
    TensorFile damaged = whole;
    damage.change(damaged);
    write_tensors(damaged, path);
    EXPECT_EQ(input_error([&] { (void)read_compute_model(path); }), path + ": " + damage.message);
  }
}

TEST(ComputeModelIo, TheSpeedOfTheReferenceSetsIsReadBackAndChecked) {
  const TemporaryFolder folder;
  const std::string path = folder.file("m.safetensors");
  const auto plain = random_model(kLoads, 5);
  ComputeModelInfo info = plain->info();
  info.reference_ms = {{"reference-0", 1.25}, {"reference-1", 1.5}};
  write_compute_model(NeuralComputeModel(plain->members(), info), path);
  EXPECT_EQ(read_compute_model(path)->info().reference_ms, info.reference_ms);
  write_compute_model(*plain, path);
  EXPECT_TRUE(read_compute_model(path)->info().reference_ms.empty());
  expect_refusals(kLoads, {metadata("reference_ms", R"({"reference-1":0})",
                                    ": [\"reference-1\"]: expected a number above 0, got 0"),
                           metadata("reference_ms", R"({"reference-1":"fast"})",
                                    ": [\"reference-1\"]: expected a number, got \"fast\"")});
}

TEST(ComputeModelIo, RefusesWhatThisBuildDoesNotHave) {
  expect_refusals(
      kLoads, {metadata("format", "neuroshard/model/2",
                        ": expected \"neuroshard/model/1\", got \"neuroshard/model/2\""),
               metadata("kind", "communication", ": expected \"compute\", got \"communication\""),
               metadata("architecture", "transformer",
                        ": expected \"published\" or \"bounded-loads\", got \"transformer\""),
               metadata("feature_schema", "shard/extended/1",
                        ": expected \"shard/published/1\" or \"shard/work/1\", got "
                        "\"shard/extended/1\"")});
}

TEST(ComputeModelIo, RefusesFeaturesOfAnotherArchitecture) {
  expect_refusals(kLoads, {metadata("feature_schema", "shard/published/1",
                                    ": expected \"shard/work/1\" with this architecture, got "
                                    "\"shard/published/1\"")});
  expect_refusals(kPublished, {metadata("feature_schema", "shard/work/1",
                                        ": expected \"shard/published/1\" with this architecture, "
                                        "got \"shard/work/1\"")});
}

TEST(ComputeModelIo, OffsetsOfRowwiseAdagradAreReadBackAndChecked) {
  const TemporaryFolder folder;
  const std::string path = folder.file("m.safetensors");
  std::vector<ComputeNetwork> members = random_model(kLoads, 5)->members();
  for (ComputeNetwork& member : members) {
    member.offset = static_cast<float>(member.estimate.offset_ms);
    member.rowwise_adagrad_offset = 2.0F * member.offset;
  }
  write_compute_model({members, testing_networks::wide_info()}, path);
  const auto read = read_compute_model(path);
  EXPECT_TRUE(read->has_optimizer_offsets());
  ASSERT_EQ(read->members().size(), members.size());
  for (std::size_t m = 0; m < members.size(); ++m) expect_same(read->members()[m], members[m]);

  const TensorFile whole = read_tensors(path);
  const std::string at = path + ": members.1.rowwise_adagrad_offset";
  for (const float of_sgds : {0.5F, 4.5F, -1.0F}) {
    TensorFile damaged = whole;
    damaged.tensors["members.1.rowwise_adagrad_offset"] =
        vector_tensor({of_sgds * members[1].offset});
    write_tensors(damaged, path);
    EXPECT_THAT(input_error([&] { (void)read_compute_model(path); }), testing::StartsWith(at));
  }
  TensorFile damaged = whole;
  damaged.tensors.erase("members.1.rowwise_adagrad_offset");
  write_tensors(damaged, path);
  EXPECT_EQ(input_error([&] { (void)read_compute_model(path); }),
            at + ": expected a tensor of all networks or of none, got of some");
}

TEST(ComputeModelIo, FactorsOfTheWidestPieceAreReadBackAndChecked) {
  const TemporaryFolder folder;
  const std::string path = folder.file("m.safetensors");
  std::vector<ComputeNetwork> members = random_model(kLoads, 5)->members();
  for (ComputeNetwork& member : members) {
    member.widest_factors = testing_networks::random_widest_factors(members.size());
  }
  const NeuralComputeModel written(members, testing_networks::wide_info());
  write_compute_model(written, path);
  const auto read = read_compute_model(path);
  ASSERT_EQ(read->members().size(), members.size());
  for (std::size_t m = 0; m < members.size(); ++m) expect_same(read->members()[m], members[m]);

  const TensorFile whole = read_tensors(path);
  const auto refusal = [&](const std::vector<float>& factors) {
    TensorFile damaged = whole;
    damaged.tensors["members.1.widest_factors"] = vector_tensor(factors);
    write_tensors(damaged, path);
    return input_error([&] { (void)read_compute_model(path); });
  };
  const std::string at = path + ": members.1.widest_factors";
  EXPECT_EQ(refusal({0.5F, 0.5F, 0.75F, 0.7F, 1.0F, 1.0F}),
            at + "[3]: expected a number from 0.75 to 1, got 0.7");
  EXPECT_EQ(refusal({0.2F, 0.5F, 0.75F, 1.0F, 1.0F, 1.0F}),
            at + "[0]: expected a number from 0.25 to 1, got 0.2");
  EXPECT_EQ(refusal({0.5F, 0.5F, 0.5F, 0.5F, 0.5F, 0.5F}), at + "[5]: expected 1, got 0.5");
  TensorFile damaged = whole;
  damaged.tensors.erase("members.1.widest_factors");
  write_tensors(damaged, path);
  EXPECT_EQ(input_error([&] { (void)read_compute_model(path); }),
            at + ": expected a tensor of all networks or of none, got of some");
}

TEST(ComputeModelIo, RefusesIncompleteMetadata) {
  std::vector<Damage> cases;
  for (const char* key : {"format", "kind", "name", "architecture", "feature_schema", "hardware",
                          "operator", "training_data_sha256", "range", "metrics"}) {
    cases.push_back(no_metadata(key));
  }
  expect_refusals(kLoads, cases);
}

TEST(ComputeModelIo, RefusesMalformedMetadata) {
  const std::string range =
      R"({"min_batch_size":1,"max_batch_size":9,"min_columns":4,"max_columns":128,)"
      R"("min_embeddings":1,"max_embeddings":10,"min_pooling_factor":0.5,)"
      R"("max_pooling_factor":2.5,"max_hits_per_row":100.0,"max_pieces":15,)";
  expect_refusals(
      kLoads,
      {metadata("range", R"({"min_batch_size":1})",
                ": max_batch_size: expected this required field, got nothing"),
       metadata("range", replaced(range, "\"min_columns\":4", "\"min_columns\":0") + "\"x\":0}",
                ": min_columns: expected an integer between 1 and 9223372036854775807, got 0"),
       metadata("range", range + R"("optimizers":["adam"],"data_types":[]})",
                ": optimizers[0]: expected sgd or rowwise_adagrad, got \"adam\""),
       metadata("range", range + R"("optimizers":["sgd"],"data_types":["int8"]})",
                ": data_types[0]: expected fp32 or fp16, got \"int8\""),
       metadata("metrics", R"({"mape":"low"})", ": mape: expected a number, got \"low\"")});
}

/// `calibrate` measures within the range: one with nothing in it has no sets to measure.
TEST(ComputeModelIo, RefusesARangeThatNothingIsIn) {
  const std::string range =
      R"({"min_batch_size":8,"max_batch_size":8,"min_columns":4,"max_columns":4,)"
      R"("min_embeddings":20,"max_embeddings":20,"min_pooling_factor":2.5,)"
      R"("max_pooling_factor":2.5,"max_hits_per_row":100.0,"max_pieces":15,)"
      R"("optimizers":["sgd"],"data_types":["fp32"]})";
  const auto damaged = [&](const std::string& from, const std::string& to,
                           const std::string& message) {
    return metadata("range", replaced(range, from, to), message);
  };
  expect_refusals(
      kLoads,
      {damaged("\"max_batch_size\":8", "\"max_batch_size\":7",
               ": max_batch_size: expected an integer between 8 and 9223372036854775807, got 7"),
       damaged("\"max_columns\":4", "\"max_columns\":3",
               ": max_columns: expected an integer between 4 and 9223372036854775807, got 3"),
       damaged("\"max_embeddings\":20", "\"max_embeddings\":19",
               ": max_embeddings: expected an integer between 20 and 9223372036854775807, got 19"),
       damaged("\"max_pooling_factor\":2.5", "\"max_pooling_factor\":2.25",
               ": max_pooling_factor: expected a number of at least 2.5, got 2.25"),
       damaged("[\"sgd\"]", "[]",
               ": optimizers: expected at least one optimizer, got an empty array"),
       damaged("[\"fp32\"]", "[]",
               ": data_types: expected at least one data type, got an empty array")});
  // A single value is a range.
  const TemporaryFolder folder;
  const std::string path = folder.file("m.safetensors");
  write_compute_model(*random_model(kLoads, 3), path);
  TensorFile file = read_tensors(path);
  file.metadata["range"] = range;
  write_tensors(file, path);
  EXPECT_EQ(read_compute_model(path)->info().range.max_columns, 4);
}

TEST(ComputeModelIo, NamesTheEntryThatIsNoJson) {
  const TemporaryFolder folder;
  const std::string path = folder.file("m.safetensors");
  write_compute_model(*random_model(kLoads, 5), path);
  const TensorFile whole = read_tensors(path);
  for (const std::string key : {"hardware", "operator", "range", "metrics"}) {
    TensorFile damaged = whole;
    damaged.metadata[key] = "{\n\"a\": ";
    write_tensors(damaged, path);
    const std::string message = input_error([&] { (void)read_compute_model(path); });
    EXPECT_THAT(message, testing::StartsWith(
                             fmt::format("{}: __metadata__.{}: line 2, column ", path, key)));
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

TEST(ComputeModelIo, RefusesMissingTensors) {
  expect_refusals(
      kLoads, {no_tensor("feature_mean"), no_tensor("feature_scale"), no_tensor("encoder.0.weight"),
               no_tensor("encoder.1.bias"), no_tensor("head.weight"), no_tensor("head.bias"),
               no_tensor("head_output"), no_tensor("linear"), no_tensor("offset"),
               no_tensor("estimate.weights"), no_tensor("estimate.offset")});
  expect_refusals(kPublished, {no_tensor("feature_mean"), no_tensor("head.bias")});
}

TEST(ComputeModelIo, RefusesIncompleteEnsembles) {
  expect_refusals(kLoads,
                  {no_tensor("members.0.encoder.0.weight"),
                   no_tensor("members.1.head.weight"),
                   no_tensor("members.2.head.bias"),
                   no_tensor("members.2.offset"),
                   negative("members.1.linear"),
                   negative("members.2.offset"),
                   {[](TensorFile& file) {
                      std::erase_if(file.tensors, [](const auto& named) {
                        return named.first.starts_with("members.1.") ||
                               named.first.starts_with("members.2.");
                      });
                    },
                    "members: expected two or more networks, got one"}},
                  5);
}

TEST(ComputeModelIo, RefusesWrongShapes) {
  // The network has layers of 12, 8 and 5 outputs, and a head of 9 units.
  const auto features = static_cast<std::int64_t>(feature_names(FeatureSchema::work).size());
  const auto terms = static_cast<std::int64_t>(work_terms().size());
  const auto expected = [](std::int64_t count, const char* what, std::int64_t actual) {
    return fmt::format("expected {} {}, got {}", count, what, actual);
  };
  expect_refusals(kLoads,
                  {tensor("feature_mean", {33}, expected(features, "elements", 33)),
                   tensor("feature_scale", {features, 1}, "expected 1 dimensions, got 2"),
                   tensor("encoder.0.weight", {12, 33}, expected(features, "inputs", 33)),
                   tensor("encoder.1.weight", {8, 13}, "expected 12 inputs, got 13"),
                   tensor("encoder.1.bias", {9}, "expected 8 elements, got 9"),
                   tensor("encoder.2.weight", {5, 8}, expected(features + 8, "inputs", 8)),
                   tensor("encoder.2.weight", {5, 42, 1}, "expected 2 dimensions, got 3"),
                   tensor("head.weight", {9, 6}, "expected 5 inputs, got 6"),
                   tensor("head.bias", {1}, "expected 9 elements, got 1"),
                   tensor("head_output", {10}, "expected 9 elements, got 10"),
                   tensor("linear", {4}, "expected 5 elements, got 4"),
                   tensor("offset", {2}, "expected 1 elements, got 2"),
                   tensor("estimate.weights", {terms + 1}, expected(terms, "elements", terms + 1)),
                   tensor("estimate.offset", {2}, "expected 1 elements, got 2")});
}

TEST(ComputeModelIo, RefusesLoadsThatCouldMakeACostFall) {
  expect_refusals(kLoads, {negative("head.weight"), negative("head_output"), negative("linear"),
                           negative("offset")});
}

/// Sets one value of a tensor.
Damage with_value(const std::string& name, std::size_t at, float value,
                  const std::string& message) {
  return {[=](TensorFile& f) { f.tensors.at(name).values.at(at) = value; }, message};
}

TEST(ComputeModelIo, RefusesAnEstimateThatIsNotPositive) {
  expect_refusals(kLoads, {negative("estimate.weights"),
                           with_value("estimate.weights", 0, 0.0F,
                                      "estimate.weights[0]: expected a number above 0, got 0"),
                           with_value("estimate.offset", 0, 0.0F,
                                      "estimate.offset: expected a number above 0, got 0"),
                           with_value("estimate.offset", 0, -1.0F,
                                      "estimate.offset: expected a number above 0, got -1")});
}

constexpr const char* kBroken = ": expected weights that keep the model's bounds, got others";

/// A weight of the wrong sign: of a unit that rises with the work, one below 0.
Damage wrong_sign(const std::string& name, std::size_t at) {
  return {[=](TensorFile& f) {
            float& value = f.tensors.at(name).values.at(at);
            value = value > 0.0F ? -0.5F : 0.5F;
          },
          name + kBroken};
}

Damage scaled(const std::string& name, float factor, const std::string& place) {
  return {[=](TensorFile& f) {
            for (float& value : f.tensors.at(name).values) value *= factor;
          },
          place + kBroken};
}

TEST(ComputeModelIo, RefusesEveryBrokenBound) {
  const std::size_t features = feature_names(FeatureSchema::work).size();
  expect_refusals(
      kLoads,
      {wrong_sign("encoder.0.weight", 0), wrong_sign("encoder.0.weight", 11 * features),
       wrong_sign("encoder.1.weight", 0), wrong_sign("encoder.1.weight", 7 * 12 + 11),
       wrong_sign("encoder.2.weight", 0),  // of a hidden unit
       wrong_sign("encoder.2.weight", 8),  // of a feature
       with_value("head.bias", 3, 0.25F, std::string("head.bias") + kBroken),
       scaled("linear", 0.5F, "linear"), scaled("linear", 4.0F, "head_output"),
       scaled("head_output", 1e3F, "head_output"), scaled("head.weight", 1e3F, "head_output"),
       scaled("offset", 0.01F, "offset"), scaled("offset", 100.0F, "offset")});
}

TEST(ComputeModelIo, NamesTheMemberWhoseBoundIsBroken) {
  expect_refusals(kLoads,
                  {scaled("members.1.linear", 0.5F, "members.1.linear"),
                   wrong_sign("members.2.encoder.1.weight", 0),
                   with_value("feature_scale", 1, -0.5F, std::string("feature_scale") + kBroken)},
                  5);
}

/// A last layer that is the first one too sees the features twice.
TEST(ComputeModelIo, RefusesAWrongSignOfASingleLayer) {
  const TemporaryFolder folder;
  const std::string path = folder.file("m.safetensors");
  write_compute_model(*random_model(kLoads, 3, {{4}, 2}), path);
  (void)read_compute_model(path);
  const TensorFile whole = read_tensors(path);
  const std::size_t features = feature_names(FeatureSchema::work).size();
  for (const std::size_t at : {std::size_t{0}, features}) {
    TensorFile damaged = whole;
    damaged.tensors.at("encoder.0.weight").values.at(at) = -0.5F;
    write_tensors(damaged, path);
    EXPECT_EQ(input_error([&] { (void)read_compute_model(path); }),
              path + ": encoder.0.weight" + kBroken);
  }
}

TEST(BrokenBound, RandomNetworksKeepTheirs) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto model = random_model(kLoads, seed);
    for (const ComputeNetwork& member : model->members()) {
      EXPECT_EQ(broken_bound(member), "") << seed;
    }
  }
}

TEST(ComputeModelIo, RefusesDamagedBytesAndEveryTruncation) {
  const TemporaryFolder folder;
  const std::string path = folder.file("m.safetensors");
  write_compute_model(*random_model(kLoads, 5, {{4, 3}, 2}), path);
  const std::string whole = read_file(path);
  std::string damaged = whole;
  damaged[damaged.size() - 6] ^= 1;
  write_file(path, damaged);
  const std::string message = input_error([&] { (void)read_compute_model(path); });
  EXPECT_THAT(message, testing::StartsWith(path + ": __metadata__.data_sha256: expected "));
  for (std::size_t size = 0; size < whole.size(); size += 97) {
    write_file(path, whole.substr(0, size));
    const std::string refusal = input_error([&] { (void)read_compute_model(path); });
    EXPECT_THAT(refusal, testing::StartsWith(path + ": "));
    EXPECT_EQ(refusal.find('\n'), std::string::npos);
  }
  EXPECT_EQ(input_error([&] { (void)read_compute_model(folder.file("none")); }),
            folder.file("none") + ": expected a readable file, got No such file or directory");
}

}  // namespace
}  // namespace neuroshard
