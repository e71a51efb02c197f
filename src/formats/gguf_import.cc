// Opens a GGUF file as a model.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "core/error.h"
#include "core/text.h"
#include "formats/gguf.h"
#include "formats/gguf_names.h"
#include "formats/gguf_tokenizer.h"
#include "formats/model_source.h"
#include "formats/rope_factors.h"
#include "nn/models/language_model.h"

namespace quern::formats {
namespace {

namespace fs = std::filesystem;
using nn::ModelConfig;

// GGUF has fp32; the shortest decimal number that rounds to the same one is what was meant: 1e-5.
double shortest(double value) {
  const std::string text = fmt::format("{}", static_cast<float>(value));
  double result = 0;
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

// The keys of an architecture, "llama.block_count" and so on.
class ArchitectureKeys {
 public:
  ArchitectureKeys(const GgufFile& file, std::string_view architecture) : file_(file), architecture_(architecture) {}

  std::string name(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }
  bool has(std::string_view key) const { return file_.contains(name(key)); }

  size_t size(std::string_view key, size_t max) const {
    const uint64_t value = file_.whole(name(key), max);
    if (value == 0) file_.fail(name(key), fmt::format("a whole number from 1 to {}", max));
    return static_cast<size_t>(value);
  }
  size_t size_or(std::string_view key, size_t max, size_t absent) const { return has(key) ? size(key, max) : absent; }

  double real(std::string_view key, double min, double max) const { return shortest(file_.real(name(key), min, max)); }
  double real_or(std::string_view key, double min, double max, double absent) const {
    return has(key) ? real(key, min, max) : absent;
  }

  // Refuses a key that changes the model's output, unless it has the value that does not.
  void expect_whole(std::string_view key, uint64_t supported) const {
    if (has(key) && file_.whole(name(key), UINT64_MAX) != supported) {
      file_.fail(name(key), fmt::format("{}, because other values are not supported", supported));
    }
  }
  void expect_real(std::string_view key, double supported) const {
    if (has(key) && file_.real(name(key), -1e30, 1e30) != supported) {
      file_.fail(name(key), fmt::format("{}, because other values are not supported", supported));
    }
  }

 private:
  const GgufFile& file_;
  std::string_view architecture_;
};

// The settings of Quern's own files if they are there, otherwise some that give the same factors.
std::optional<nn::RotaryConfig> own_rotary(const GgufFile& file, double base, std::span<const float> factors) {
  if (!file.contains(kRopeFactorKey)) return rotary_from_factors(base, factors);
  const nn::RotaryConfig rotary{.base = base,
                                .scaling = nn::RotaryScaling::kLlama3,
                                .factor = shortest(file.real(kRopeFactorKey, 1e-3, 1e6)),
                                .low_frequency = shortest(file.real(kRopeLowKey, 1e-3, 1e6)),
                                .high_frequency = shortest(file.real(kRopeHighKey, 1e-3, 1e6)),
                                .original_context = file.whole(kRopeContextKey, nn::kMaxContext)};
  return gives_factors(rotary, factors) ? std::optional(rotary) : rotary_from_factors(base, factors);
}

nn::RotaryConfig read_rotary(const GgufFile& file, const ArchitectureKeys& keys) {
  nn::RotaryConfig rotary;
  rotary.base = keys.real_or("rope.freq_base", 1.0, 1e12, rotary.base);
  if (keys.has("rope.scale_linear") && keys.real("rope.scale_linear", 0, 1e6) != 1.0) {
    file.fail(keys.name("rope.scale_linear"), "1, or rope.scaling.factor instead");
  }
  // With a factor and no type, llama.cpp scales linearly.
  const std::string type = keys.has("rope.scaling.type")     ? std::string(file.text(keys.name("rope.scaling.type")))
                           : keys.has("rope.scaling.factor") ? "linear"
                                                             : "none";
  if (type != "none" && type != "linear") file.fail(keys.name("rope.scaling.type"), "none or linear");
  const double factor = keys.real_or("rope.scaling.factor", 0, 1e6, 1.0);
  if (type == "linear" && factor > 0 && factor != 1.0) {
    rotary.scaling = nn::RotaryScaling::kLinear;
    rotary.factor = factor;
  }
  const GgufTensor* factors = file.find_tensor(kRopeFactors);
  if (factors == nullptr) return rotary;
  std::vector<float> values(factors->type == GgmlType::kF32 ? factors->bytes.size() / sizeof(float) : 0);
  stored_tensor(kRopeFactors, {values.size()}, GgmlType::kF32, factors->bytes.first(values.size() * sizeof(float)))
      .read(0, values);
  const auto found = own_rotary(file, rotary.base, values);
  if (found && rotary.scaling == nn::RotaryScaling::kNone) return *found;
  throw Error(
      "[gguf] {}: tensor {}: expected the factors of Llama 3's scaling of positions, found others, which are "
      "not supported",
      file.name(), in_quotes(kRopeFactors));
}

void read_llama(const GgufFile& file, const ArchitectureKeys& keys, ModelConfig& model) {
  keys.expect_whole("expert_count", 0);
  keys.expect_whole("attention.sliding_window", 0);
  keys.expect_real("rope.scaling.attn_factor", 1.0);
  if (keys.has("attention.causal") && !file.flag(keys.name("attention.causal"))) {
    file.fail(keys.name("attention.causal"), "true, because other attention is not supported");
  }
  model.kv_heads = keys.size_or("attention.head_count_kv", nn::kMaxWidth, model.heads);
  if (!keys.has("attention.key_length") && model.width % model.heads != 0) {
    file.fail(keys.name("embedding_length"), fmt::format("a multiple of {} heads", model.heads));
  }
  model.head_width = keys.size_or("attention.key_length", nn::kMaxWidth, model.width / model.heads);
  keys.expect_whole("attention.value_length", model.head_width);
  keys.expect_whole("rope.dimension_count", model.head_width);
  model.norm_epsilon = keys.real("attention.layer_norm_rms_epsilon", 1e-12, 1.0);
  const bool llama = model.family == nn::Family::kLlama;
  model.attention_bias = model.family != nn::Family::kQwen2 && file.find_tensor("blk.0.attn_q.bias") != nullptr;
  model.mlp_bias = llama && file.find_tensor("blk.0.ffn_up.bias") != nullptr;
  model.rotary = read_rotary(file, keys);
}

ModelConfig read_config(const GgufFile& file) {
  const std::string_view architecture = file.text("general.architecture");
  const auto family = family_of_hf_type(architecture);  // llama.cpp uses the same words
  if (!family) file.fail("general.architecture", "gpt2, llama, qwen2 or qwen3");
  const ArchitectureKeys keys(file, architecture);
  ModelConfig model;
  model.family = *family;
  model.layers = keys.size("block_count", nn::kMaxLayers);
  model.width = keys.size("embedding_length", nn::kMaxWidth);
  model.heads = keys.size("attention.head_count", nn::kMaxWidth);
  model.context = keys.size("context_length", nn::kMaxContext);
  model.max_context = model.context;
  model.inner_width = keys.size("feed_forward_length", nn::kMaxInnerWidth);
  const GgufTensor* table = file.find_tensor("token_embd.weight");
  if (table == nullptr || table->shape.size() != 2) {
    throw Error("[gguf] {}: expected a tensor 'token_embd.weight' of two dimensions, found none", file.name());
  }
  model.vocabulary = table->shape[0];
  model.tied_output = file.find_tensor("output.weight") == nullptr;
  if (model.is_gpt2()) {
    model.norm_epsilon = keys.real("attention.layer_norm_epsilon", 1e-12, 1.0);
  } else {
    read_llama(file, keys, model);
  }
  try {
    nn::check(model);
  } catch (const Error& error) {
    throw Error("[gguf] {}: {}", file.name(), error.what());
  }
  return model;
}

std::string shape_text(const std::vector<size_t>& shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

TensorSource take(const GgufFile& file, const ModelConfig& model, const nn::Parameter& parameter) {
  const GgufPlace place = gguf_place(model, parameter.name);
  const GgufTensor* found = file.find_tensor(place.name);
  std::vector<size_t> shape = parameter.shape;
  if (place.is_transposed) std::reverse(shape.begin(), shape.end());
  if (found == nullptr) {
    throw Error("[gguf] {}: expected tensor {} of shape {}, found none of that name", file.name(),
                in_quotes(place.name), shape_text(shape));
  }
  if (found->shape != shape) {
    throw Error("[gguf] {}: tensor {}: expected shape {}, as the keys say, found {}", file.name(),
                in_quotes(place.name), shape_text(shape), shape_text(found->shape));
  }
  if (!is_convertible(found->type)) {
    throw Error("[gguf] {}: tensor {}: expected F32, F16, BF16, Q8_0, Q4_0 or Q4_1, found {}", file.name(),
                in_quotes(place.name), facts_of(found->type).name);
  }
  return from_gguf(model, place, stored_tensor(parameter.name, shape, found->type, found->bytes));
}

void check_known(const GgufFile& file, const ModelConfig& model, const nn::ParameterTable& parameters) {
  std::set<std::string, std::less<>> known = {kRopeFactors};
  for (const nn::Parameter& parameter : parameters.all()) known.insert(gguf_place(model, parameter.name).name);
  for (const GgufTensor& tensor : file.tensors()) {
    if (known.contains(tensor.name)) continue;
    throw Error("[gguf] {}: expected only tensors of the model that the keys describe, found {}", file.name(),
                in_quotes(tensor.name));
  }
}

// The type of most bytes.
std::string most_common_type(const GgufFile& file) {
  std::map<std::string_view, size_t> bytes;
  for (const GgufTensor& tensor : file.tensors()) bytes[facts_of(tensor.type).name] += tensor.bytes.size();
  const auto largest =
      std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return std::string(largest->first);
}

}  // namespace

ModelSource open_gguf_model(const fs::path& path) {
  const auto file = std::make_shared<const GgufFile>(path);
  ModelSource source;
  source.format = "GGUF";
  source.config.model = read_config(*file);
  const ModelConfig& model = source.config.model;
  const nn::Declaration declaration = nn::declare(model);
  for (const nn::Parameter& parameter : declaration.parameters.all()) {
    source.tensors.push_back(take(*file, model, parameter));
  }
  check_known(*file, model, declaration.parameters);
  source.type = most_common_type(*file);
  source.config.tokens = read_gguf_special_tokens(*file, model.vocabulary);
  source.tokenizer = read_gguf_tokenizer(*file);
  if (source.tokenizer == nullptr) source.remarks.push_back("the file has no tokenizer, so the run has none");
  source.files = model_files_from_gguf(*file, source.tokenizer.get(), source.config.tokens, model.positions_limit());
  source.check_intact = [file] { file->check_intact(); };
  source.owner = file;
  return source;
}

}  // namespace quern::formats
