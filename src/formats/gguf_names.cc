#include "formats/gguf_names.h"

#include <fmt/format.h>

#include <array>
#include <cassert>
#include <utility>

#include "nn/layers/adapter.h"

namespace quern::formats {
namespace {

enum class Layout : uint8_t { kSame, kTransposed, kPairs };

struct NamePair {
  std::string_view ours, theirs;
  Layout layout = Layout::kSame;  // of weights; biases are never transposed
};

constexpr std::array<NamePair, 6> kOutside = {{{"wte", "token_embd"},
                                               {"wpe", "position_embd"},
                                               {"ln_f", "output_norm"},
                                               {"model.embed_tokens", "token_embd"},
                                               {"model.norm", "output_norm"},
                                               {"lm_head", "output"}}};

constexpr std::array<NamePair, 6> kGpt2Block = {{{"ln_1", "attn_norm"},
                                                 {"ln_2", "ffn_norm"},
                                                 {"attn.c_attn", "attn_qkv", Layout::kTransposed},
                                                 {"attn.c_proj", "attn_output", Layout::kTransposed},
                                                 {"mlp.c_fc", "ffn_up", Layout::kTransposed},
                                                 {"mlp.c_proj", "ffn_down", Layout::kTransposed}}};

constexpr std::array<NamePair, 11> kLlamaBlock = {{{"input_layernorm", "attn_norm"},
                                                   {"post_attention_layernorm", "ffn_norm"},
                                                   {"self_attn.q_proj", "attn_q", Layout::kPairs},
                                                   {"self_attn.k_proj", "attn_k", Layout::kPairs},
                                                   {"self_attn.v_proj", "attn_v"},
                                                   {"self_attn.o_proj", "attn_output"},
                                                   {"self_attn.q_norm", "attn_q_norm"},
                                                   {"self_attn.k_norm", "attn_k_norm"},
                                                   {"mlp.gate_proj", "ffn_gate"},
                                                   {"mlp.up_proj", "ffn_up"},
                                                   {"mlp.down_proj", "ffn_down"}}};

template <typename Table>
const NamePair& find(const Table& table, std::string_view name) {
  for (const NamePair& pair : table) {
    if (pair.ours == name) return pair;
  }
  assert(!"not a parameter of the model");
  return table[0];
}

// Row r of one order, as a row of the other.
size_t pairs_to_halves(size_t row, size_t head) {
  const size_t in_head = row % head;
  return row - in_head + in_head % 2 * (head / 2) + in_head / 2;
}
size_t halves_to_pairs(size_t row, size_t head) {
  const size_t in_head = row % head, half = head / 2;
  return row - in_head + in_head % half * 2 + in_head / half;
}

}  // namespace

GgufPlace gguf_place(const nn::ModelConfig& model, std::string_view parameter) {
  const size_t dot = parameter.rfind('.');  // before "weight" or "bias"
  const std::string_view kind = parameter.substr(dot);
  std::string_view name = parameter.substr(0, dot);
  const std::string_view blocks = model.is_gpt2() ? "h." : "model.layers.";
  if (!name.starts_with(blocks)) return {.name = fmt::format("{}{}", find(kOutside, name).theirs, kind)};
  name.remove_prefix(blocks.size());
  const size_t end = name.find('.');
  const std::string_view inner = name.substr(end + 1);
  const NamePair& pair = model.is_gpt2() ? find(kGpt2Block, inner) : find(kLlamaBlock, inner);
  return {.name = fmt::format("blk.{}.{}{}", name.substr(0, end), pair.theirs, kind),
          .is_transposed = pair.layout == Layout::kTransposed && kind == ".weight",
          .has_pairs = pair.layout == Layout::kPairs && model.family == nn::Family::kLlama};
}

TensorSource to_gguf(const nn::ModelConfig& model, const GgufPlace& place, TensorSource parameter) {
  if (place.is_transposed) return transposed(std::move(parameter));
  if (!place.has_pairs) return parameter;
  return with_rows_from(std::move(parameter), [head = model.head_dim()](size_t r) { return pairs_to_halves(r, head); });
}

TensorSource from_gguf(const nn::ModelConfig& model, const GgufPlace& place, TensorSource stored) {
  if (place.is_transposed) return transposed(std::move(stored));
  if (!place.has_pairs) return stored;
  return with_rows_from(std::move(stored), [head = model.head_dim()](size_t r) { return halves_to_pairs(r, head); });
}

TensorSource adapter_to_gguf(const nn::ModelConfig& model, TensorSource matrix) {
  const bool is_a = matrix.name.ends_with(nn::kAdapterA);
  const std::string_view layer = std::string_view(matrix.name).substr(0, matrix.name.size() - nn::kAdapterA.size());
  GgufPlace place = gguf_place(model, fmt::format("{}.weight", layer));
  place.is_transposed = false;  // both are (out, in) in every family
  if (is_a) place.has_pairs = false;
  matrix.name = fmt::format("{}.lora_{}", place.name, is_a ? 'a' : 'b');
  return to_gguf(model, place, std::move(matrix));
}

}  // namespace quern::formats
