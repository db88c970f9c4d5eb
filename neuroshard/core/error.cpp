// Messages of errors, made fit to be shown.
#include "neuroshard/core/error.h"

#include "neuroshard/core/text/printable.h"

namespace neuroshard {

Error::Error(const std::string& message, int exit_code)
    : std::runtime_error(printable(message)), exit_code_(exit_code) {}

}  // namespace neuroshard
