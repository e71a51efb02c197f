#include "chat/jinja_lexer.h"

#include <algorithm>
#include <optional>

#include "chat/jinja_text.h"

namespace quern::chat {
namespace {

constexpr size_t kNotFound = std::string_view::npos;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class Lexer {
 public:
  Lexer(std::string_view source, Budget& budget) : source_(source), budget_(budget) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) read_text();
    add(TokenKind::kEnd, source_.size(), 0);
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }
  bool starts(std::string_view text) const { return source_.substr(at_, text.size()) == text; }

  // Positions are asked for in increasing order, so every line end is counted once.
  int line_of(size_t position) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<ptrdiff_t>(counted_),
                                         source_.begin() + static_cast<ptrdiff_t>(position), '\n'));
    counted_ = position;
    budget_.at_line(line_);
    return line_;
  }

  void add(TokenKind kind, size_t start, size_t length) {
    tokens_.push_back({kind, source_.substr(start, length), line_of(start)});
  }

  void add_data(size_t start, std::string_view text) {
    if (!text.empty()) add(TokenKind::kData, start, text.size());
  }

  size_t find_tag() const {
    for (size_t at = source_.find('{', at_); at != kNotFound; at = source_.find('{', at + 1)) {
      const char next = at + 1 < source_.size() ? source_[at + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') return at;
    }
    return kNotFound;
  }

  // Takes '-' or '+' if it is there.
  char take_sign() {
    const char sign = peek();
    if (sign != '-' && sign != '+') return '\0';
    ++at_;
    return sign;
  }

  // The text before a tag: '-' strips all white space. Otherwise, a block or comment that is first on its line is not
  // preceded by the indentation of the line, unless it has a '+'.
  std::string_view text_before(std::string_view text, char sign, bool strips_line) const {
    if (sign == '-') return strip(text, Side::kRight);
    if (sign == '+' || !strips_line) return text;
    const size_t line = text.rfind('\n') + 1;
    const bool starts_line = line > 0 || starts_line_;
    return starts_line && strip(text.substr(line), Side::kLeft).empty() ? text.substr(0, line) : text;
  }

  // After a tag: '-' skips all white space; the end of a block or comment skips a line end unless it has a '+'.
  void skip_after(char sign, bool skips_line_end) {
    if (sign == '-') at_ += leading_space(source_.substr(at_));
    if (sign == '\0' && skips_line_end && peek() == '\n') ++at_;
    starts_line_ = source_[at_ - 1] == '\n';
  }

  void read_text() {
    const size_t start = at_;
    const size_t tag = find_tag();
    if (tag == kNotFound) {
      at_ = source_.size();
      return add_data(start, source_.substr(start));
    }
    const char kind = source_[tag + 1];
    at_ = tag + 2;
    const char sign = take_sign();
    add_data(start, text_before(source_.substr(start, tag - start), sign, kind != '{'));
    if (kind == '#') return skip_comment(tag);
    if (kind == '%' && read_raw(tag)) return;
    add(kind == '{' ? TokenKind::kVariableBegin : TokenKind::kBlockBegin, tag, 2);
    read_tag(kind == '{' ? "}}" : "%}");
  }

  void skip_comment(size_t tag) {
    line_of(tag);
    const size_t end = source_.find("#}", at_);
    if (end == kNotFound) budget_.fail("the comment is not closed by '#}}'");
    const char sign = end > at_ ? source_[end - 1] : '\0';
    at_ = end + 2;
    skip_after(sign == '-' || sign == '+' ? sign : '\0', true);
  }

  // The position after `word` and white space around it, if the source has that at `at`.
  std::optional<size_t> after_word(size_t at, std::string_view word) const {
    at += leading_space(source_.substr(at));
    if (source_.substr(at, word.size()) != word) return std::nullopt;
    at += word.size();
    return at + leading_space(source_.substr(at));
  }

  // {% raw %}: text up to {% endraw %} as it is. Jinja2 keeps the line end after the opening tag.
  bool read_raw(size_t tag) {
    const auto word = after_word(at_, "raw");
    if (!word) return false;
    const char sign = source_.substr(*word, 3) == "-%}" ? '-' : '\0';
    const size_t end = *word + (sign ? 1 : 0);
    if (source_.substr(end, 2) != "%}") return false;
    line_of(tag);
    at_ = end + 2;
    skip_after(sign, false);
    read_raw_text();
    return true;
  }

  void read_raw_text() {
    const size_t start = at_;
    for (size_t tag = source_.find("{%", at_); tag != kNotFound; tag = source_.find("{%", tag + 1)) {
      at_ = tag + 2;
      const char before = take_sign();
      const auto word = after_word(at_, "endraw");
      if (!word) continue;
      at_ = *word;
      const char after = take_sign();
      if (!starts("%}")) continue;
      add_data(start, text_before(source_.substr(start, tag - start), before, true));
      at_ += 2;
      return skip_after(after, true);
    }
    budget_.fail("'raw' is not closed by 'endraw'");
  }

  void read_tag(std::string_view end) {
    std::string open;  // the brackets to close
    while (true) {
      at_ += leading_space(source_.substr(at_));
      if (at_ >= source_.size()) fail_unclosed(end, open);
      if (open.empty() && read_end(end)) return;
      read_token(open);
    }
  }

  bool read_end(std::string_view end) {
    const bool is_block = end == "%}";
    const bool has_sign = peek() == '-' || (is_block && peek() == '+');
    if (source_.substr(at_ + (has_sign ? 1 : 0), 2) != end) return false;
    const char sign = has_sign ? take_sign() : '\0';
    add(is_block ? TokenKind::kBlockEnd : TokenKind::kVariableEnd, at_, 2);
    at_ += 2;
    skip_after(sign, is_block);
    return true;
  }

  [[noreturn]] void fail_unclosed(std::string_view end, const std::string& open) {
    if (open.empty()) budget_.fail("expected '{}', found the end of the template", end);
    budget_.fail("expected '{}', found the end of the template", open.back());
  }

  void read_token(std::string& open) {
    const char c = peek();
    const size_t start = at_;
    if (is_digit(c)) {
      const TokenKind kind = read_number();
      add(kind, start, at_ - start);
    } else if (is_word(c)) {
      while (is_word(peek())) ++at_;
      add(TokenKind::kName, start, at_ - start);
    } else if (c == '\'' || c == '"') {
      read_string(c);
      add(TokenKind::kString, start, at_ - start);
    } else {
      read_operator(open);
    }
  }

  void read_digits() {
    while (is_digit(peek()) || (peek() == '_' && is_digit(peek(1)))) ++at_;
  }

  TokenKind read_number() {
    read_digits();
    const size_t whole = at_;
    if (peek() == '.' && is_digit(peek(1))) {
      ++at_;
      read_digits();
    }
    const size_t sign = peek(1) == '+' || peek(1) == '-' ? 2 : 1;
    if ((peek() == 'e' || peek() == 'E') && is_digit(peek(sign))) {
      at_ += sign;
      read_digits();
    }
    return at_ == whole ? TokenKind::kInteger : TokenKind::kFloat;
  }

  void read_string(char quote) {
    line_of(at_);
    for (++at_; at_ < source_.size() && source_[at_] != quote; ++at_) {
      if (source_[at_] == '\\') ++at_;
    }
    if (at_ >= source_.size()) budget_.fail("the text is not closed by {}", quote);
    ++at_;
  }

  void read_operator(std::string& open) {
    constexpr std::string_view kTwo[] = {"==", "!=", ">=", "<=", "//", "**"};
    constexpr std::string_view kOne = "+-*/%~[](){}<>=.:|,";
    const bool is_two =
        std::any_of(std::begin(kTwo), std::end(kTwo), [&](std::string_view two) { return starts(two); });
    const char c = peek();
    add(TokenKind::kOperator, at_, is_two ? 2 : 1);
    if (!is_two && kOne.find(c) == kNotFound) {
      budget_.fail("unexpected {}", in_quotes(source_.substr(at_, offset_of(source_.substr(at_, 4), 1))));
    }
    if (!is_two) follow_bracket(c, open);
    at_ += is_two ? 2 : 1;
  }

  // A dict may end right before the end of a tag ({{ {'a': {}} }}), so the end is looked for outside of brackets only.
  void follow_bracket(char c, std::string& open) const {
    if (c == '(') open += ')';
    if (c == '[') open += ']';
    if (c == '{') open += '}';
    if (c != ')' && c != ']' && c != '}') return;
    if (open.empty()) budget_.fail("unexpected '{}'", c);
    if (open.back() != c) budget_.fail("expected '{}', found '{}'", open.back(), c);
    open.pop_back();
  }

  std::string_view source_;
  Budget& budget_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int line_ = 1;
  size_t counted_ = 0;       // the bytes whose line ends are in line_
  bool starts_line_ = true;  // whether the text after the last tag starts on a line of its own
};

}  // namespace

std::string normalize_source(std::string_view text) {
  std::string source;
  source.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    source += text[i] == '\r' ? '\n' : text[i];
  }
  if (source.ends_with('\n')) source.pop_back();
  return source;
}

std::vector<Token> tokenize(std::string_view source, Budget& budget) { return Lexer(source, budget).run(); }

}  // namespace quern::chat
