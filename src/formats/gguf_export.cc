// A GGUF file that llama.cpp opens, with the keys and layouts of its own converter.
#include "formats/gguf_export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "formats/gguf_names.h"
#include "formats/gguf_tokenizer.h"
#include "formats/hf_config.h"
#include "formats/rope_factors.h"

namespace quern::formats {
namespace {

namespace fs = std::filesystem;
using nn::ModelConfig;

uint64_t file_type(GgmlType type) {
  switch (type) {
    case GgmlType::kF16:
      return 1;
    case GgmlType::kQ8_0:
      return 7;
    case GgmlType::kBF16:
      return 32;
    default:
      return 0;
  }
}

void add_model_keys(const ModelConfig& model, GgufKeys& keys) {
  const auto key = [&](std::string_view name) { return fmt::format("{}.{}", hf_type(model.family), name); };
  keys.add_whole(key("block_count"), model.layers);
  keys.add_whole(key("context_length"), model.positions_limit());
  keys.add_whole(key("embedding_length"), model.width);
  keys.add_whole(key("feed_forward_length"), model.inner());
  keys.add_whole(key("attention.head_count"), model.heads);
  keys.add_whole(key("vocab_size"), model.vocabulary);
  if (model.is_gpt2()) {
    keys.add_real(key("attention.layer_norm_epsilon"), model.norm_epsilon);
    return;
  }
  keys.add_whole(key("attention.head_count_kv"), model.key_heads());
  keys.add_real(key("attention.layer_norm_rms_epsilon"), model.norm_epsilon);
  keys.add_whole(key("attention.key_length"), model.head_dim());
  keys.add_whole(key("attention.value_length"), model.head_dim());
  keys.add_whole(key("rope.dimension_count"), model.head_dim());
  keys.add_real(key("rope.freq_base"), model.rotary.base);
  if (model.rotary.scaling == nn::RotaryScaling::kLinear) {
    keys.add_text(key("rope.scaling.type"), "linear");
    keys.add_real(key("rope.scaling.factor"), model.rotary.factor);
  }
}

// Vectors and the table of positions stay F32 in every format, as llama-quantize leaves them.
GgmlType type_for(const TensorSource& tensor, const GgufPlace& place, GgmlType wanted) {
  if (tensor.shape.size() == 1 || place.name == "position_embd.weight") return GgmlType::kF32;
  return tensor.row() % facts_of(wanted).elements == 0 ? wanted : GgmlType::kF16;
}

std::vector<GgufOutputTensor> tensors_of(const ExportedModel& exported, GgmlType type,
                                         std::vector<std::string>& remarks) {
  std::vector<GgufOutputTensor> tensors;
  std::vector<std::string> narrow;
  for (const TensorSource& weight : exported.weights) {
    const GgufPlace place = gguf_place(exported.model, weight.name);
    TensorSource source = to_gguf(exported.model, place, weight);
    source.name = place.name;
    const GgmlType stored = type_for(source, place, type);
    if (type == GgmlType::kQ8_0 && stored == GgmlType::kF16) narrow.push_back(place.name);
    tensors.push_back({std::move(source), stored});
  }
  if (!narrow.empty()) {
    remarks.push_back(fmt::format("{} of {} tensors became F16, because their rows are no multiple of 32: {}{}",
                                  narrow.size(), tensors.size(), narrow[0], narrow.size() > 1 ? ", ..." : ""));
  }
  return tensors;
}

// The tensor of factors is what llama.cpp reads; the settings cannot always be found from it.
void add_rope_keys(const nn::RotaryConfig& rotary, GgufKeys& keys) {
  keys.add_real(kRopeFactorKey, rotary.factor);
  keys.add_real(kRopeLowKey, rotary.low_frequency);
  keys.add_real(kRopeHighKey, rotary.high_frequency);
  keys.add_whole(kRopeContextKey, rotary.original_context);
}

}  // namespace

void check_for_llama_cpp(const ExportedModel& exported) {
  const ModelConfig& model = exported.model;
  const auto refuse = [&](std::string_view expected, std::string_view found) {
    throw Error("[export] {}: expected {} for llama.cpp, found {}; export it to hf", exported.name, expected, found);
  };
  if (model.family == nn::Family::kQwen2 && model.heads * model.head_dim() != model.width) {
    refuse("model.head_dim = model.width / model.heads in a qwen2", fmt::format("{}", model.head_dim()));
  }
  if (model.family == nn::Family::kQwen3 && model.attention_bias) {
    refuse("model.attention_bias=false in a qwen3", "true");
  }
  if (model.family != nn::Family::kLlama && model.rotary.scaling == nn::RotaryScaling::kLlama3) {
    refuse("model.rope_scaling=llama3 only in a llama", hf_type(model.family));
  }
}

void add_general_keys(const ExportedModel& exported, std::string_view kind, GgmlType type, GgufKeys& keys) {
  const fs::path name = fs::absolute(exported.name).lexically_normal();
  keys.add_text("general.architecture", std::string(hf_type(exported.model.family)));
  keys.add_text("general.type", std::string(kind));
  keys.add_text("general.name", printable((name.has_filename() ? name : name.parent_path()).filename().string()));
  keys.add_text(kWriterKey, kWriter);
  keys.add_whole("general.file_type", file_type(type));
}

ExportResult export_gguf(const ExportedModel& exported, const fs::path& file, const ExportOptions& options) {
  const GgmlType type = options.type;
  check_for_llama_cpp(exported);
  ExportResult result{.files = {file.filename().string()}, .remarks = {}};
  GgufKeys keys;
  add_general_keys(exported, kModelKind, type, keys);
  if (type == GgmlType::kQ8_0) keys.add_whole("general.quantization_version", 2);
  add_model_keys(exported.model, keys);
  add_tokenizer_keys(exported.tokenizer, exported.model.vocabulary, exported.files, keys, result.remarks);
  std::vector<GgufOutputTensor> tensors = tensors_of(exported, type, result.remarks);
  const bool scaled = exported.model.rotary.scaling == nn::RotaryScaling::kLlama3 && !exported.model.is_gpt2();
  const std::vector<float> factors =
      scaled ? rope_factors(exported.model.rotary, exported.model.head_dim()) : std::vector<float>();
  if (scaled) add_rope_keys(exported.model.rotary, keys);
  if (scaled) tensors.push_back({memory_tensor(kRopeFactors, {factors.size()}, factors), GgmlType::kF32});
  AtomicFile out(file);
  write_gguf(out.writer(), keys, tensors);
  out.commit(options.existing());
  return result;
}

}  // namespace quern::formats
