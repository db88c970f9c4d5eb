// Inference of the computation cost networks: encode each piece once, then only heads.
#include "neuroshard/cost/compute/neural_compute_model.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <cassert>
#include <cmath>

#include "neuroshard/core/error.h"
#include "neuroshard/cost/compute/head_kernel.h"
#include "neuroshard/cost/compute/piece_work.h"
#include "neuroshard/cost/dense_kernel.h"

namespace neuroshard {

namespace {

using Eigen::VectorXf;

Eigen::Map<const VectorXf> as_vector(const std::vector<float>& values) {
  return {values.data(), static_cast<Eigen::Index>(values.size())};
}

Eigen::Map<VectorXf> as_vector(std::vector<float>& values) {
  return {values.data(), static_cast<Eigen::Index>(values.size())};
}

/// y = weights x + bias, with `relu` at least 0.
void apply(const DenseLayer& layer, const float* bias, const std::vector<float>& x, bool relu,
           std::vector<float>& y) {
  assert(x.size() == static_cast<std::size_t>(layer.inputs));
  y.resize(static_cast<std::size_t>(layer.outputs));
  kernels::dense_row_rounded(x.data(), x.size(), layer.weights.data(), bias, y.size(), relu,
                             y.data());
}

/// Scratch memory of encoding; one per thread, because a search encodes thousands of pieces.
struct Scratch {
  std::vector<float> features;
  std::vector<float> standardised;
  std::vector<float> layer;
  std::vector<float> next;
};

/// The vector that is summed over a device's pieces, from the features and their standardised
/// values: the encoder's output or the loads. In `scratch.layer`.
void compute_summand(const ComputeNetwork& network, Scratch& scratch) {
  const bool published = network.architecture == ComputeArchitecture::published;
  scratch.layer = scratch.standardised;
  const std::size_t relus = network.encoder.size() - (published ? 0 : 1);
  for (std::size_t i = 0; i < relus; ++i) {
    const DenseLayer& layer = network.encoder[i];
    apply(layer, layer.bias.data(), scratch.layer, true, scratch.next);
    scratch.layer.swap(scratch.next);
  }
  if (published) return;
  scratch.layer.insert(scratch.layer.end(), scratch.standardised.begin(),
                       scratch.standardised.end());
  const DenseLayer& last = network.encoder.back();
  apply(last, last.bias.data(), scratch.layer, false, scratch.next);
  scratch.layer.swap(scratch.next);
  // Into memory that is aligned for any vector: otherwise Eigen computes the first elements by
  // another exp, and their number depends on the address.
  constexpr auto kBound = static_cast<float>(kLogLoadBound);
  const auto log_e = static_cast<float>(log_estimate(scratch.features));
  const VectorXf corrections =
      kBound * ((as_vector(scratch.layer).array() - log_e) / kBound).tanh();
  const VectorXf loads = (corrections.array() + log_e).exp();
  as_vector(scratch.layer) = loads;
}

/// No element of a contribution is more than this times a bound of the loads.
double largest_weight(const ComputeNetwork& network) {
  double largest = 0.0;
  for (const float weight : network.linear) largest += static_cast<double>(weight);
  for (int unit = 0; unit < network.head.outputs; ++unit) {
    double sum = 0.0;
    for (int k = 0; k < network.head.inputs; ++k) {
      sum += static_cast<double>(network.head.weights[k * network.head.outputs + unit]);
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

}  // namespace

std::string_view to_string(ComputeArchitecture architecture) {
  return architecture == ComputeArchitecture::published ? "published" : "bounded-loads";
}

ComputeArchitecture compute_architecture_from_string(std::string_view name,
                                                     const std::string& place) {
  for (const ComputeArchitecture architecture :
       {ComputeArchitecture::published, ComputeArchitecture::bounded_loads}) {
    if (name == to_string(architecture)) return architecture;
  }
  throw InputError(place, "\"published\" or \"bounded-loads\"", fmt::format("\"{}\"", name));
}

NeuralComputeModel::NeuralComputeModel(std::vector<ComputeNetwork> members, ComputeModelInfo info)
    : members_(std::move(members)), info_(std::move(info)) {
  assert(!members_.empty());
  const auto count = static_cast<double>(members_.size());
  for (const ComputeNetwork& member : members_) {
    assert(member.architecture == architecture() && member.schema == members_.front().schema);
    assert(member.rowwise_adagrad_offset.has_value() == has_optimizer_offsets());
    hidden_.push_back(member.head.bias.size());
    head_bias_.insert(head_bias_.end(), member.head.bias.begin(), member.head.bias.end());
    head_output_.insert(head_output_.end(), member.head_output.begin(), member.head_output.end());
    mean_offset_ += static_cast<double>(member.offset) / count;
    const float of_adagrad = member.rowwise_adagrad_offset.value_or(member.offset);
    adagrad_rise_.push_back(static_cast<double>(of_adagrad) - static_cast<double>(member.offset));
    mean_adagrad_rise_ += adagrad_rise_.back() / count;
    largest_weight_ = std::max(largest_weight_, largest_weight(member));
  }
  for (const double output : head_output_) mean_output_.push_back(output / count);
}

NeuralComputeModel::NeuralComputeModel(ComputeNetwork network, ComputeModelInfo info)
    : NeuralComputeModel(std::vector<ComputeNetwork>{std::move(network)}, std::move(info)) {}

NeuralComputeModel::~NeuralComputeModel() = default;

std::size_t NeuralComputeModel::plain_size() const {
  return 2 + head_bias_.size() + (members_.size() > 1 ? members_.size() : 0);
}

std::size_t NeuralComputeModel::state_size() const {
  const std::size_t size =
      has_widest_factors() ? 2 * plain_size() - 1 + kWidestPiece.size() : plain_size();
  return size + (has_optimizer_offsets() ? 1 : 0);
}

bool NeuralComputeModel::has_adagrad_offset(const double* state,
                                            std::span<const double> piece) const {
  if (!has_optimizer_offsets()) return false;
  const std::size_t at = state_size() - 1;
  return state[at] + (piece.empty() ? 0.0 : piece[at]) > 0.0;
}

std::vector<double> NeuralComputeModel::mean_widest_factors() const {
  std::vector<double> factors(has_widest_factors() ? kWidestClasses : 0);
  for (const ComputeNetwork& member : members_) {
    for (std::size_t number = 0; number < factors.size(); ++number) {
      factors[number] +=
          static_cast<double>(member.widest_factors[number]) / static_cast<double>(members_.size());
    }
  }
  return factors;
}

void NeuralComputeModel::scale(std::size_t width_class, std::span<double> plain) const {
  const auto count = static_cast<double>(members_.size());
  auto hidden = plain.begin() + 2;
  double* linear = plain.data() + (members_.size() > 1 ? 2 + head_bias_.size() : 1);
  double sum = 0.0;
  for (std::size_t m = 0; m < members_.size(); ++m) {
    const auto factor = static_cast<double>(members_[m].widest_factors[width_class]);
    for (std::size_t unit = 0; unit < hidden_[m]; ++unit) *hidden++ *= factor;
    linear[m] *= factor;
    sum += linear[m];
  }
  plain[1] = sum / count;
}

void NeuralComputeModel::write_scaled(const double* state, const double* piece,
                                      std::span<double> plain) const {
  const std::size_t numbers_at = 2 * plain_size() - 1;
  std::size_t widest = kWidestPiece.size();
  while (widest > 0) {
    const std::size_t at = numbers_at + widest - 1;
    if (state[at] + (piece == nullptr ? 0.0 : piece[at]) > 0.0) break;
    --widest;
  }
  for (std::size_t i = 0; i < plain.size(); ++i) {
    plain[i] = state[i] + (piece == nullptr ? 0.0 : piece[i]);
  }
  scale(widest, plain);
}

void NeuralComputeModel::encode(const TableStatistics& table, std::int64_t num_columns,
                                const OperatorSettings& settings,
                                std::span<double> contribution) const {
  assert(contribution.size() == state_size());
  const std::span<double> all = contribution;
  contribution = contribution.first(plain_size());
  const FeatureSchema schema = members_.front().schema;
  static thread_local Scratch scratch;
  scratch.features.resize(feature_names(schema).size());
  shard_features(schema, table, num_columns, settings, members_.front().estimate, scratch.features);
  const auto features = as_vector(scratch.features);
  contribution[0] = 1.0;
  contribution[1] = 0.0;
  auto hidden_at = contribution.begin() + 2;
  const auto linear_at = hidden_at + static_cast<std::ptrdiff_t>(head_bias_.size());
  for (std::size_t m = 0; m < members_.size(); ++m) {
    const ComputeNetwork& member = members_[m];
    scratch.standardised.resize(scratch.features.size());
    as_vector(scratch.standardised) =
        (features - as_vector(member.feature_mean)).cwiseProduct(as_vector(member.feature_scale));
    compute_summand(member, scratch);
    // The head's hidden layer is linear in the sum, so its products are summed instead.
    apply(member.head, nullptr, scratch.layer, false, scratch.next);
    hidden_at = std::copy(scratch.next.begin(), scratch.next.end(), hidden_at);
    const double linear =
        member.linear.empty() ? 0.0 : as_vector(member.linear).dot(as_vector(scratch.layer));
    contribution[1] += linear / static_cast<double>(members_.size());
    if (members_.size() > 1) linear_at[static_cast<std::ptrdiff_t>(m)] = linear;
  }
  round_to_grid(contribution, settings.grid);
  contribution[0] = 1.0;
  if (has_widest_factors()) add_bound(num_columns, settings.grid, all);
  if (has_optimizer_offsets()) {
    all.back() = settings.optimizer == Optimizer::rowwise_adagrad ? 1.0 : 0.0;
  }
}

void NeuralComputeModel::add_bound(std::int64_t num_columns, double grid,
                                   std::span<double> contribution) const {
  const std::size_t own = widest_class(num_columns);
  static thread_local std::vector<double> scaled;
  scaled.assign(contribution.begin(),
                contribution.begin() + static_cast<std::ptrdiff_t>(plain_size()));
  scale(own, scaled);
  for (std::size_t i = 1; i < scaled.size(); ++i) {
    // Down, so that no bound is above its cost.
    contribution[plain_size() + i - 1] = std::floor(scaled[i] / grid) * grid;
  }
  const std::span<double> numbers = contribution.subspan(2 * plain_size() - 1, kWidestPiece.size());
  std::fill(numbers.begin(), numbers.end(), 0.0);
  if (own > 0) numbers[own - 1] = 1.0;
}

double NeuralComputeModel::largest_element(const TableStatistics& table, std::int64_t num_columns,
                                           const OperatorSettings& settings) const {
  if (architecture() == ComputeArchitecture::published) {
    return ComputeCostModel::largest_element(table, num_columns, settings);
  }
  static thread_local std::vector<double> terms;
  terms.resize(work_terms().size());
  write_work_terms(piece_work(table, num_columns, settings), table, settings, terms);
  return members_.front().estimate.piece_ms(terms) * std::exp(kLogLoadBound) * largest_weight_;
}

void NeuralComputeModel::costs_with(std::span<const double> states, std::span<const double> piece,
                                    std::span<double> costs) const {
  const std::size_t stride = state_size();
  assert(states.size() == costs.size() * stride);
  if (has_widest_factors()) {
    static thread_local std::vector<double> plain;
    plain.resize(plain_size());
    for (std::size_t i = 0; i < costs.size(); ++i) {
      write_scaled(states.data() + i * stride, piece.empty() ? nullptr : piece.data(), plain);
      plain_costs_with(plain, plain_size(), {}, costs.subspan(i, 1));
    }
  } else {
    plain_costs_with(states, stride, piece, costs);
  }
  if (!has_optimizer_offsets()) return;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (has_adagrad_offset(states.data() + i * stride, piece)) costs[i] += mean_adagrad_rise_;
  }
}

double NeuralComputeModel::scatter() const {
  const auto found = info_.metrics.find(kScatterMetric);
  // What a file says may be anything.
  const bool is_known = found != info_.metrics.end() && found->second > 0.0 && found->second < 1.0;
  return is_known ? found->second : 0.0;
}

double NeuralComputeModel::bound(std::span<const double> state) const {
  if (!has_widest_factors()) return cost(state);
  static thread_local std::vector<double> plain;
  plain.assign(state.begin() + static_cast<std::ptrdiff_t>(plain_size()) - 1,
               state.begin() + static_cast<std::ptrdiff_t>(2 * plain_size()) - 1);
  plain[0] = state[0];
  double result = 0.0;
  plain_costs_with(plain, plain_size(), {}, {&result, 1});
  return result + (has_adagrad_offset(state.data(), {}) ? mean_adagrad_rise_ : 0.0);
}

double NeuralComputeModel::tangent(std::span<const double> state, double smoothing,
                                   std::span<double> slopes) const {
  std::fill(slopes.begin(), slopes.end(), 0.0);
  if (!is_convex_increasing()) return 0.0;
  // The elements that `bound` is a function of.
  const std::size_t before = has_widest_factors() ? plain_size() - 1 : 0;
  slopes[before + 1] = 1.0;
  double constant = mean_offset_;
  if (has_adagrad_offset(state.data(), {})) constant += mean_adagrad_rise_;
  for (std::size_t unit = 0; unit < head_bias_.size(); ++unit) {
    const double sum = state[before + 2 + unit];
    const double excess = sum + head_bias_[unit];
    // max(z, 0) is no less than any share of z in [0, 1].
    double share = excess > 0.0 ? 1.0 : 0.0;
    const double width = smoothing * (sum - head_bias_[unit]);
    if (width > 0.0) share = 1.0 / (1.0 + std::exp(-excess / width));
    const double slope = share * mean_output_[unit];
    slopes[before + 2 + unit] = slope;
    constant += slope * head_bias_[unit];
  }
  return constant;
}

void NeuralComputeModel::plain_costs_with(std::span<const double> states, std::size_t stride,
                                          std::span<const double> piece,
                                          std::span<double> costs) const {
  kernels::head_costs(states.data(), costs.size(), stride, piece.empty() ? nullptr : piece.data(),
                      head_bias_.size(), head_bias_.data(), mean_output_.data(), mean_offset_,
                      costs.data());
  // The published network may predict a negative cost; ours cannot.
  if (architecture() == ComputeArchitecture::published) {
    for (double& cost : costs) cost = std::max(cost, 0.0);
  }
}

double NeuralComputeModel::add_and_cost(std::span<double> state,
                                        std::span<const double> piece) const {
  assert(state.size() == state_size() && piece.size() == state_size());
  if (has_widest_factors()) return ComputeCostModel::add_and_cost(state, piece);
  const double cost =
      kernels::add_and_cost(state.data(), piece.data(), state.size(), head_bias_.size(),
                            head_bias_.data(), mean_output_.data(), mean_offset_);
  if (has_adagrad_offset(state.data(), {})) return cost + mean_adagrad_rise_;
  return architecture() == ComputeArchitecture::published ? std::max(cost, 0.0) : cost;
}

void NeuralComputeModel::member_costs(std::span<const double> states, std::span<const double> piece,
                                      std::span<double> costs) const {
  const std::size_t count = members_.size();
  const std::size_t stride = state_size();
  if (has_widest_factors()) {
    static thread_local std::vector<double> plain;
    plain.resize(plain_size());
    for (std::size_t i = 0; i * stride < states.size(); ++i) {
      write_scaled(states.data() + i * stride, piece.empty() ? nullptr : piece.data(), plain);
      plain_member_costs(plain, plain_size(), {}, costs.subspan(i * count, count));
    }
  } else {
    plain_member_costs(states, stride, piece, costs);
  }
  if (!has_optimizer_offsets()) return;
  for (std::size_t i = 0; i * stride < states.size(); ++i) {
    if (!has_adagrad_offset(states.data() + i * stride, piece)) continue;
    for (std::size_t m = 0; m < count; ++m) costs[i * count + m] += adagrad_rise_[m];
  }
}

void NeuralComputeModel::plain_member_costs(std::span<const double> states, std::size_t stride,
                                            std::span<const double> piece,
                                            std::span<double> costs) const {
  const std::size_t count = members_.size();
  if (count == 1) return plain_costs_with(states, stride, piece, costs);
  const std::size_t linear_at = 2 + head_bias_.size();
  assert(states.size() * count == costs.size() * stride);
  for (std::size_t i = 0; i * stride < states.size(); ++i) {
    const double* state = states.data() + i * stride;
    const std::span<double> of_state = costs.subspan(i * count, count);
    if (piece.empty() && state[0] == 0.0) {
      std::fill(of_state.begin(), of_state.end(), 0.0);
      continue;
    }
    kernels::member_sums(state + 2, piece.empty() ? nullptr : piece.data() + 2, hidden_.data(),
                         count, head_bias_.data(), head_output_.data(), of_state.data());
    for (std::size_t m = 0; m < count; ++m) {
      double& cost = of_state[m];
      cost += static_cast<double>(members_[m].offset) + state[linear_at + m];
      if (!piece.empty()) cost += piece[linear_at + m];
      cost = std::max(cost, 0.0);  // as above
    }
  }
}

}  // namespace neuroshard
