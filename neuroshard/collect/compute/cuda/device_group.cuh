// A group of GPU threads (group_code.h): as many neighbouring threads of a block as a tile has
// vectors, or the next power of two where they combine their values.
#pragma once

#include <cuda_fp16.h>

#include "neuroshard/collect/compute/cuda/group_code.h"
#include "neuroshard/collect/compute/cuda/launch_plan.h"

namespace neuroshard::cuda {

class DeviceGroup {
 public:
  template <int E>
  struct Tile {
    float values[E];
  };
  /// In words of 32 bits, loaded and stored as one vector.
  template <class T, int E>
  struct Weights {
    static constexpr int kBytes = static_cast<int>(sizeof(T)) * E;
    static constexpr int kWords = (kBytes + 3) / 4;
    unsigned words[kWords];
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
    for (int i = 0; i < Weights<T, E>::kWords; ++i) weights.words[i] = 0;
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
  /// Stores are read by other kernels, much later: they should not evict rows from the cache.
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

  static __device__ void prefetch(const void* place) {
    asm volatile("prefetch.L1 [%0];" ::"l"(place));
  }

  template <class T, int E>
  __device__ void load(Weights<T, E>& weights, const T* from) const {
    if (!takes_part_) return;
    from += lane_ * E;
    if constexpr (Weights<T, E>::kBytes == 16) {
      unpack(*reinterpret_cast<const uint4*>(from), weights.words);
    } else if constexpr (Weights<T, E>::kBytes == 8) {
      unpack(*reinterpret_cast<const uint2*>(from), weights.words);
    } else if constexpr (Weights<T, E>::kBytes == 4) {
      weights.words[0] = *reinterpret_cast<const unsigned*>(from);
    } else {
      weights.words[0] = *reinterpret_cast<const unsigned short*>(from);
    }
  }
  template <class T, int E>
  __device__ void load_shared(Weights<T, E>& weights, const T* from) const {
    if (!takes_part_) return;
    from += lane_ * E;
    if constexpr (Weights<T, E>::kBytes == 16) {
      unpack(__ldg(reinterpret_cast<const uint4*>(from)), weights.words);
    } else if constexpr (Weights<T, E>::kBytes == 8) {
      unpack(__ldg(reinterpret_cast<const uint2*>(from)), weights.words);
    } else if constexpr (Weights<T, E>::kBytes == 4) {
      weights.words[0] = __ldg(reinterpret_cast<const unsigned*>(from));
    } else {
      weights.words[0] = __ldg(reinterpret_cast<const unsigned short*>(from));
    }
  }
  template <class T, int E>
  __device__ void descend(T* to, const Weights<T, E>& weights, const Tile<E>& gradient,
                          float rate) const {
    if (!takes_part_) return;
    to += lane_ * E;
    Weights<T, E> updated;
    clear(updated);
#pragma unroll
    for (int i = 0; i < E; ++i) {
      set<T>(updated.words, i, element<T>(weights.words, i) - rate * gradient.values[i]);
    }
    const unsigned* words = updated.words;
    if constexpr (Weights<T, E>::kBytes == 16) {
      *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
    } else if constexpr (Weights<T, E>::kBytes == 8) {
      *reinterpret_cast<uint2*>(to) = make_uint2(words[0], words[1]);
    } else if constexpr (Weights<T, E>::kBytes == 4) {
      *reinterpret_cast<unsigned*>(to) = words[0];
    } else {
      *reinterpret_cast<unsigned short*>(to) = static_cast<unsigned short>(words[0]);
    }
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
    for (int i = 0; i < E; ++i) sum.values[i] += element<T>(weights.words, i);
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

  static __device__ void unpack(uint4 vector, unsigned* words) {
    words[0] = vector.x;
    words[1] = vector.y;
    words[2] = vector.z;
    words[3] = vector.w;
  }
  static __device__ void unpack(uint2 vector, unsigned* words) {
    words[0] = vector.x;
    words[1] = vector.y;
  }

  /// Weight number `i` of a vector; little-endian, as everything on a GPU.
  template <class T>
  static __device__ float element(const unsigned* words, int i) {
    if constexpr (sizeof(T) == 4) {
      return __uint_as_float(words[i]);
    } else {
      const unsigned bits = words[i / 2] >> (16 * (i % 2));
      return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
    }
  }
  /// Into words that are 0 so far.
  template <class T>
  static __device__ void set(unsigned* words, int i, float value) {
    if constexpr (sizeof(T) == 4) {
      words[i] = __float_as_uint(value);
    } else {
      const unsigned bits = __half_as_ushort(__float2half_rn(value));
      words[i / 2] |= bits << (16 * (i % 2));
    }
  }

  int lanes_;
  int lane_;
  bool takes_part_ = true;
};

}  // namespace neuroshard::cuda
