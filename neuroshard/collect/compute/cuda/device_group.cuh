// A group of GPU threads (group_code.h): as many neighbouring threads of a block as a tile has
// vectors, or the next power of two where they combine their values.
#pragma once

#include <cuda_fp16.h>

#include "neuroshard/collect/compute/cuda/group_code.h"
#include "neuroshard/collect/compute/cuda/launch_plan.h"

namespace neuroshard::cuda {

/// What one thread reads of a row at once.
template <int kBytes>
struct AccessOf;
template <>
struct AccessOf<16> {
  using Type = uint4;
};
template <>
struct AccessOf<8> {
  using Type = uint2;
};
template <>
struct AccessOf<4> {
  using Type = unsigned;
};
template <>
struct AccessOf<2> {
  using Type = unsigned short;
};

class DeviceGroup {
 public:
  template <int E>
  struct Tile {
    float values[E];
  };
  template <class T, int E>
  struct alignas(sizeof(T) * E) Weights {
    using Access = typename AccessOf<static_cast<int>(sizeof(T)) * E>::Type;
    T values[E];
  };

  __device__ explicit DeviceGroup(int lanes)
      : lanes_(lanes), lane_(static_cast<int>(threadIdx.x) % lanes) {}

  __device__ void set_vectors(int vectors) { takes_part_ = lane_ < vectors; }
  __device__ bool leads() const { return lane_ == 0; }

  template <int E>
  __device__ void zero(Tile<E>& tile) const {
#pragma unroll
    for (int i = 0; i < E; ++i) tile.values[i] = 0.0F;
  }
  template <class T, int E>
  __device__ void clear(Weights<T, E>& weights) const {
#pragma unroll
    for (int i = 0; i < E; ++i) weights.values[i] = T{};
  }

  template <int E>
  __device__ void load(Tile<E>& tile, const float* from) const {
    if (!takes_part_) return;
    from += lane_ * E;
    if constexpr (E % 4 == 0) {
#pragma unroll
      for (int i = 0; i < E; i += 4) {
        const float4 part = *reinterpret_cast<const float4*>(from + i);
        tile.values[i] = part.x;
        tile.values[i + 1] = part.y;
        tile.values[i + 2] = part.z;
        tile.values[i + 3] = part.w;
      }
    } else {
      tile.values[0] = *from;
    }
  }
  /// What is written is read by other kernels, much later: it should not push rows out of the
  /// cache.
  template <int E>
  __device__ void store(float* to, const Tile<E>& tile) const {
    if (!takes_part_) return;
    to += lane_ * E;
    if constexpr (E % 4 == 0) {
#pragma unroll
      for (int i = 0; i < E; i += 4) {
        __stcs(reinterpret_cast<float4*>(to + i),
               make_float4(tile.values[i], tile.values[i + 1], tile.values[i + 2],
                           tile.values[i + 3]));
      }
    } else {
      __stcs(to, tile.values[0]);
    }
  }

  template <class T, int E>
  __device__ void load(Weights<T, E>& weights, const T* from) const {
    using Access = typename Weights<T, E>::Access;
    if (!takes_part_) return;
    *reinterpret_cast<Access*>(weights.values) = *reinterpret_cast<const Access*>(from + lane_ * E);
  }
  template <class T, int E>
  __device__ void load_shared(Weights<T, E>& weights, const T* from) const {
    using Access = typename Weights<T, E>::Access;
    if (!takes_part_) return;
    *reinterpret_cast<Access*>(weights.values) =
        __ldg(reinterpret_cast<const Access*>(from + lane_ * E));
  }
  template <class T, int E>
  __device__ void descend(T* to, const Weights<T, E>& weights, const Tile<E>& gradient,
                          float rate) const {
    using Access = typename Weights<T, E>::Access;
    if (!takes_part_) return;
    Weights<T, E> updated;
#pragma unroll
    for (int i = 0; i < E; ++i) {
      set(updated.values[i], as_float(weights.values[i]) - rate * gradient.values[i]);
    }
    *reinterpret_cast<Access*>(to + lane_ * E) = *reinterpret_cast<const Access*>(updated.values);
  }

  template <int E>
  __device__ void add(Tile<E>& sum, const Tile<E>& tile) const {
#pragma unroll
    for (int i = 0; i < E; ++i) sum.values[i] += tile.values[i];
  }
  template <class T, int E>
  __device__ void add(Tile<E>& sum, const Weights<T, E>& weights) const {
    if (!takes_part_) return;
#pragma unroll
    for (int i = 0; i < E; ++i) sum.values[i] += as_float(weights.values[i]);
  }

  /// Of groups of a power of two only, as `broadcast`: they do not reach over the end of a warp.
  template <int E>
  __device__ float sum_of_squares(const Tile<E>& tile) const {
    float sum = 0.0F;
    if (takes_part_) {
#pragma unroll
      for (int i = 0; i < E; ++i) sum += tile.values[i] * tile.values[i];
    }
    for (int step = lanes_ / 2; step > 0; step /= 2) {
      sum += __shfl_xor_sync(mask(), sum, step, lanes_);
    }
    return sum;
  }
  __device__ float broadcast(float value) const { return __shfl_sync(mask(), value, 0, lanes_); }

 private:
  /// The group's threads among those of the warp.
  __device__ unsigned mask() const {
    const unsigned first =
        threadIdx.x % 32U / static_cast<unsigned>(lanes_) * static_cast<unsigned>(lanes_);
    return lanes_ == 32 ? ~0U : ((1U << lanes_) - 1U) << first;
  }

  static __device__ float as_float(float weight) { return weight; }
  static __device__ float as_float(Half weight) {
    return __half2float(__ushort_as_half(weight.bits));
  }
  static __device__ void set(float& weight, float value) { weight = value; }
  static __device__ void set(Half& weight, float value) {
    weight.bits = __half_as_ushort(__float2half_rn(value));
  }

  int lanes_;
  int lane_;
  bool takes_part_ = true;
};

}  // namespace neuroshard::cuda
