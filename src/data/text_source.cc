#include "data/text_source.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace quern::data {
namespace {

constexpr size_t kHeadBytes = size_t{64} << 10;

class StringReader final : public ByteReader {
 public:
  explicit StringReader(const std::string& text) : text_(text) {}
  size_t read(std::span<char> out) override {
    const size_t count = std::min(out.size(), text_.size() - used_);
    std::copy_n(text_.data() + used_, count, out.data());
    used_ += count;
    return count;
  }
  uint64_t consumed() const override { return used_; }

 private:
  const std::string& text_;
  size_t used_ = 0;
};

}  // namespace

TextSource::TextSource(const Corpus::File& file, const TextOptions& options)
    : name_(file.path.string()),
      kind_(file.kind),
      file_(file.path),
      size_(file_->size()),
      compression_(file.compression),
      field_(options.field) {
  std::string head;
  const bool more = read_until(*open_bytes(), kHeadBytes, head);
  form_ = find_form(head, !more, options.encoding, name_);
  if (form_.kind == TextForm::Kind::kBytes || kind_ != Corpus::Kind::kText) return;
  head.clear();
  const std::unique_ptr<ByteReader> reader = open();
  reader->skip(begin());
  read_until(*reader, kHeadBytes, head);
  has_carriage_returns_ = head.find("\r\n") != std::string::npos;
}

TextSource::TextSource(std::string name, std::string text)
    : name_(std::move(name)), text_(std::move(text)), size_(text_.size()), field_("text") {}

void TextSource::read(uint64_t begin, uint64_t end, std::string& out) const {
  if (file_) return file_->read(begin, end, out);
  out.assign(text_, begin, end - begin);
}

std::unique_ptr<ByteReader> TextSource::open_bytes() const {
  if (!file_) return std::make_unique<StringReader>(text_);
  return decompress(compression_, std::make_unique<FileReader>(*file_), name_);
}

std::unique_ptr<ByteReader> TextSource::open() const {
  return form_.is_converted() ? to_utf8(form_, open_bytes(), name_) : open_bytes();
}

std::string TextSource::conversions() const {
  std::vector<std::string> done;
  if (form_.is_converted()) done.push_back(fmt::format("converted from {} to UTF-8", name_of(form_.kind)));
  if (form_.kind == TextForm::Kind::kUtf8 && form_.mark > 0) done.emplace_back("removed the byte order mark");
  if (has_carriage_returns_) done.emplace_back("replaced CR LF by LF");
  return fmt::format("{}", fmt::join(done, ", "));
}

TextSources text_sources(const Corpus& corpus) {
  TextSources sources;
  for (const Corpus::File& file : corpus.files()) {
    if (file.bytes > 0) sources.push_back(std::make_shared<TextSource>(file, corpus.options()));
  }
  return sources;
}

std::vector<std::string> conversions_text(const TextSources& sources) {
  std::map<std::string, std::vector<std::string>> files;
  for (const std::shared_ptr<const TextSource>& source : sources) {
    if (std::string done = source->conversions(); !done.empty()) files[std::move(done)].push_back(source->name());
  }
  std::vector<std::string> lines;
  for (const auto& [done, names] : files) {
    const size_t others = names.size() - 1;
    const std::string more = others == 0 ? "" : fmt::format(" and {} other file{}", others, others == 1 ? "" : "s");
    lines.push_back(fmt::format("{}{}: {}", names.front(), more, done));
  }
  return lines;
}

}  // namespace quern::data
