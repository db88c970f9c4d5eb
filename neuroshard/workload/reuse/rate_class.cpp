// Cutting fractional numbers of rows into whole rows.
#include "neuroshard/workload/reuse/rate_class.h"

#include <algorithm>
#include <cmath>

namespace neuroshard {

namespace {

/// Collects access classes; a row is put together from fractions until it is whole.
class RowCutter {
 public:
  void add(const RateClass& rate_class) {
    double rows = rate_class.rows;
    if (pending_rows_ > 0.0) {
      const double taken = std::min(rows, 1.0 - pending_rows_);
      pending_rows_ += taken;
      pending_lookups_ += taken * rate_class.rate;
      rows -= taken;
      if (pending_rows_ < 1.0 - kWhole) return;
      emit(1, pending_lookups_);
      pending_rows_ = 0.0;
      pending_lookups_ = 0.0;
    }
    const double whole = std::floor(rows + kWhole);
    if (whole >= 1.0) emit(static_cast<std::int64_t>(whole), whole * rate_class.rate);
    if (rows - whole > kWhole) {
      pending_rows_ = rows - whole;
      pending_lookups_ = pending_rows_ * rate_class.rate;
    }
  }

  std::vector<AccessClass> finish() {
    if (pending_rows_ >= 0.5 || (pending_rows_ > 0.0 && classes_.empty())) {
      emit(1, pending_lookups_);
    } else if (pending_rows_ > 0.0) {
      classes_.back().access_share += pending_lookups_;
      lookups_ += pending_lookups_;
    }
    for (AccessClass& access_class : classes_) access_class.access_share /= lookups_;
    return std::move(classes_);
  }

 private:
  void emit(std::int64_t rows, double lookups) {
    classes_.push_back({rows, lookups});
    lookups_ += lookups;
  }

  static constexpr double kWhole = 1e-9;
  std::vector<AccessClass> classes_;
  double lookups_ = 0.0;
  double pending_rows_ = 0.0;
  double pending_lookups_ = 0.0;
};

}  // namespace

double hits_of(const std::vector<RateClass>& classes) {
  double hits = 0.0;
  for (const RateClass& rows : classes) hits += rows.rate * rows.rows;
  return hits;
}

std::vector<AccessClass> whole_rows(std::vector<RateClass> classes) {
  std::sort(classes.begin(), classes.end(),
            [](const RateClass& a, const RateClass& b) { return a.rate > b.rate; });
  RowCutter cutter;
  for (const RateClass& rate_class : classes) cutter.add(rate_class);
  return cutter.finish();
}

std::vector<AccessClass> whole_rows(std::vector<RateClass> classes, std::int64_t most_rows) {
  std::vector<AccessClass> whole = whole_rows(std::move(classes));
  std::int64_t rows = 0;
  for (const AccessClass& access_class : whole) rows += access_class.num_embeddings;
  while (rows > most_rows) {
    AccessClass& last = whole.back();
    const std::int64_t removed = std::min(rows - most_rows, last.num_embeddings);
    rows -= removed;
    last.num_embeddings -= removed;
    if (last.num_embeddings > 0) continue;
    const double lookups = last.access_share;
    whole.pop_back();
    whole.back().access_share += lookups;
  }
  return whole;
}

}  // namespace neuroshard
