// What ThreadSanitizer need not report where the operator is measured, not tested: in one arena
// pieces of a set may overlap, as what their rows hold does not change the cost
// (collect/compute/cpu/compute_benchmark.h), and then two threads update one row. The operator by
// itself is tested without this (tests/collect).
// NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizer's name
extern "C" const char* __tsan_default_suppressions() {
  return "race:neuroshard::EmbeddingOperator::\n";
}
