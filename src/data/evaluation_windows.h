// What a loss is measured on: sequences that are the same at every evaluation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::data {

// Where the columns of some windows go: (windows, context) each.
struct WindowColumns {
  int32_t* tokens;
  int32_t* targets;              // kNoTarget where none counts
  int32_t* positions = nullptr;  // within documents; null if windows have one document each
};

class EvaluationWindows {
 public:
  virtual ~EvaluationWindows() = default;

  virtual uint64_t windows() const = 0;
  virtual uint64_t targets() const = 0;  // that count, of all windows
  // Whether a window can have several documents, so that positions are needed.
  virtual bool has_documents() const { return false; }
  // Windows first ... first + count - 1, all below windows(). Thread-safe; does not allocate.
  virtual void fill(uint64_t first, uint32_t count, const WindowColumns& out) const = 0;

 protected:
  EvaluationWindows() = default;
  EvaluationWindows(const EvaluationWindows&) = default;
  EvaluationWindows& operator=(const EvaluationWindows&) = default;
};

}  // namespace quern::data
