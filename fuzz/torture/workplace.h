// What a process that tries inputs keeps: a folder of its own, models and planners.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/search/planner.h"

namespace neuroshard::fuzz {

class Workplace {
 public:
  /// `executable` is the path of `neuroshard`, for the options; the folder is made in `parent`.
  Workplace(std::string executable, const std::string& parent);
  ~Workplace();
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  [[nodiscard]] const std::string& executable() const { return executable_; }
  /// A path in the folder.
  [[nodiscard]] std::string file(std::string_view name) const {
    return folder_ + "/" + std::string(name);
  }
  /// Writes a file in the folder, without waiting for the disk; returns its path.
  std::string write(std::string_view name, std::string_view bytes) const;

  /// The default computation model or one from data sheets, each with links from data sheets.
  [[nodiscard]] const CostModels& models(Random& random);
  /// The search, in half of the cases, or one of the baselines.
  [[nodiscard]] const Planner& planner(Random& random);

 private:
  std::string executable_;
  std::string folder_;
  std::vector<CostModels> models_;  ///< loaded when the first is asked for
  std::vector<std::unique_ptr<Planner>> planners_;
};

}  // namespace neuroshard::fuzz
