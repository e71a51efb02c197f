// The bytes of every id of a vocabulary, in contiguous memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quern::data {

class TokenTable {
 public:
  // Appends a token; its id is the previous size.
  void add(std::string_view bytes) {
    bytes_ += bytes;
    ends_.push_back(bytes_.size());
  }

  int32_t size() const noexcept { return static_cast<int32_t>(ends_.size()); }

  // 0 <= id < size().
  std::string_view operator[](int32_t id) const noexcept {
    const auto index = static_cast<size_t>(id);
    const size_t start = index == 0 ? 0 : ends_[index - 1];
    return std::string_view(bytes_).substr(start, ends_[index] - start);
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

}  // namespace quern::data
