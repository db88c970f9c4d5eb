// Bindings of io and the catalogs: tasks, plans, models and workloads.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <string_view>
#include <vector>

#include "module.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/units.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/cost/model_description.h"
#include "neuroshard/cost/model_files.h"
#include "neuroshard/io/file.h"
#include "neuroshard/io/input_limit.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/io/kept_data.h"
#include "neuroshard/io/output_files.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/io/task_io.h"
#include "neuroshard/plan/plan_models.h"
#include "neuroshard/workload/reuse/index_distribution.h"
#include "neuroshard/workload/workload.h"
#include "neuroshard/workload/workload_json.h"

namespace neuroshard::python {

namespace {

/// The name in errors of a text that comes from Python.
constexpr const char* kTask = "task";
constexpr const char* kPlan = "plan";

/// A workload as a task on one device, whose memory is the largest there is.
std::string workload_task(const std::string& name, std::uint64_t seed) {
  Workload workload = find_workload(name, seed);
  Task task;
  task.batch_size = workload.batch_size;
  task.optimizer = workload.optimizer;
  task.tables = std::move(workload.tables);
  task.topology.memory_bytes = {std::int64_t{1} << 60};
  return to_line(to_json(task));
}

/// The reuse histogram of every table of a task, at its batch size.
std::vector<std::vector<double>> reuse_histograms(const std::string& text) {
  const Task task = parse_task(text, kTask);
  std::vector<std::vector<double>> histograms;
  for (const Table& table : task.tables) {
    const ReuseHistogram histogram = reuse_histogram(table, task.batch_size);
    histograms.emplace_back(histogram.begin(), histogram.end());
  }
  return histograms;
}

/// A file of lines for Python; AppendFile itself only asserts that a line is one.
class LineFile {
 public:
  explicit LineFile(const std::string& path) : path_(path), file_(path) {}

  void append(const std::string& line) {
    if (line.find('\n') != std::string::npos) throw InputError(path_, "one line", in_quotes(line));
    file_.append_line(line);
  }
  void cut_to(std::size_t size) { file_.cut_to(size); }
  void sync() { file_.sync(); }

 private:
  std::string path_;
  AppendFile file_;
};

/// What Python alone writes, and the files that grow line by line.
void bind_writing(nb::module_& module) {
  module.def("write_text", [](const std::string& text, const std::string& path,
                              const std::vector<std::string>& inputs,
                              const std::vector<std::string>& models, bool force) {
    without_gil([&] {
      check_output({path, inputs, models, force});
      write_file(path, text);
    });
  });
  // For commands, before any work.
  module.def("check_output", [](const std::string& path, const std::vector<std::string>& inputs,
                                const std::vector<std::string>& models, bool force) {
    without_gil([&] {
      check_output({path, inputs, models, force, "--output", "--force"});
      require_writable(path);
    });
  });
  nb::class_<LineFile>(module, "LineFile")
      .def(nb::init<const std::string&>(), nb::call_guard<nb::gil_scoped_release>())
      .def("append", &LineFile::append, nb::call_guard<nb::gil_scoped_release>())
      .def("cut_to", &LineFile::cut_to, nb::call_guard<nb::gil_scoped_release>())
      .def("sync", &LineFile::sync, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace

void check_output(const Output& output) {
  refuse_output_that_is_input(output.path, output.inputs, output.place);
  refuse_output_that_is_model(output.path, output.models, ModelsRead::named, output.place);
  if (!output.force) refuse_to_replace_kept_data(output.path, output.permission);
}

void bind_files(nb::module_& module) {
  bind_writing(module);
  // For the formats that Python alone reads: as much is read, and as strictly, as of all others;
  // ".gz" decompressed.
  module.def("read_file", [](const std::string& path) {
    const std::string bytes = without_gil([&] { return read_maybe_compressed_file(path); });
    return nb::bytes(bytes.data(), bytes.size());
  });
  module.def("read_json", [](const std::string& path) {
    return without_gil([&] { return to_line(parse_json(read_file(path), path)); });
  });
  module.def("json_of_line", [](const nb::bytes& line, const std::string& location) {
    const std::string_view text(line.c_str(), line.size());
    return without_gil([&] { return to_line(parse_json(text, location, true)); });
  });
  module.def("max_input_bytes", [] { return max_input_bytes(); });
  module.def("fail_too_large", [](const std::string& place, const std::string& actual) {
    fail_too_large(place, actual);
  });
  module.def("parse_bytes", [](const std::string& text, const std::string& place) {
    return parse_bytes(text, place);
  });
  module.def("parse_seconds", [](const std::string& text, const std::string& place) {
    return parse_seconds(text, place);
  });
  module.def("check_task", [](const std::string& text) {
    return without_gil([&] { return to_line(to_json(parse_task(text, kTask))); });
  });
  module.def("read_task", [](const std::string& path) {
    return without_gil([&] { return to_line(to_json(read_task(path))); });
  });
  module.def("write_task", [](const std::string& text, const std::string& path, bool force) {
    without_gil([&] {
      const Task task = parse_task(text, kTask);
      check_output({.path = path, .force = force});
      write_task(task, path);
    });
  });
  module.def("read_plan", [](const std::string& path) {
    return without_gil([&] { return plan_text(read_plan(path)); });
  });
  module.def("write_plan", [](const std::string& text, const std::string& path,
                              const std::vector<std::string>& inputs, bool force) {
    without_gil([&] {
      const PlanDocument document = parse_plan(text, kPlan);
      check_output({.path = path,
                    .inputs = inputs,
                    .models = recorded_models(document.model),
                    .force = force});
      write_plan(document, path);
    });
  });
  module.def("plan_violations", [](const std::string& text) {
    return without_gil([&] {
      const PlanDocument document = parse_plan(text, kPlan);
      return violations(document.task, document.plan);
    });
  });
  module.def("find_file_of_model", [](const std::string& name) {
    return without_gil([&] { return find_file_of_model(name); });
  });
  module.def("list_models", [] { return without_gil([] { return to_line(model_list_json()); }); });
  module.def("list_workloads",
             [] { return without_gil([] { return to_line(workloads_json()); }); });
  module.def("workload_task", [](const std::string& name, std::uint64_t seed) {
    return without_gil([&] { return workload_task(name, seed); });
  });
  module.def("reuse_histograms", [](const std::string& text) {
    return without_gil([&] { return reuse_histograms(text); });
  });
}

}  // namespace neuroshard::python
