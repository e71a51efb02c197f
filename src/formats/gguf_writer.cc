#include "formats/gguf_writer.h"

#include <cassert>
#include <limits>

#include "core/error.h"
#include "core/text.h"
#include "formats/blocks.h"
#include "formats/gguf.h"

namespace quern::formats {
namespace {

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void put(std::string& out, std::string_view text) {
  put(out, uint64_t{text.size()});
  out += text;
}

// The type's id, then the value.
struct PutValue {
  std::string& out;

  void type(GgufType id) const { put(out, static_cast<uint32_t>(id)); }
  void list(GgufType id, size_t count) const {
    type(GgufType::kArray);
    type(id);
    put(out, uint64_t{count});
  }

  void operator()(bool value) const {
    type(GgufType::kBool);
    put(out, static_cast<uint8_t>(value));
  }
  void operator()(uint32_t value) const {
    type(GgufType::kU32);
    put(out, value);
  }
  void operator()(float value) const {
    type(GgufType::kF32);
    put(out, value);
  }
  void operator()(const std::string& text) const {
    type(GgufType::kString);
    put(out, std::string_view(text));
  }
  void operator()(const std::vector<std::string>& texts) const {
    list(GgufType::kString, texts.size());
    for (const std::string& text : texts) put(out, std::string_view(text));
  }
  void operator()(const std::vector<int32_t>& numbers) const {
    list(GgufType::kI32, numbers.size());
    for (const int32_t number : numbers) put(out, number);
  }
  void operator()(const std::vector<float>& numbers) const {
    list(GgufType::kF32, numbers.size());
    for (const float number : numbers) put(out, number);
  }
};

uint64_t padded(uint64_t bytes) { return (bytes + kGgufAlignment - 1) / kGgufAlignment * kGgufAlignment; }

void put_tensor(std::string& out, const GgufOutputTensor& tensor, uint64_t offset) {
  const std::vector<size_t>& shape = tensor.source.shape;
  assert(tensor.source.name.size() <= kMaxGgufName && !shape.empty() && shape.size() <= kMaxGgufRank);
  put(out, std::string_view(tensor.source.name));
  put(out, static_cast<uint32_t>(shape.size()));
  for (size_t i = shape.size(); i-- > 0;) put(out, uint64_t{shape[i]});
  put(out, static_cast<uint32_t>(tensor.type));
  put(out, offset);
}

void pad(FileWriter& file) {
  const uint64_t missing = padded(file.written()) - file.written();
  file.write(std::string(missing, '\0'));
}

}  // namespace

void GgufKeys::add_whole(std::string name, uint64_t value) {
  if (value > std::numeric_limits<uint32_t>::max()) {
    throw Error("[gguf] key {}: expected a number below 2^32, found {}", in_quotes(name), value);
  }
  add(std::move(name), static_cast<uint32_t>(value));
}

void write_gguf(FileWriter& file, const GgufKeys& keys, std::span<const GgufOutputTensor> tensors) {
  std::string start = "GGUF";
  put(start, uint32_t{3});
  put(start, uint64_t{tensors.size()});
  put(start, uint64_t{keys.all().size()});
  for (const auto& [name, value] : keys.all()) {
    put(start, std::string_view(name));
    std::visit(PutValue{start}, value);
  }
  uint64_t offset = 0;
  for (const GgufOutputTensor& tensor : tensors) {
    put_tensor(start, tensor, offset);
    offset += padded(encoded_bytes(tensor.type, tensor.source.size()));
  }
  file.write(start);
  pad(file);
  TensorEncoder encoder;
  for (const GgufOutputTensor& tensor : tensors) {
    const auto next = encoder.reader(tensor.source, tensor.type);
    const size_t bytes = encoded_bytes(tensor.type, tensor.source.size());
    for (size_t at = 0; at < bytes;) {
      const auto piece = next(at);
      file.write(piece);
      at += piece.size();
    }
    pad(file);
  }
}

}  // namespace quern::formats
