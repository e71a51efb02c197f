#include "dataset/remote_dataset.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "data/token_buffer.h"

namespace quern::train {

// A line of JSON, then the held-out tokens of all sources, four bytes each.
std::string describe_dataset(const Dataset& dataset, uint64_t validation_tokens) {
  nlohmann::json sources = nlohmann::json::array();
  std::string tokens;
  for (const DataSource& source : dataset.sources) {
    const data::TokenRange& held_out = source.split.validation;
    const uint64_t count = std::min(held_out.size(), validation_tokens);
    sources.push_back({{"name", source.name}, {"weight", source.weight}, {"held_out", count}});
    std::vector<int32_t> ids(count);
    if (count > 0) held_out.stream->copy(held_out.begin, count, ids.data());
    tokens.append(reinterpret_cast<const char*>(ids.data()), count * sizeof(int32_t));
  }
  const nlohmann::json header = {{"sources", sources},
                                 {"streaming", dataset.is_streaming()},
                                 {"train_tokens", dataset.train_tokens},
                                 {"fingerprint", {dataset.fingerprint.tokens, dataset.fingerprint.hash}},
                                 {"vocabulary", dataset.vocabulary},
                                 {"bytes_per_token", dataset.bytes_per_token}};
  return json_text(header) + '\n' + tokens;
}

Dataset remote_dataset(std::string_view description) try {
  const size_t end = description.find('\n');
  const nlohmann::json header = parse_json(description.substr(0, end));
  std::string_view tokens = description.substr(end + 1);
  Dataset dataset;
  dataset.remote = true;
  dataset.streaming = header.at("streaming");
  dataset.train_tokens = header.at("train_tokens");
  dataset.fingerprint = {header.at("fingerprint").at(0), header.at("fingerprint").at(1)};
  dataset.vocabulary = header.at("vocabulary");
  dataset.bytes_per_token = header.at("bytes_per_token");
  auto held_out = std::make_unique<data::TokenBuffer>(dataset.vocabulary);
  for (const nlohmann::json& source : header.at("sources")) {
    std::vector<int32_t> ids(source.at("held_out").get<size_t>());
    const size_t bytes = ids.size() * sizeof(int32_t);
    if (tokens.size() < bytes)
      throw Error("[dist] data of rank 0: expected {} more bytes, found {}", bytes, tokens.size());
    std::memcpy(ids.data(), tokens.data(), bytes);
    tokens.remove_prefix(bytes);
    const uint64_t begin = held_out->size();
    held_out->append(ids);
    dataset.sources.push_back({.name = source.at("name"),
                               .weight = source.at("weight"),
                               .split = {.train = {}, .validation = {held_out.get(), begin, held_out->size()}},
                               .text = std::nullopt});
  }
  dataset.stream = std::move(held_out);
  return dataset;
} catch (const nlohmann::json::exception& error) {
  throw Error("[dist] data of rank 0: {}", error.what());
}

}  // namespace quern::train
