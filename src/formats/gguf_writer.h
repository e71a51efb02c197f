// Writes GGUF files, version 3 (formats/gguf.h describes the format).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/files.h"
#include "formats/tensor_source.h"

namespace quern::formats {

// Keys with their values, in the order in which they are written.
class GgufKeys {
 public:
  using Value = std::variant<bool, uint32_t, float, std::string, std::vector<std::string>, std::vector<int32_t>,
                             std::vector<float>>;

  // Named by type, because a literal of the wrong type would be a key that no program finds.
  void add_flag(std::string name, bool value) { add(std::move(name), value); }
  void add_whole(std::string name, uint64_t value);  // as u32; Error if it does not fit
  void add_real(std::string name, double value) { add(std::move(name), static_cast<float>(value)); }
  void add_text(std::string name, std::string value) { add(std::move(name), std::move(value)); }
  void add_texts(std::string name, std::vector<std::string> list) { add(std::move(name), std::move(list)); }
  void add_whole_list(std::string name, std::vector<int32_t> list) { add(std::move(name), std::move(list)); }
  void add_real_list(std::string name, std::vector<float> list) { add(std::move(name), std::move(list)); }

  std::span<const std::pair<std::string, Value>> all() const { return keys_; }

 private:
  void add(std::string name, Value value) { keys_.emplace_back(std::move(name), std::move(value)); }

  std::vector<std::pair<std::string, Value>> keys_;
};

// A tensor and the format to store it in, of whose blocks a row is a multiple. The name has at most kMaxGgufName bytes.
struct GgufOutputTensor {
  TensorSource source;
  GgmlType type = GgmlType::kF32;
};

// Writes a complete file to `file`, and does not close it. Tensors are converted a piece at a time. Names must be
// unique.
void write_gguf(FileWriter& file, const GgufKeys& keys, std::span<const GgufOutputTensor> tensors);

}  // namespace quern::formats
