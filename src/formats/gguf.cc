#include "formats/gguf.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <variant>

#include "core/error.h"
#include "core/text.h"

namespace quern::formats {
namespace {

template <typename T>
T number_at(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

// The string at the start of `bytes`, and `bytes` without it. The parser has checked the lengths; another program may
// have changed the file since.
std::string_view string_at(std::span<const std::byte>& bytes) {
  constexpr const char* kChanged = "[gguf] expected a file that does not change while it is read, found other lengths";
  if (bytes.size() < sizeof(uint64_t)) throw Error(kChanged);
  const auto length = number_at<uint64_t>(bytes.data());
  if (length > bytes.size() - sizeof(uint64_t)) throw Error(kChanged);
  const auto text = bytes.subspan(sizeof(uint64_t), length);
  bytes = bytes.subspan(sizeof(uint64_t) + length);
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

// The scalar at `at`, of any number type: signed, unsigned or real.
std::variant<int64_t, uint64_t, double> scalar_at(GgufType type, const std::byte* at) noexcept {
  switch (type) {
    case GgufType::kU8:
      return uint64_t{number_at<uint8_t>(at)};
    case GgufType::kU16:
      return uint64_t{number_at<uint16_t>(at)};
    case GgufType::kU32:
      return uint64_t{number_at<uint32_t>(at)};
    case GgufType::kU64:
      return number_at<uint64_t>(at);
    case GgufType::kI8:
      return int64_t{number_at<int8_t>(at)};
    case GgufType::kI16:
      return int64_t{number_at<int16_t>(at)};
    case GgufType::kI32:
      return int64_t{number_at<int32_t>(at)};
    case GgufType::kI64:
      return number_at<int64_t>(at);
    case GgufType::kF32:
      return double{number_at<float>(at)};
    case GgufType::kF64:
      return number_at<double>(at);
    default:
      return std::nan("");
  }
}

bool is_number(GgufType type) noexcept {
  return type != GgufType::kBool && type != GgufType::kString && type != GgufType::kArray;
}

// The value for a message.
std::string shown(const GgufKey& key) {
  if (key.is_array) return fmt::format("an array of {}", key.count);
  if (key.type == GgufType::kString) {
    std::span<const std::byte> bytes = key.bytes;
    return in_quotes(string_at(bytes), 40);
  }
  if (key.type == GgufType::kBool) return number_at<uint8_t>(key.bytes.data()) == 0 ? "false" : "true";
  return std::visit([](auto value) { return fmt::format("{}", value); }, scalar_at(key.type, key.bytes.data()));
}

template <typename List>
std::vector<uint32_t> sorted_by_name(const List& list) {
  std::vector<uint32_t> order(list.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return list[a].name < list[b].name; });
  return order;
}

}  // namespace

GgufFile::GgufFile(const std::filesystem::path& path)
    : mapping_(path),
      contents_(mapping_.read([&] { return parse_gguf(mapping_.bytes(), path.native()); })),
      by_name_(sorted_by_name(contents_.tensors)) {}

const GgufKey* GgufFile::find(std::string_view key) const noexcept {
  const auto found = std::lower_bound(contents_.keys.begin(), contents_.keys.end(), key,
                                      [](const GgufKey& k, std::string_view wanted) { return k.name < wanted; });
  return found == contents_.keys.end() || found->name != key ? nullptr : &*found;
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const noexcept {
  const auto found =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [this](uint32_t i, std::string_view wanted) { return contents_.tensors[i].name < wanted; });
  if (found == by_name_.end() || contents_.tensors[*found].name != name) return nullptr;
  return &contents_.tensors[*found];
}

const GgufKey& GgufFile::at(std::string_view key) const {
  if (const GgufKey* found = find(key)) return *found;
  throw Error("[gguf] {}: key {}: expected this key, found none", name(), in_quotes(key));
}

void GgufFile::fail(std::string_view key, std::string_view expected) const {
  throw Error("[gguf] {}: key {}: expected {}, found {}", name(), in_quotes(key), expected, shown(at(key)));
}

uint64_t GgufFile::whole(std::string_view key, uint64_t max) const {
  const GgufKey& found = at(key);
  const std::string expected = fmt::format("a whole number from 0 to {}", max);
  if (found.is_array || !is_number(found.type)) fail(key, expected);
  const auto value = scalar_at(found.type, found.bytes.data());
  uint64_t number = 0;
  if (const auto* whole = std::get_if<uint64_t>(&value)) {
    number = *whole;
  } else if (const auto* with_sign = std::get_if<int64_t>(&value); with_sign != nullptr && *with_sign >= 0) {
    number = static_cast<uint64_t>(*with_sign);
  } else {
    fail(key, expected);
  }
  if (number > max) fail(key, expected);
  return number;
}

double GgufFile::real(std::string_view key, double min, double max) const {
  const GgufKey& found = at(key);
  const std::string expected = fmt::format("a number from {} to {}", min, max);
  if (found.is_array || !is_number(found.type)) fail(key, expected);
  const double value =
      std::visit([](auto v) { return static_cast<double>(v); }, scalar_at(found.type, found.bytes.data()));
  if (!(value >= min && value <= max)) fail(key, expected);
  return value;
}

std::string_view GgufFile::text(std::string_view key) const {
  const GgufKey& found = at(key);
  if (found.is_array || found.type != GgufType::kString) fail(key, "a string");
  std::span<const std::byte> bytes = found.bytes;
  return string_at(bytes);
}

bool GgufFile::flag(std::string_view key) const {
  const GgufKey& found = at(key);
  if (found.is_array || found.type != GgufType::kBool) fail(key, "a bool");
  return found.bytes[0] != std::byte{0};
}

const GgufKey& GgufFile::list_at(std::string_view key, std::string_view expected) const {
  const GgufKey& found = at(key);
  if (!found.is_array) fail(key, expected);
  return found;
}

std::vector<std::string_view> GgufFile::texts(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of strings";
  const GgufKey& found = list_at(key, kExpected);
  if (found.type != GgufType::kString) fail(key, kExpected);
  std::vector<std::string_view> list;
  list.reserve(found.count);
  for (std::span<const std::byte> bytes = found.bytes; !bytes.empty();) list.push_back(string_at(bytes));
  return list;
}

std::vector<int32_t> GgufFile::whole_list(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of whole numbers of at most 32 bits";
  const GgufKey& found = list_at(key, kExpected);
  if (!is_number(found.type) || found.count == 0) fail(key, kExpected);
  const size_t each = found.bytes.size() / found.count;
  std::vector<int32_t> list(found.count);
  for (size_t i = 0; i < list.size(); ++i) {
    const auto value = scalar_at(found.type, found.bytes.data() + i * each);
    const auto* plain = std::get_if<uint64_t>(&value);
    const auto* with_sign = std::get_if<int64_t>(&value);
    const bool fits = plain != nullptr ? *plain <= INT32_MAX
                                       : with_sign != nullptr && *with_sign >= INT32_MIN && *with_sign <= INT32_MAX;
    if (!fits) fail(key, kExpected);
    list[i] = plain != nullptr ? static_cast<int32_t>(*plain) : static_cast<int32_t>(*with_sign);
  }
  return list;
}

std::vector<float> GgufFile::real_list(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of f32";
  const GgufKey& found = list_at(key, kExpected);
  if (found.type != GgufType::kF32) fail(key, kExpected);
  std::vector<float> list(found.count);
  if (!list.empty()) std::memcpy(list.data(), found.bytes.data(), found.bytes.size());
  return list;
}

}  // namespace quern::formats
