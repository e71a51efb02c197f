// GGUF files by hand, right or wrong.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quern::formats {

class GgufBytes {
 public:
  template <typename T>
  GgufBytes& put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  GgufBytes& text(std::string_view text) {
    put(uint64_t{text.size()});
    bytes_ += text;
    return *this;
  }
  GgufBytes& start(uint64_t tensors, uint64_t keys, uint32_t version = 3) {
    bytes_ += "GGUF";
    return put(version).put(tensors).put(keys);
  }
  template <typename T>
  GgufBytes& key(std::string_view name, uint32_t type, T value) {
    return text(name).put(type).put(value);
  }
  GgufBytes& text_key(std::string_view name, std::string_view value) { return text(name).put(uint32_t{8}).text(value); }
  // Sizes in the order of the file: the length of a row first.
  GgufBytes& tensor(std::string_view name, const std::vector<uint64_t>& sizes, uint32_t type, uint64_t offset) {
    text(name).put(static_cast<uint32_t>(sizes.size()));
    for (const uint64_t size : sizes) put(size);
    return put(type).put(offset);
  }
  GgufBytes& values(size_t bytes, size_t alignment = 32) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
    bytes_.append(bytes, '\x11');
    return *this;
  }
  operator std::string() const { return bytes_; }  // NOLINT(google-explicit-constructor)

 private:
  std::string bytes_;
};

// Two keys of every kind and two tensors.
inline std::string good_gguf() {
  GgufBytes file;
  file.start(2, 8);
  file.text_key("general.architecture", "llama").key("general.alignment", 4, uint32_t{64});
  file.key("a.whole", 10, uint64_t{7}).key("a.real", 6, 0.5f).key("a.flag", 7, uint8_t{1}).key("a.negative", 5, -3);
  file.text("a.texts").put(uint32_t{9}).put(uint32_t{8}).put(uint64_t{3}).text("x").text("").text("yz");
  file.text("a.numbers").put(uint32_t{9}).put(uint32_t{5}).put(uint64_t{2}).put(int32_t{-1}).put(int32_t{9});
  file.tensor("m.weight", {64, 3}, 8, 0).tensor("m.bias", {3}, 0, 256);
  return file.values(256 + 12, 64);
}

}  // namespace quern::formats
