#include "cli/prompt_input.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "core/error.h"
#include "core/files.h"

namespace quern::cli {
namespace {

constexpr size_t kMaxBytes = 16 << 20;  // a model sees only its context, thousands of tokens at most
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string read_standard_input() {
  std::string text;
  std::array<char, 1 << 16> buffer;
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got == 0) return text;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error("[prompt] standard input: {}", std::generic_category().message(errno));
    text.append(buffer.data(), static_cast<size_t>(got));
    if (text.size() > kMaxBytes) throw Error("[prompt] standard input: expected at most {} bytes", kMaxBytes);
  }
}

std::string without_marks(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (text.ends_with('\n')) text.remove_suffix(text.ends_with("\r\n") ? 2 : 1);
  return std::string(text);
}

}  // namespace

std::optional<std::string> read_prompt(const PromptInput& input) {
  if (input.text && input.file) {
    throw Error("generate: expected one prompt, found --prompt and --prompt-file; omit one of them");
  }
  if (input.text && *input.text != "-") return input.text;
  if (!input.text && !input.file) return std::nullopt;
  const std::string& name = input.text ? *input.text : *input.file;
  return without_marks(name == "-" ? read_standard_input() : read_file(name, kMaxBytes));
}

}  // namespace quern::cli
