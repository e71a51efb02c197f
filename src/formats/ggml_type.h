// The number formats of tensors in a GGUF file, with the ids and names of ggml.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace quern::formats {

// Those that Quern converts. The ids of the others are known only for their sizes.
enum class GgmlType : uint32_t { kF32 = 0, kF16 = 1, kQ4_0 = 2, kQ4_1 = 3, kQ8_0 = 8, kBF16 = 30 };

// A row is stored as blocks: `elements` values in `bytes` bytes.
struct GgmlTypeFacts {
  GgmlType type;
  std::string_view name;  // "Q8_0"
  size_t elements;
  size_t bytes;
};

// nullopt for an id that this version does not know, and for those that ggml has removed.
std::optional<GgmlTypeFacts> ggml_type_facts(uint32_t id) noexcept;

inline GgmlTypeFacts facts_of(GgmlType type) noexcept { return *ggml_type_facts(static_cast<uint32_t>(type)); }

// Whether Quern converts tensors of this type to fp32.
bool is_convertible(GgmlType type) noexcept;

}  // namespace quern::formats
