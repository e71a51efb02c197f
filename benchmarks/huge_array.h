// An array on huge pages, as the buffers of a run are.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace quern::bench {

template <typename T>
class HugeArray {
 public:
  explicit HugeArray(size_t n, T value = T{}) : size_(n) {
    const size_t bytes = (n * sizeof(T) + kHugePage - 1) / kHugePage * kHugePage;
    data_ = static_cast<T*>(std::aligned_alloc(kHugePage, bytes));
    if (data_ == nullptr) throw std::bad_alloc();
    madvise(data_, bytes, MADV_HUGEPAGE);
    for (size_t i = 0; i < n; ++i) data_[i] = value;
  }
  HugeArray(const HugeArray&) = delete;
  HugeArray& operator=(const HugeArray&) = delete;
  ~HugeArray() { std::free(data_); }

  T* data() { return data_; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data_[i]; }

 private:
  static constexpr size_t kHugePage = size_t{2} << 20;
  size_t size_;
  T* data_;
};

}  // namespace quern::bench
