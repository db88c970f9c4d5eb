// Arrays one after the other on the host as they will lie on the device, so that one copy brings
// them there.
#pragma once

#include <cstddef>
#include <string>

namespace neuroshard::cuda {

class Packing {
 public:
  /// Multiples of this many bytes: what every kind of access is aligned for.
  static constexpr std::size_t kAlignment = 256;

  /// Returns where it begins, in bytes.
  template <class T>
  std::size_t add(const T* values, std::size_t count) {
    const std::size_t first = bytes_.size();
    bytes_.append(reinterpret_cast<const char*>(values), count * sizeof(T));
    bytes_.append((kAlignment - bytes_.size() % kAlignment) % kAlignment, '\0');
    return first;
  }

  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace neuroshard::cuda
