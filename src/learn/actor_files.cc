#include "learn/actor_files.h"

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include "checkpoint/safetensors.h"
#include "config/run_folder.h"
#include "core/files.h"

namespace quern::learn {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "weights-", kSuffix = ".safetensors";

fs::path weights_file(const fs::path& run, uint64_t version) {
  return actor_folder(run) / fmt::format("{}{:08}{}", kPrefix, version, kSuffix);
}

std::optional<uint64_t> version_of(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  name = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
  uint64_t version = 0;
  const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), version);
  return code == std::errc() && end == name.data() + name.size() ? std::optional(version) : std::nullopt;
}

}  // namespace

fs::path actor_folder(const fs::path& run) { return run / "actors"; }

void open_actor_folder(const fs::path& run, const train::RunConfig& config) {
  remove_actor_folder(run);
  fs::create_directories(actor_folder(run));
  train::write_config(config, actor_folder(run));
}

void write_weights(const fs::path& run, uint64_t version, const Network& network) {
  AtomicFile file(weights_file(run, version));
  safetensors::write(file.writer(), network.tensors());
  file.commit();
  std::error_code ignored;
  if (version > 0) fs::remove(weights_file(run, version - 1), ignored);
}

void remove_actor_folder(const fs::path& run) noexcept {
  std::error_code ignored;
  fs::remove_all(actor_folder(run), ignored);
}

std::optional<uint64_t> newest_weights(const fs::path& run, std::optional<uint64_t> known) {
  std::optional<uint64_t> newest;
  std::error_code code;
  for (const fs::directory_entry& entry : fs::directory_iterator(actor_folder(run), code)) {
    const auto version = version_of(entry.path().filename().string());
    if (version && (!newest || *version > *newest) && (!known || *version > *known)) newest = version;
  }
  return newest;
}

std::shared_ptr<const Network> read_weights(const fs::path& run, uint64_t version, const nn::BoardConfig& config) {
  const fs::path file = weights_file(run, version);
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return nullptr;
  try {
    return std::make_shared<Network>(config, safetensors::File(file), file);
  } catch (...) {
    if (!fs::exists(file, ignored)) return nullptr;
    throw;
  }
}

}  // namespace quern::learn
