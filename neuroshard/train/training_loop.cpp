// Epochs and steps.
#include "neuroshard/train/training_loop.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numbers>

#include "neuroshard/core/error.h"
#include "neuroshard/train/adam.h"

namespace neuroshard {

namespace {

/// A batch's gradient is the sum of this many parts, in order, on however many threads.
constexpr std::size_t kGradientParts = 4;

class Loop {
 public:
  Loop(const TrainingSubject& subject, const TrainingLoopOptions& options, Random& random,
       ThreadPool& pool)
      : subject_(subject),
        options_(options),
        random_(random),
        pool_(pool),
        optimizer_(*subject.parameters) {}

  /// Mean loss.
  double train_epoch(int epoch) {
    std::vector<int> order = subject_.samples;
    random_.shuffle(order);
    double loss_sum = 0.0;
    const auto batch_size = static_cast<std::size_t>(options_.batch_size);
    for (std::size_t first = 0; first < order.size(); first += batch_size) {
      const std::size_t count = std::min(batch_size, order.size() - first);
      const double progress =
          (epoch - 1 + static_cast<double>(first) / static_cast<double>(order.size())) /
          options_.epochs;
      loss_sum += step(std::span(order).subspan(first, count), learning_rate(progress));
    }
    return loss_sum / static_cast<double>(order.size());
  }

 private:
  [[nodiscard]] double learning_rate(double progress) const {
    if (!options_.cosine) return options_.learning_rate;
    return options_.learning_rate * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  }

  double step(std::span<const int> samples, double rate) {
    const std::size_t parts = std::min(kGradientParts, samples.size());
    std::vector<Parameters> gradients(parts);
    std::vector<double> losses(parts);
    pool_.for_each(parts, [&](std::size_t part, int) {
      const std::size_t first = samples.size() * part / parts;
      const std::size_t last = samples.size() * (part + 1) / parts;
      losses[part] =
          subject_.loss_and_gradients(samples.subspan(first, last - first), gradients[part]);
    });
    double sum = losses[0];
    for (std::size_t part = 1; part < parts; ++part) {
      sum += losses[part];
      for (std::size_t i = 0; i < gradients[0].size(); ++i) gradients[0][i] += gradients[part][i];
    }
    for (Eigen::MatrixXf& gradient : gradients[0]) gradient /= static_cast<float>(samples.size());
    optimizer_.step(*subject_.parameters, gradients[0], rate, subject_.step_sizes);
    if (subject_.project) subject_.project();
    return sum;
  }

  const TrainingSubject& subject_;
  const TrainingLoopOptions& options_;
  Random& random_;
  ThreadPool& pool_;
  Adam optimizer_;
};

}  // namespace

TrainingLoopResult run_training_loop(const TrainingSubject& subject,
                                     const TrainingLoopOptions& options, Random& random,
                                     ThreadPool& pool,
                                     const std::function<void(const EpochStats&)>& on_epoch) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  Loop loop(subject, options, random, pool);
  TrainingLoopResult result;
  Parameters best = *subject.parameters;
  double best_mape = std::numeric_limits<double>::infinity();
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    const double loss = loop.train_epoch(epoch);
    const EpochStats stats{epoch, options.epochs, loss, subject.validation_mape(), seconds()};
    result.epochs.push_back(stats);
    if (on_epoch) on_epoch(stats);
    if (stats.validation_mape < best_mape) {
      best_mape = stats.validation_mape;
      best = *subject.parameters;
      result.best_epoch = epoch;
    }
    if (epoch - result.best_epoch >= options.patience) break;
  }
  if (result.best_epoch == 0) {
    throw InputError("costs", "costs that the network can be trained on",
                     "a validation error that is no finite number in every epoch");
  }
  *subject.parameters = std::move(best);
  result.seconds = seconds();
  return result;
}

}  // namespace neuroshard
