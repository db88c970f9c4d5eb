// A model that remembers encodings predicts what the model itself predicts, bit for bit.
#include "neuroshard/cost/compute/remembering_compute_model.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing_tasks::arbitrary_compute;
using testing_tasks::task_of_any_tightness;

RC_GTEST_PROP(RememberingComputeModelProperty, PredictsTheSame, ()) {
  const std::shared_ptr<const ComputeCostModel> model = arbitrary_compute();
  const RememberingComputeModel remembering(model);
  const Task task = task_of_any_tightness();
  const std::vector<TableStatistics> tables = table_statistics(task);
  const OperatorSettings settings = operator_settings(task, *model, tables);
  RC_ASSERT(operator_settings(task, remembering, tables).grid == settings.grid);
  std::vector<double> expected(model->state_size());
  std::vector<double> actual(model->state_size());
  for (int again = 0; again < 2; ++again) {
    for (std::size_t t = 0; t < tables.size(); ++t) {
      const std::int64_t columns = task.tables[t].embedding_dim;
      for (const double share : {1.0, 0.5, 0.25}) {
        for (const std::int64_t batch_size : {settings.batch_size, settings.batch_size + 1}) {
          OperatorSettings others = settings;
          others.batch_size = batch_size;
          const TableStatistics slice = tables[t].slice(share, batch_size);
          model->encode(slice, columns, others, expected);
          remembering.encode(slice, columns, others, actual);
          RC_ASSERT(actual == expected);
          RC_ASSERT(remembering.largest_element(slice, columns, others) ==
                    model->largest_element(slice, columns, others));
          RC_ASSERT(remembering.cost(actual) == model->cost(expected));
        }
      }
    }
  }
}

}  // namespace
}  // namespace neuroshard
