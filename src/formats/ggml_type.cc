#include "formats/ggml_type.h"

#include <algorithm>
#include <array>

namespace quern::formats {
namespace {

constexpr GgmlType id(uint32_t number) { return static_cast<GgmlType>(number); }

// Blocks of 32 and super-blocks of 256 values; the sizes are part of the format.
constexpr std::array<GgmlTypeFacts, 33> kTypes = {{{GgmlType::kF32, "F32", 1, 4},
                                                   {GgmlType::kF16, "F16", 1, 2},
                                                   {GgmlType::kQ4_0, "Q4_0", 32, 18},
                                                   {GgmlType::kQ4_1, "Q4_1", 32, 20},
                                                   {id(6), "Q5_0", 32, 22},
                                                   {id(7), "Q5_1", 32, 24},
                                                   {GgmlType::kQ8_0, "Q8_0", 32, 34},
                                                   {id(9), "Q8_1", 32, 36},
                                                   {id(10), "Q2_K", 256, 84},
                                                   {id(11), "Q3_K", 256, 110},
                                                   {id(12), "Q4_K", 256, 144},
                                                   {id(13), "Q5_K", 256, 176},
                                                   {id(14), "Q6_K", 256, 210},
                                                   {id(15), "Q8_K", 256, 292},
                                                   {id(16), "IQ2_XXS", 256, 66},
                                                   {id(17), "IQ2_XS", 256, 74},
                                                   {id(18), "IQ3_XXS", 256, 98},
                                                   {id(19), "IQ1_S", 256, 50},
                                                   {id(20), "IQ4_NL", 32, 18},
                                                   {id(21), "IQ3_S", 256, 110},
                                                   {id(22), "IQ2_S", 256, 82},
                                                   {id(23), "IQ4_XS", 256, 136},
                                                   {id(24), "I8", 1, 1},
                                                   {id(25), "I16", 1, 2},
                                                   {id(26), "I32", 1, 4},
                                                   {id(27), "I64", 1, 8},
                                                   {id(28), "F64", 1, 8},
                                                   {id(29), "IQ1_M", 256, 56},
                                                   {GgmlType::kBF16, "BF16", 1, 2},
                                                   {id(34), "TQ1_0", 256, 54},
                                                   {id(35), "TQ2_0", 256, 66},
                                                   {id(39), "MXFP4", 32, 17},
                                                   {id(40), "NVFP4", 64, 36}}};

}  // namespace

std::optional<GgmlTypeFacts> ggml_type_facts(uint32_t number) noexcept {
  const auto found =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const GgmlTypeFacts& facts) { return facts.type == id(number); });
  return found == kTypes.end() ? std::nullopt : std::optional(*found);
}

bool is_convertible(GgmlType type) noexcept {
  switch (type) {
    case GgmlType::kF32:
    case GgmlType::kF16:
    case GgmlType::kBF16:
    case GgmlType::kQ8_0:
    case GgmlType::kQ4_0:
    case GgmlType::kQ4_1:
      return true;
  }
  return false;
}

}  // namespace quern::formats
