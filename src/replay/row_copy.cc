#include "replay/row_copy.h"

#include <algorithm>

namespace quern::replay {
namespace {

constexpr size_t kWord = sizeof(uint64_t);

size_t bytes_to_alignment(const std::byte* at) { return -reinterpret_cast<uintptr_t>(at) % kWord; }

uint64_t word_at(const std::byte* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, kWord);
  return word;
}

void store_bytes(std::byte* row, const std::byte* from, size_t count) {
  for (size_t i = 0; i < count; ++i) store_shared(row + i, from[i]);
}

void load_bytes(std::byte* to, const std::byte* row, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = load_shared<std::byte>(row + i);
}

}  // namespace

void copy_to_row(std::byte* row, const std::byte* from, size_t bytes) noexcept {
  const size_t head = std::min(bytes_to_alignment(row), bytes);
  store_bytes(row, from, head);
  size_t i = head;
  for (; i + kWord <= bytes; i += kWord) store_shared(row + i, word_at(from + i));
  store_bytes(row + i, from + i, bytes - i);
}

void copy_from_row(std::byte* to, const std::byte* row, size_t bytes) noexcept {
  const size_t head = std::min(bytes_to_alignment(row), bytes);
  load_bytes(to, row, head);
  size_t i = head;
  for (; i + kWord <= bytes; i += kWord) {
    const auto word = load_shared<uint64_t>(row + i);
    std::memcpy(to + i, &word, kWord);
  }
  load_bytes(to + i, row + i, bytes - i);
}

}  // namespace quern::replay
