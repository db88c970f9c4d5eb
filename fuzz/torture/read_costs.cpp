// The promises of the readers of measured costs: what they accept can be continued and trained on.
#include <cmath>
#include <string>
#include <string_view>

#include "fuzz/grammar/damage.h"
#include "fuzz/promise.h"
#include "fuzz/targets.h"
#include "fuzz/torture/readers.h"
#include "fuzz/torture/use.h"
#include "neuroshard/io/file.h"
#include "neuroshard/report/model_report.h"
#include "neuroshard/train/communication/communication_dataset.h"
#include "neuroshard/train/compute/compute_dataset.h"
#include "neuroshard/train/compute/model_test.h"

namespace neuroshard::fuzz {

namespace {

/// A writer of the same header goes on where the file ends, and what it adds is read.
template <typename Costs, typename Writer, typename Parse>
void require_costs_continued(const std::string& path, std::string_view bytes, const Parse& parse) {
  const Costs costs = parse(bytes, path);
  // A last line that is whole but for its end is read, and cut off like one that is not.
  if (costs.samples.empty() || (!bytes.ends_with('\n') && !costs.truncated)) return;
  Writer(path, costs.header).append(costs.samples.front());
  const Costs again = parse(read_file(path), path);
  require(again.samples.size() == costs.samples.size() + 1, "a file of costs is continued");
  require(again.samples.back() == costs.samples.front(), "a sample reads back as written");
  require(!again.truncated, "what was cut off is removed before a file is continued");
}

}  // namespace

Outcome read_compute_cost_lines(std::string_view bytes, Workplace& place, Random& random) {
  if (!compute_costs(bytes)) return Outcome::refused;
  if (!once_in(40, random)) return Outcome::read;
  const std::string path = place.write("costs.jsonl", bytes);
  const bool is_used = answered([&] {
    for (const FeatureSchema schema : {FeatureSchema::work, FeatureSchema::published}) {
      const ComputeDataset dataset = load_compute_dataset({path}, schema);
      require(dataset.features.allFinite() && dataset.work.allFinite(),
              "features of measured pieces are finite");
      for (const double ms : dataset.cost_ms) {
        require(std::isfinite(ms) && ms > 0.0, "measured costs are finite and above 0");
      }
    }
    const FileTest test{path, test_compute_model(*place.models(random).compute, path)};
    require_text(model_tests_table({&test, 1}));
  });
  require_costs_continued<ComputeCosts, ComputeCostsWriter>(path, bytes, parse_compute_costs);
  return is_used ? Outcome::used : Outcome::read;
}

Outcome read_communication_cost_lines(std::string_view bytes, Workplace& place, Random& random) {
  if (!communication_costs(bytes)) return Outcome::refused;
  if (!once_in(40, random)) return Outcome::read;
  const std::string path = place.write("costs.jsonl", bytes);
  const bool is_used = answered([&] {
    const CommunicationDataset dataset = load_communication_dataset({path});
    require(dataset.contexts.allFinite(), "what the links say of all-to-alls is finite");
  });
  require_costs_continued<CommunicationCosts, CommunicationCostsWriter>(path, bytes,
                                                                        parse_communication_costs);
  return is_used ? Outcome::used : Outcome::read;
}

}  // namespace neuroshard::fuzz
