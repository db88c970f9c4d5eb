// Declarations that the parts of the extension module share.
#pragma once

#include <nanobind/nanobind.h>

namespace neuroshard::python {

namespace nb = nanobind;

/// Tasks, plans, models and workloads: read, checked, written, listed.
void bind_files(nb::module_& module);
/// Plans found, priced, compared and measured.
void bind_planning(nb::module_& module);
void bind_reporting(nb::module_& module);
/// The parts that `python -m neuroshard.collect` shares with `neuroshard collect compute`.
void bind_collecting(nb::module_& module);

/// Runs `work`, which must not touch Python, while other Python threads run.
template <typename Work>
auto without_gil(const Work& work) {
  const nb::gil_scoped_release release;
  return work();
}

}  // namespace neuroshard::python
