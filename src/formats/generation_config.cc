#include "formats/generation_config.h"

#include <fmt/format.h>

#include <limits>

#include "core/error.h"
#include "core/files.h"
#include "core/json_fields.h"

namespace quern::formats {
namespace {

constexpr size_t kMaxFile = size_t{1} << 20;  // models for speech list thousands of tokens in other fields
constexpr size_t kMaxIds = 256;
constexpr const char* kEndTokens = "eos_token_id";

bool is_id(const nlohmann::json& value) {
  return value.is_number_unsigned() &&
         value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int32_t>::max());
}

}  // namespace

std::vector<int32_t> read_end_tokens(const std::filesystem::path& file, size_t vocabulary,
                                     const std::function<void(const std::string& text)>& warn) {
  if (!std::filesystem::exists(file)) return {};
  const nlohmann::json json = parse_json(read_file(file, kMaxFile));
  if (json.is_discarded()) throw Error("[run] {}: expected JSON, found something else", file.string());
  const JsonFields fields(json, fmt::format("[run] {}", file.string()));
  if (!fields.contains(kEndTokens) || fields.at(kEndTokens).is_null()) return {};
  const nlohmann::json& found = fields.at(kEndTokens);
  const nlohmann::json one = nlohmann::json::array({found});
  const nlohmann::json& list = found.is_array() ? found : one;
  if (list.size() > kMaxIds) fields.fail(kEndTokens, fmt::format("at most {} token ids", kMaxIds));
  std::vector<int32_t> ids;
  for (const nlohmann::json& value : list) {
    if (!is_id(value)) fields.fail(kEndTokens, "a token id or a list of token ids");
    if (value.get<uint64_t>() < vocabulary) {
      ids.push_back(value.get<int32_t>());
    } else {
      warn(fmt::format("{}: {}: ignored {}, which is not in the vocabulary of {}", file.string(), kEndTokens,
                       value.get<uint64_t>(), vocabulary));
    }
  }
  return ids;
}

}  // namespace quern::formats
