// Warnings on stderr: reasons to trust predictions or measurements less.
#pragma once

#include <string>
#include <vector>

#include "neuroshard/cost/model_catalog.h"

namespace neuroshard::cli {

/// A line each, unless --quiet.
void print_warnings(const std::vector<std::string>& lines);
void print_notes(const std::vector<std::string>& lines);

/// With --verbose, a line each: name, file and checksum.
void print_models_used(const CostModels& models);

}  // namespace neuroshard::cli
