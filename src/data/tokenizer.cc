#include "data/tokenizer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "core/files.h"
#include "data/tokenizer_json.h"

namespace quern::data {
namespace {

// The largest in common use (250,000 tokens) have 17 MB; reading needs about ten times the file size in memory.
constexpr off_t kMaxFile = off_t{256} << 20;

class File {
 public:
  explicit File(const std::string& path)
      : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (descriptor_ < 0) fail("cannot be opened");
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { ::close(descriptor_); }

  [[noreturn]] void fail(std::string_view what) const {
    throw Error("[tokenizer] {}: {}: {}", path_, what, std::strerror(errno));
  }

  size_t size() const {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) fail("cannot be read");
    if (!S_ISREG(status.st_mode)) throw Error("[tokenizer] {}: expected a file, found something else", path_);
    if (status.st_size > kMaxFile) {
      throw Error("[tokenizer] {}: expected at most {} bytes, found {}", path_, kMaxFile, status.st_size);
    }
    return static_cast<size_t>(status.st_size);
  }

  std::string read() const {
    std::string text(size(), '\0');
    size_t done = 0;
    while (done < text.size()) {
      const ssize_t got = ::read(descriptor_, text.data() + done, text.size() - done);
      if (got < 0 && errno != EINTR) fail("cannot be read");
      if (got == 0) break;
      if (got > 0) done += static_cast<size_t>(got);
    }
    text.resize(done);
    return text;
  }

 private:
  std::string path_;
  int descriptor_;
};

}  // namespace

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  encode_to(text, ids);
  return ids;
}

std::string_view Tokenizer::bytes_of(int32_t id) const {
  if (id < 0 || id >= tokens_.size()) {
    throw Error("[tokenizer] expected an id from 0 to {}, found {}", tokens_.size() - 1, id);
  }
  return tokens_[id];
}

Sha256Digest Tokenizer::digest() const noexcept {
  Sha256 hash;
  const auto add = [&hash](int64_t number) { hash.update(std::as_bytes(std::span(&number, 1))); };
  add(end_of_text().value_or(-1));
  if (const std::optional<int32_t> begin = begin_of_text()) add(-2 - int64_t{*begin});
  for (int32_t id = 0; id < tokens_.size(); ++id) {
    add(static_cast<int64_t>(tokens_[id].size()));
    hash.update(std::as_bytes(std::span(tokens_[id])));
  }
  return hash.finish();
}

void Tokenizer::decode_to(std::span<const int32_t> ids, std::string& text) const {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= tokens_.size()) {
      throw Error("[tokenizer] position {}: expected an id from 0 to {}, found {}", i, tokens_.size() - 1, ids[i]);
    }
  }
  const size_t before = text.size();
  for (const int32_t id : ids) text += tokens_[id];
  if (strip_space_ && text.size() > before && text[before] == ' ') text.erase(before, 1);
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  decode_to(ids, text);
  return text;
}

void Tokenizer::save(const std::string& path) const {
  remove_leftovers_of(path);
  write_file(path, to_json());
}

std::unique_ptr<Tokenizer> Tokenizer::load(const std::string& path) {
  const std::string json = File(path).read();
  const std::filesystem::path file(path);
  const std::string config = (file.parent_path() / "tokenizer_config.json").string();
  std::error_code ignored;  // a file that cannot be looked for is not there
  if (file.filename() != "tokenizer.json" || !std::filesystem::exists(config, ignored)) return from_json(json, path);
  return read_tokenizer_json(json, path, {.fallback_end_of_text = end_of_text_in_config(File(config).read(), config)});
}

std::unique_ptr<Tokenizer> Tokenizer::load_from(const std::string& path) {
  std::error_code ignored;  // if this fails, opening fails too and reports the reason
  const bool folder = std::filesystem::is_directory(path, ignored);
  return load(folder ? (std::filesystem::path(path) / "tokenizer.json").string() : path);
}

std::unique_ptr<Tokenizer> Tokenizer::from_json(std::string_view json, std::string_view where,
                                                const std::optional<std::string>& end_of_text) {
  return read_tokenizer_json(json, where, {.end_of_text = end_of_text});
}

}  // namespace quern::data
