// Task files by folder: all of them, by name, and folders without one.
#include "neuroshard/io/task_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neuroshard/io/task_io.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

TEST(FindTaskFiles, FilesAsGivenAndFoldersByName) {
  const TemporaryFolder folder;
  for (const char* name : {"b.json", "a.json", "notes.txt"}) write_file(folder.file(name), "x");
  const std::string path = std::filesystem::path(folder.file("a.json")).parent_path();
  EXPECT_THAT(find_task_files({"none.json", path}),
              testing::ElementsAre("none.json", folder.file("a.json"), folder.file("b.json")));
}

TEST(FindTaskFiles, AFolderWithoutTasksIsRefused) {
  const TemporaryFolder folder;
  const std::string path = std::filesystem::path(folder.file("x")).parent_path();
  EXPECT_EQ(input_error([&] { (void)find_task_files({path}); }),
            path + ": expected a folder with task files (.json), got none in it");
}

TEST(WriteTaskFiles, NamesOfOneLengthInTheirOrder) {
  const TemporaryFolder folder;
  Task task;
  task.batch_size = 8;
  task.tables = {{.name = "t", .num_embeddings = 10, .embedding_dim = 4, .pooling_factor = 1.0}};
  task.topology.memory_bytes = {1 << 20};
  const auto numbered = [&](std::int64_t number) {
    Task result = task;
    result.batch_size = number == 10 ? 16 : 8;
    return result;
  };
  write_task_files(11, numbered, folder.file("tasks/below"));
  const std::vector<std::string> files = find_task_files({folder.file("tasks/below")});
  ASSERT_EQ(files.size(), 11u);
  EXPECT_EQ(files[2], folder.file("tasks/below/task-02.json"));
  EXPECT_EQ(read_task(files[10]).batch_size, 16);
}

TEST(WriteTaskFiles, OneThatCannotBeMadeLeavesNoFolder) {
  const TemporaryFolder folder;
  const auto last_fails = [](std::int64_t number) -> Task {
    if (number == 10) throw InputError("no such task");
    return {};
  };
  EXPECT_EQ(input_error([&] { write_task_files(11, last_fails, folder.file("tasks")); }),
            "no such task");
  EXPECT_FALSE(std::filesystem::exists(folder.file("tasks")));
}

TEST(WriteTaskFiles, AFolderWithOtherTasksIsRefused) {
  const TemporaryFolder folder;
  Task task;
  task.batch_size = 8;
  task.tables = {{.name = "t", .num_embeddings = 10, .embedding_dim = 4, .pooling_factor = 1.0}};
  task.topology.memory_bytes = {1 << 20};
  const auto same = [&](std::int64_t) { return task; };
  const std::string tasks = folder.file("tasks");
  const auto refusal = [&](std::int64_t count) {
    return input_error([&] { write_task_files(count, same, tasks); });
  };
  EXPECT_EQ(refusal(11), "no error");
  EXPECT_EQ(refusal(11), "no error") << "the same again";
  EXPECT_EQ(refusal(12), "no error") << "more, with names of one length";
  write_file(tasks + "/notes.json", "of somebody");
  EXPECT_EQ(refusal(11), tasks +
                             ": expected a folder without other tasks than task-00.json to "
                             "task-10.json, got task-11.json");
  EXPECT_EQ(refusal(1), tasks +
                            ": expected a folder without other tasks than task-0.json, got "
                            "task-00.json and 11 more");
  EXPECT_EQ(find_task_files({tasks}).size(), 13u) << "nothing was written";
}

TEST(WriteTaskFiles, MeasuredDataUnderATasksNameIsKept) {
  const TemporaryFolder folder;
  const std::string kept = folder.file("task-0.json");
  write_file(kept, "{\"format\":\"neuroshard/compute-costs/2\"}\n");
  EXPECT_THAT(input_error([&] {
                write_task_files(
                    1, [](std::int64_t) { return Task{}; },
                    std::filesystem::path(kept).parent_path());
              }),
              testing::StartsWith(kept + ": expected a new file"));
  EXPECT_THAT(read_file(kept), testing::HasSubstr("compute-costs"));
}

}  // namespace
}  // namespace neuroshard
