// The extension module neuroshard._core: the library's functions on the documented formats' text.
#include "module.h"

#include <exception>
#include <new>
#include <system_error>

#include "neuroshard/core/error.h"

namespace neuroshard::python {

namespace {

/// An exception of neuroshard.errors.
void raise_as(const char* name, const char* text) {
  const nb::object type = nb::module_::import_("neuroshard.errors").attr(name);
  PyErr_SetString(type.ptr(), text);
}

void translate(const std::exception_ptr& pointer, void* /*payload*/) {
  try {
    std::rethrow_exception(pointer);
  } catch (const InputError& error) {
    raise_as("InputError", error.what());
  } catch (const InfeasibleError& error) {
    raise_as("InfeasibleError", error.what());
  } catch (const MachineError& error) {
    raise_as("MachineError", error.what());
  } catch (const std::bad_alloc&) {  // as the executable says it
    raise_as("MachineError", "out of memory");
  } catch (const std::system_error& error) {
    raise_as("MachineError", error.what());
  }
}

}  // namespace

}  // namespace neuroshard::python

NB_MODULE(_core, module) {
  module.doc() = "Text in the documented formats in, text out; the package around it has the types";
  module.attr("__version__") = NEUROSHARD_VERSION;
  nanobind::register_exception_translator(neuroshard::python::translate);
  neuroshard::python::bind_files(module);
  neuroshard::python::bind_planning(module);
  neuroshard::python::bind_reporting(module);
  neuroshard::python::bind_collecting(module);
}
