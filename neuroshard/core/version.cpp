// The version that the build was configured with.
#include "neuroshard/core/version.h"

namespace neuroshard {

std::string_view version() { return NEUROSHARD_VERSION; }

}  // namespace neuroshard
