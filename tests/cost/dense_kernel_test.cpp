// The dense layer of rounded products against plain loops, bit for bit, on every instruction set.
#include "neuroshard/cost/dense_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "neuroshard/core/numbers/random.h"
#include "tests/cost/instruction_sets.h"

namespace neuroshard {
namespace {

struct Layer {
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  std::vector<float> x;
  std::vector<float> weights;
  std::vector<float> bias{};  ///< empty: none
  bool relu = false;
};

std::vector<float> uniform_values(std::size_t count, Random& random) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.uniform(-2.0, 2.0));
  return values;
}

Layer random_layer(std::size_t inputs, std::size_t outputs, Random& random) {
  Layer layer{inputs, outputs, uniform_values(inputs, random),
              uniform_values(inputs * outputs, random)};
  for (float& value : layer.x) {
    if (random.below(4) == 0) value = 0.0F;  // as behind a ReLU
  }
  if (random.below(2) == 0) layer.bias = uniform_values(outputs, random);
  layer.relu = random.below(2) == 0;
  return layer;
}

std::vector<float> by_plain_loops(const Layer& layer) {
  const std::size_t block = layer.inputs < 128 ? layer.inputs : 16;
  std::vector<float> y;
  for (std::size_t o = 0; o < layer.outputs; ++o) {
    float total = 0.0F;
    for (std::size_t first = 0; first < layer.inputs; first += block) {
      float sum = 0.0F;
      for (std::size_t i = first; i < std::min(first + block, layer.inputs); ++i) {
        // Volatile, so that it is rounded before it is added.
        const volatile float product = layer.x[i] * layer.weights[i * layer.outputs + o];
        sum += product;
      }
      total += sum;
    }
    if (!layer.bias.empty()) total += layer.bias[o];
    y.push_back(layer.relu ? std::max(total, 0.0F) : total);
  }
  return y;
}

void expect_matches(const Layer& layer, const std::vector<float>& expected) {
  constexpr float kUntouched = 77.0F;
  std::vector<float> y(layer.outputs + 16, kUntouched);
  kernels::dense_row_rounded(layer.x.data(), layer.inputs, layer.weights.data(),
                             layer.bias.empty() ? nullptr : layer.bias.data(), layer.outputs,
                             layer.relu, y.data());
  for (std::size_t o = 0; o < y.size(); ++o) {
    const float value = o < layer.outputs ? expected[o] : kUntouched;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(y[o]), std::bit_cast<std::uint32_t>(value))
        << "output " << o << " of " << layer.outputs << ", " << layer.inputs << " inputs, "
        << (layer.bias.empty() ? "no bias, " : "bias, ") << (layer.relu ? "relu" : "no relu");
  }
}

void expect_match(const std::vector<Layer>& layers) {
  std::vector<std::vector<float>> expected;
  for (const Layer& layer : layers) expected.push_back(by_plain_loops(layer));
  testing_kernels::on_every_instruction_set([&] {
    for (std::size_t i = 0; i < layers.size(); ++i) expect_matches(layers[i], expected[i]);
  });
}

TEST(DenseKernel, RoundedProductsAreSummedInOneOrderForEveryNumberOfOutputs) {
  Random random(21);
  std::vector<Layer> layers;
  for (std::size_t outputs = 1; outputs <= 150; ++outputs) {
    layers.push_back(random_layer(38, outputs, random));
    layers.push_back(random_layer(130, outputs, random));
  }
  expect_match(layers);
}

TEST(DenseKernel, RoundedProductsAreSummedInOneOrderForEveryNumberOfInputs) {
  Random random(22);
  std::vector<Layer> layers;
  for (std::size_t inputs = 1; inputs <= 300; ++inputs) {
    layers.push_back(random_layer(inputs, 1 + random.below(150), random));
  }
  expect_match(layers);
}

}  // namespace
}  // namespace neuroshard
