// A group of threads on the host: a tile is whole, and the joint work of its threads is done
// sequentially, in the order in which GPU threads combine it (device_group.cuh).
#pragma once

#include <Eigen/Core>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include "neuroshard/collect/compute/cuda/group_code.h"
#include "neuroshard/collect/compute/cuda/launch_plan.h"

namespace neuroshard::cuda {

class HostGroup {
 public:
  template <int E>
  struct Tile {
    std::array<float, static_cast<std::size_t>(E) * kMostLanes> values;
  };
  template <class T, int E>
  struct Weights {
    std::array<T, static_cast<std::size_t>(E) * kMostLanes> values;
  };

  explicit HostGroup(int lanes) : lanes_(lanes) {}

  void set_vectors(int vectors) { vectors_ = vectors; }
  [[nodiscard]] static bool leads() { return true; }

  template <int E>
  void zero(Tile<E>& tile) const {
    tile.values.fill(0.0F);
  }
  template <class T, int E>
  void clear(Weights<T, E>& weights) const {
    weights.values.fill(T{});
  }
  template <int E>
  void load(Tile<E>& tile, const float* from) const {
    std::memcpy(tile.values.data(), from, sizeof(float) * count<E>());
  }
  template <int E>
  void store(float* to, const Tile<E>& tile) const {
    std::memcpy(to, tile.values.data(), sizeof(float) * count<E>());
  }
  template <class T, int E>
  void load(Weights<T, E>& weights, const T* from) const {
    std::memcpy(weights.values.data(), from, sizeof(T) * count<E>());
  }
  template <class T, int E>
  void load_shared(Weights<T, E>& weights, const T* from) const {
    load(weights, from);
  }
  /// Reads a byte, so that AddressSanitizer finds an address out of bounds.
  static void prefetch(const void* place) { (void)*static_cast<const volatile char*>(place); }
  template <class T, int E>
  void descend(T* to, const Weights<T, E>& weights, const Tile<E>& gradient, float rate) const {
    for (std::size_t i = 0; i < count<E>(); ++i) {
      set(to[i], as_float(weights.values[i]) - rate * gradient.values[i]);
    }
  }
  template <int E>
  void add(Tile<E>& sum, const Tile<E>& tile) const {
    for (std::size_t i = 0; i < count<E>(); ++i) sum.values[i] += tile.values[i];
  }
  template <class T, int E>
  void add(Tile<E>& sum, const Weights<T, E>& weights) const {
    for (std::size_t i = 0; i < count<E>(); ++i) sum.values[i] += as_float(weights.values[i]);
  }
  template <int E>
  [[nodiscard]] float sum_of_squares(const Tile<E>& tile) const {
    std::array<float, kMostLanes> sums{};
    for (std::size_t i = 0; i < count<E>(); ++i) {
      sums[i / E] += tile.values[i] * tile.values[i];
    }
    EXPECT_TRUE(std::has_single_bit(static_cast<unsigned>(lanes_))) << lanes_;
    for (int step = lanes_ / 2; step > 0; step /= 2) {
      for (int lane = 0; lane < step; ++lane) sums[lane] += sums[lane + step];
    }
    return sums[0];
  }
  [[nodiscard]] static float broadcast(float value) { return value; }

 private:
  template <int E>
  [[nodiscard]] std::size_t count() const {
    EXPECT_LE(vectors_, lanes_);
    return static_cast<std::size_t>(vectors_) * E;
  }
  static float as_float(float weight) { return weight; }
  static float as_float(Half weight) {
    return static_cast<float>(std::bit_cast<Eigen::half>(weight));
  }
  static void set(float& weight, float value) { weight = value; }
  static void set(Half& weight, float value) {
    weight = std::bit_cast<Half>(static_cast<Eigen::half>(value));
  }

  int lanes_;
  int vectors_ = 0;
};

}  // namespace neuroshard::cuda
