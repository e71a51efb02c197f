// What one rendering may use, and where in the template it is, for messages. Templates are not trusted.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <utility>

#include "core/error.h"

namespace quern::chat {

inline constexpr size_t kMaxTemplateBytes = size_t{1} << 20;  // published chat templates have 1 to 17 KB
inline constexpr size_t kMaxOutputBytes = size_t{64} << 20;
inline constexpr size_t kMaxSteps = 50'000'000;  // a few seconds
// Of all values that a rendering computes, including those it has dropped: a sum that needs no bookkeeping, and an
// upper bound of the memory in use at any moment.
inline constexpr size_t kMaxComputedBytes = size_t{256} << 20;
inline constexpr size_t kMaxRange = 100'000;    // as Jinja2's sandbox
inline constexpr size_t kMaxSyntaxDepth = 150;  // of brackets, operators and blocks inside each other
inline constexpr size_t kMaxCallDepth = 500;    // evaluations inside each other: less than 512 KB of stack
inline constexpr size_t kMaxValueDepth = 100;   // of lists and dicts inside each other

class Budget {
 public:
  explicit Budget(std::string name) : name_(std::move(name)) {}

  void at_line(int line) noexcept { line_ = line; }
  int line() const noexcept { return line_; }

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error("[template] {}:{}: {}", name_, line_, fmt::format(format, std::forward<Args>(args)...));
  }

  void step(size_t count = 1) {
    if (count > steps_) fail("takes more than {} steps to render", kMaxSteps);
    steps_ -= count;
  }

  // Before work on this many bytes of text. 64 bytes count as one step: copying and searching are that much faster
  // than evaluating an expression.
  void read(size_t bytes) { step(bytes / 64 + 1); }

  // Before creating a value of this many bytes.
  void allocate(size_t bytes) {
    if (bytes > bytes_) fail("computes values of more than {} MiB", kMaxComputedBytes >> 20);
    bytes_ -= bytes;
    read(bytes);
  }

 private:
  std::string name_;
  int line_ = 1;
  size_t steps_ = kMaxSteps;
  size_t bytes_ = kMaxComputedBytes;
};

}  // namespace quern::chat
