#include "checkpoint/safetensors_header.h"

#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"

namespace quern::safetensors {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kMetadata = "__metadata__";
constexpr Dtype kLastDtype = Dtype::kU64;

// What the parser is currently inside.
enum class Where { kStart, kTensors, kMetadata, kEntry, kShape, kOffsets, kEnd };

class Reader : public nlohmann::json_sax<Json> {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  Header take() { return std::move(header_); }

  bool start_object(size_t) override {
    switch (where_) {
      case Where::kStart:
        where_ = Where::kTensors;
        return true;
      case Where::kTensors:
        where_ = key_ == kMetadata ? Where::kMetadata : Where::kEntry;
        if (where_ == Where::kEntry) begin_entry();
        return true;
      default:
        unexpected("an object");
    }
  }

  bool end_object() override {
    if (where_ == Where::kEntry) finish_entry();
    where_ = where_ == Where::kTensors ? Where::kEnd : Where::kTensors;
    return true;
  }

  bool key(std::string& name) override {
    key_ = std::move(name);
    if (where_ == Where::kTensors && !names_.insert(key_).second) {
      throw Error("[safetensors] {}: header: expected each name once, found {} twice", file_, in_quotes(key_));
    }
    return true;
  }

  bool string(std::string& value) override {
    if (where_ == Where::kMetadata) {
      if (!header_.metadata.emplace(key_, std::move(value)).second) fail("each key once", in_quotes(key_) + " twice");
      return true;
    }
    if (where_ != Where::kEntry || key_ != "dtype") unexpected("text");
    once(has_dtype_);
    for (int i = 0; i <= static_cast<int>(kLastDtype); ++i) {
      if (dtype_name(static_cast<Dtype>(i)) == value) {
        entry().dtype = static_cast<Dtype>(i);
        return true;
      }
    }
    fail("BOOL, U8, I8, I16, U16, F16, BF16, I32, U32, F32, F64, I64 or U64", in_quotes(value));
  }

  bool start_array(size_t) override {
    if (where_ == Where::kEntry && key_ == "shape") {
      once(has_shape_);
      where_ = Where::kShape;
    } else if (where_ == Where::kEntry && key_ == "data_offsets") {
      once(has_offsets_);
      where_ = Where::kOffsets;
    } else {
      unexpected("an array");
    }
    return true;
  }

  bool end_array() override {
    if (where_ == Where::kOffsets && entry().offsets.size() != 2) fail("two offsets", "one or none");
    where_ = Where::kEntry;
    return true;
  }

  bool number_unsigned(uint64_t value) override {
    if (where_ == Where::kShape) {
      if (entry().shape.size() == kMaxRank) fail("at most 32 dimensions", "more");
      entry().shape.push_back(value);
    } else if (where_ == Where::kOffsets) {
      if (entry().offsets.size() == 2) fail("two offsets", "more");
      entry().offsets.push_back(value);
    } else {
      unexpected("a number");
    }
    return true;
  }

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("true or false"); }
  bool number_integer(int64_t) override { unexpected("a negative number"); }
  bool number_float(double, const std::string&) override { unexpected("a fraction"); }
  bool binary(Json::binary_t&) override { unexpected("bytes"); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    throw Error("[safetensors] {}: header: byte {}: expected JSON, found something else", file_, position);
  }

 private:
  Entry& entry() { return header_.entries.back(); }

  void begin_entry() {
    header_.entries.emplace_back();
    entry().name = key_;
    has_dtype_ = has_shape_ = has_offsets_ = false;
  }

  void finish_entry() {
    if (has_dtype_ && has_shape_ && has_offsets_) return;
    const char* missing = !has_dtype_ ? "dtype" : !has_shape_ ? "shape" : "data_offsets";
    throw Error("[safetensors] {}: tensor {}: expected dtype, shape and data_offsets, found no {}", file_,
                in_quotes(entry().name), missing);
  }

  void once(bool& seen) {
    if (std::exchange(seen, true)) fail("it once", "it twice");
  }

  std::string place() const {
    switch (where_) {
      case Where::kStart:
      case Where::kEnd:
        return "header";
      case Where::kTensors:
        return "tensor " + in_quotes(key_);
      case Where::kMetadata:
        return "__metadata__";
      default:
        return "tensor " + in_quotes(header_.entries.back().name) + ": " + in_quotes(key_);
    }
  }

  [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
    throw Error("[safetensors] {}: {}: expected {}, found {}", file_, place(), expected, found);
  }

  [[noreturn]] void unexpected(std::string_view found) const {
    switch (where_) {
      case Where::kStart:
      case Where::kEnd:
      case Where::kTensors:
        fail("an object", found);
      case Where::kMetadata:
        fail("text for " + in_quotes(key_), found);
      case Where::kEntry:
        fail(key_ == "dtype"                             ? "text"
             : key_ == "shape" || key_ == "data_offsets" ? "an array"
                                                         : "dtype, shape or data_offsets",
             found);
      default:
        fail("whole numbers from 0", found);
    }
  }

  std::string_view file_;
  Header header_;
  Where where_ = Where::kStart;
  std::string key_;
  std::unordered_set<std::string> names_;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
};

}  // namespace

Header parse_header(std::string_view json, std::string_view file) {
  if (!json.starts_with('{')) {
    throw Error("[safetensors] {}: header: expected '{{' at the start, found {}", file, in_quotes(json.substr(0, 8)));
  }
  Reader reader(file);
  Json::sax_parse(json.begin(), json.end(), &reader);
  return reader.take();
}

std::string make_header(std::span<const Tensor> tensors, const Metadata& metadata) {
  std::string text = "{";
  if (!metadata.empty()) text += json_text(Json(kMetadata)) + ":" + json_text(Json(metadata));
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    if (text.size() > 1) text += ',';
    const uint64_t end = offset + tensor.bytes.size();
    text += fmt::format(R"({}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", json_text(Json(tensor.name)),
                        dtype_name(tensor.dtype), json_text(Json(tensor.shape)), offset, end);
    offset = end;
  }
  return text + "}";
}

}  // namespace quern::safetensors
