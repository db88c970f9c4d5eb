// Declarations that the parts of the extension module share.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

namespace neuroshard::python {

namespace nb = nanobind;

/// Tasks, plans, models and workloads: read, checked, written, listed.
void bind_files(nb::module_& module);
/// Plans found, priced, compared and measured.
void bind_planning(nb::module_& module);
void bind_reporting(nb::module_& module);
/// The parts that `python -m neuroshard.collect` shares with `neuroshard collect compute`.
void bind_collecting(nb::module_& module);

/// What a function of Python's writes, and what it has read or will.
struct Output {
  std::string path{};
  std::vector<std::string> inputs{};  ///< files
  std::vector<std::string> models{};  ///< names or files
  bool force = false;                 ///< measured data, journals and models may be replaced
  /// What errors call the output, and what would allow it: of functions, or of a command line.
  std::string place = "path";
  std::string permission = "force=True";
};

/// As the command line does: throws InputError if the output is one of the inputs or, unless it may
/// be replaced, measured data, a journal or a model.
void check_output(const Output& output);

/// Runs `work`, which must not touch Python, while other Python threads run.
template <typename Work>
auto without_gil(const Work& work) {
  const nb::gil_scoped_release release;
  return work();
}

}  // namespace neuroshard::python
