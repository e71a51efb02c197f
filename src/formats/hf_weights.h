// The weights of a Hugging Face folder: model.safetensors, or several files and an index of them.
//
//   model.safetensors
//   model-00001-of-00002.safetensors, ..., model.safetensors.index.json    {"weight_map": {TENSOR: FILE, ...}}
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors.h"
#include "formats/tensor_source.h"

namespace quern::formats {

// The index: the file of each tensor. Error unless every file is a plain name that ends in .safetensors; `where` is for
// messages.
std::map<std::string, std::string> parse_weight_index(std::string_view text, std::string_view where);

// The files, mapped and validated. With an index, it decides: a tensor that it does not name is passed over, and one
// that is not in the file it names is an Error. Move-only.
class HfWeights {
 public:
  explicit HfWeights(const std::filesystem::path& folder);
  // This one file of the folder, whatever it is called.
  HfWeights(const std::filesystem::path& folder, const char* file) { add_all(folder / file); }

  std::vector<std::string> names() const;  // sorted
  bool contains(std::string_view name) const { return tensors_.contains(name); }
  std::vector<size_t> shape(std::string_view name) const { return at(name).tensor->shape; }
  std::string_view dtype(std::string_view name) const { return dtype_name(at(name).tensor->dtype); }

  // A tensor by its name, which must exist, to be called `as`. Error unless its type is F32, F16 or BF16. Valid as long
  // as this object.
  TensorSource source(std::string_view name, std::string as) const;
  bool same_bytes(std::string_view a, std::string_view b) const;  // types and shapes too

  std::string file_of(std::string_view name) const;  // for messages
  // Call after reading values: throws Error if another program has truncated a file.
  void check_intact() const;

 private:
  struct Entry {
    const safetensors::File* file;
    const safetensors::Tensor* tensor;
    const std::string* path;
  };
  const Entry& at(std::string_view name) const { return tensors_.find(name)->second; }
  void add_all(const std::filesystem::path& path);
  void add_indexed(const std::filesystem::path& folder, const std::filesystem::path& index);
  const safetensors::File& open(const std::filesystem::path& path);

  std::map<std::string, safetensors::File> files_;  // by path; a map, because tensors refer to them
  std::map<std::string, Entry, std::less<>> tensors_;
};

}  // namespace quern::formats
