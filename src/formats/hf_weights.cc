#include "formats/hf_weights.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/files.h"
#include "core/json_fields.h"

namespace quern::formats {
namespace {

namespace fs = std::filesystem;
using safetensors::Dtype;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr size_t kMaxIndexBytes = size_t{16} << 20;  // that of a model with 100,000 tensors has 10 MB

std::optional<GgmlType> type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF32:
      return GgmlType::kF32;
    case Dtype::kF16:
      return GgmlType::kF16;
    case Dtype::kBF16:
      return GgmlType::kBF16;
    default:
      return std::nullopt;
  }
}

// What a folder without safetensors has instead.
[[noreturn]] void refuse(const fs::path& folder) {
  for (const char* other : {"pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5", "flax_model.msgpack"}) {
    if (!fs::exists(folder / other)) continue;
    throw Error("[import] {}: expected {}, found {}; load it with transformers and save_pretrained() it again",
                folder.string(), kSingle, other);
  }
  throw Error("[import] {}: expected {} or {}, found neither", folder.string(), kSingle, kIndex);
}

}  // namespace

std::map<std::string, std::string> parse_weight_index(std::string_view text, std::string_view where) {
  const nlohmann::json json = parse_json(text);
  if (json.is_discarded()) throw Error("[import] {}: expected JSON, found something else", where);
  const JsonFields map = JsonFields(json, fmt::format("[import] {}", where)).object("weight_map");
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : json["weight_map"].items()) {
    std::string name = map.text(tensor);
    if (!is_plain_file_name(name) || !name.ends_with(".safetensors")) {
      throw Error(
          "[import] {}: weight_map.{}: expected a file name without a folder that ends in .safetensors, found "
          "{}",
          where, tensor, in_quotes(name));
    }
    files.emplace(tensor, std::move(name));
  }
  if (files.empty()) throw Error("[import] {}: weight_map: expected tensors, found none", where);
  return files;
}

HfWeights::HfWeights(const fs::path& folder) {
  if (fs::exists(folder / kSingle)) {
    add_all(folder / kSingle);
  } else if (fs::exists(folder / kIndex)) {
    add_indexed(folder, folder / kIndex);
  } else {
    refuse(folder);
  }
}

const safetensors::File& HfWeights::open(const fs::path& path) {
  const auto found = files_.find(path.string());
  return found != files_.end() ? found->second : files_.emplace(path.string(), safetensors::File(path)).first->second;
}

void HfWeights::add_all(const fs::path& path) {
  const safetensors::File& file = open(path);
  const std::string& name = files_.begin()->first;
  for (const safetensors::Tensor& tensor : file.tensors()) tensors_.emplace(tensor.name, Entry{&file, &tensor, &name});
}

void HfWeights::add_indexed(const fs::path& folder, const fs::path& index) {
  for (const auto& [tensor, name] : parse_weight_index(read_file(index, kMaxIndexBytes), index.string())) {
    const fs::path path = folder / name;
    const safetensors::File& file = open(path);
    const safetensors::Tensor* found = file.find(tensor);
    if (found == nullptr) {
      throw Error("[import] {}: expected tensor {}, which {} says is here, found none of that name", path.string(),
                  in_quotes(tensor), kIndex);
    }
    tensors_.emplace(tensor, Entry{&file, found, &files_.find(path.string())->first});
  }
}

std::vector<std::string> HfWeights::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : tensors_) names.push_back(name);
  return names;
}

TensorSource HfWeights::source(std::string_view name, std::string as) const {
  const Entry& entry = at(name);
  const auto type = type_of(entry.tensor->dtype);
  if (!type) {
    throw Error("[import] {}: tensor {}: expected F32, F16 or BF16, found {}; quantized models are not supported",
                *entry.path, in_quotes(name), dtype_name(entry.tensor->dtype));
  }
  return stored_tensor(std::move(as), entry.tensor->shape, *type, entry.tensor->bytes);
}

bool HfWeights::same_bytes(std::string_view a, std::string_view b) const {
  const safetensors::Tensor &x = *at(a).tensor, &y = *at(b).tensor;
  return x.dtype == y.dtype && x.shape == y.shape &&
         (x.bytes.empty() || std::memcmp(x.bytes.data(), y.bytes.data(), x.bytes.size()) == 0);
}

std::string HfWeights::file_of(std::string_view name) const { return *at(name).path; }

void HfWeights::check_intact() const {
  for (const auto& [path, file] : files_) file.check_intact();
}

}  // namespace quern::formats
