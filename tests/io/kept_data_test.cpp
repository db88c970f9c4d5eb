// Which files are replaced only when a user says so.
#include "neuroshard/io/kept_data.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>

#include "io_test_util.h"
#include "neuroshard/io/safetensors.h"

namespace neuroshard {
namespace {

TEST(KeptData, IsWhatWasMeasuredAndModels) {
  const TemporaryFolder folder;
  const char* header = "{\"format\":\"neuroshard/compute-costs/1\"}\n";
  const std::string costs = folder.file("costs.jsonl");
  write_file(costs, header);
  EXPECT_EQ(kept_data_at(costs), "measured computation costs that are there already");
  const std::string compressed = folder.file("costs.jsonl.gz");
  gzFile file = gzopen(compressed.c_str(), "wb");
  EXPECT_GT(gzputs(file, header), 0);
  EXPECT_EQ(gzclose(file), Z_OK);
  EXPECT_EQ(kept_data_at(compressed), "measured computation costs that are there already");
  const std::string journal = folder.file("journal.jsonl");
  write_file(journal, "{\"format\":\"neuroshard/comparison-journal/1\"}\n");
  EXPECT_EQ(kept_data_at(journal), "a comparison's journal that is there already");
  const std::string communication = folder.file("communication.jsonl");
  write_file(communication, "{\"format\":\"neuroshard/communication-costs/1\"}");
  EXPECT_EQ(kept_data_at(communication), "communication costs that are there already");
  const std::string model = folder.file("model.safetensors");
  TensorFile tensors;
  tensors.tensors["weights"] = {{1}, {0.5F}};
  write_tensors(tensors, model);
  EXPECT_EQ(kept_data_at(model), "a model that is there already");
  EXPECT_EQ(input_error([&] { refuse_to_replace_kept_data(model); }),
            model + ": expected a new file, or --force, got a model that is there already");
  std::filesystem::create_symlink(model, folder.file("link"));
  EXPECT_EQ(kept_data_at(folder.file("link")), "a model that is there already");
}

TEST(KeptData, IsWhatAnyReaderTakesForIt) {
  const TemporaryFolder folder;
  const std::string path = folder.file("costs.jsonl");
  const std::string long_header(200'000, 'x');
  for (const std::string& text : {
           std::string(" {\"format\": \"neuroshard/compute-costs/1\"}\n"),
           std::string("\t\r\n{\"format\": \"neuroshard/compute-costs/1\"}"),
           std::string(R"({"f\u006frmat": "neuroshard/compute-costs/1"})"),
           std::string(R"({"format": "neuroshard\/compute\u002dcosts\/1"})"),
           std::string(
               R"({"hardware": {"format": "mine"}, "format": "neuroshard/compute-costs/1"})"),
           std::string(R"({"format": "neuroshard/compute-costs/12", "hardw)"),
           std::string(R"({"format": "neuroshard/compute-costs/1"} and more)"),
           R"({"tables": [")" + long_header + R"("], "format": "neuroshard/compute-costs/1"})",
       }) {
    write_file(path, text);
    EXPECT_EQ(kept_data_at(path), "measured computation costs that are there already")
        << text.substr(0, 80);
  }
}

TEST(KeptData, IsAModelOfTheRuntime) {
  const TemporaryFolder folder;
  const std::string path = folder.file("runtime.json");
  for (const char* text : {"{\"format\": \"neuroshard/runtime-model/1\"}",
                           "{\n \"operator_model\": \"mine\",\n"
                           " \"format\": \"neuroshard/runtime-model/1\"\n}\n"}) {
    write_file(path, text);
    EXPECT_EQ(input_error([&] { refuse_to_replace_kept_data(path, "force=True"); }),
              path +
                  ": expected a new file, or force=True, "
                  "got a model of TorchRec's runtime that is there already");
  }
}

TEST(KeptData, IsAModelWhoseHeaderBeginsWithBlanks) {
  const TemporaryFolder folder;
  const std::string path = folder.file("model.safetensors");
  TensorFile tensors;
  tensors.tensors["weights"] = {{1}, {0.5F}};
  write_tensors(tensors, path);
  std::string bytes = read_file(path);
  bytes.insert(8, " \n");
  bytes[0] = static_cast<char>(bytes[0] + 2);  // the header's size, lowest byte first
  write_file(path, bytes);
  EXPECT_NO_THROW((void)read_tensors(path));
  EXPECT_EQ(kept_data_at(path), "a model that is there already");
}

TEST(KeptData, IsNothingElse) {
  const TemporaryFolder folder;
  const std::string path = folder.file("file");
  EXPECT_EQ(kept_data_at(path), "");
  EXPECT_EQ(kept_data_at(folder.file("")), "");
  EXPECT_EQ(kept_data_at("/dev/null"), "");
  for (const char* text :
       {"", "{", "a plan\n", "{\"format\": \"neuroshard/plan/1\"}", "\x1f\x8b",
        "{\"format\": \"neuroshard/plan/1\",\n \"of\": \"neuroshard/compute-costs/1\"}",
        "[{\"format\": \"neuroshard/compute-costs/1\"}]", "\"neuroshard/compute-costs/1\"",
        "{\"of\": {\"format\": \"neuroshard/compute-costs/1\"}}",
        "{\"of\": [\"format\", \"neuroshard/compute-costs/1\"]}",
        "{\"format\": [\"neuroshard/compute-costs/1\"]}",
        "{\"format\": null, \"of\": \"neuroshard/compute-costs/1\"}",
        "{\"a\": nothing, \"format\": \"neuroshard/compute-costs/1\"}"}) {
    write_file(path, text);
    EXPECT_EQ(kept_data_at(path), "") << text;
    EXPECT_NO_THROW(refuse_to_replace_kept_data(path));
  }
}

}  // namespace
}  // namespace neuroshard
