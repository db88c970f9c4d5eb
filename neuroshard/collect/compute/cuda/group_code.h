// Conventions of code that a group of GPU threads runs together. It is written against an
// interface, *group*, with one implementation for GPU threads (device_group.cuh) and one for the
// host, on which the tests run the very same code.
//
// A group has as many threads as a row has vectors (of 16 bytes, usually), 32 at the most: a *tile*
// of a row is spread over its threads, one vector each, and everything else (rows, positions,
// conditions) is the same for all of them. It offers
//
//   Tile<E>, Weights<T, E>                       a tile of floats; one of weights, as in memory
//   set_vectors(n)                               threads n, n + 1, ... have no part in a tile
//   leads()                                      true for one thread
//   zero(tile), clear(weights)
//   load(tile, const float*), store(float*, tile)
//   load(weights, const T*), load_shared(...)    the latter where nobody writes meanwhile
//   prefetch(pointer)                            what lies there will be read soon
//   descend(T*, weights, tile, rate)             stores weights - rate * tile
//   add(tile, tile), add(tile, weights)
//   sum_of_squares(tile), broadcast(leader's value)
//
// All threads of a group make each call together.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define NEUROSHARD_GROUP_CODE __device__ __forceinline__
#define NEUROSHARD_HOST_DEVICE __host__ __device__ __forceinline__
#define NEUROSHARD_UNROLL _Pragma("unroll")
#else
#define NEUROSHARD_GROUP_CODE inline
#define NEUROSHARD_HOST_DEVICE inline
#define NEUROSHARD_UNROLL
#endif

namespace neuroshard::cuda {

/// An fp16 weight as it lies in memory.
struct Half {
  std::uint16_t bits = 0;
};

}  // namespace neuroshard::cuda
