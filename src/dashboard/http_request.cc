#include "dashboard/http_request.h"

#include <algorithm>

namespace quern::dashboard {
namespace {

constexpr HttpError kBadRequest = {400, "Bad Request"};

// Cuts off what precedes `separator`; all of it if there is none.
std::string_view cut(std::string_view& text, std::string_view separator) {
  const size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + separator.size());
  return part;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lowered(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

// Of a header's name, as RFC 9110 has it.
bool is_token(std::string_view text) {
  constexpr std::string_view kOther = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') || kOther.find(c) != std::string_view::npos;
  });
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

std::optional<std::string> decoded(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    result += static_cast<char>(16 * high + low);
    i += 2;
  }
  return result;
}

bool read_query(std::string_view text, HttpRequest& request) {
  while (!text.empty()) {
    std::string_view value = cut(text, "&");
    const auto name = decoded(cut(value, "=")), decoded_value = decoded(value);
    if (!name || !decoded_value) return false;
    request.query[*name] = *decoded_value;
  }
  return true;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Without the port: "[::1]:80" and "localhost:80".
std::string host_of(std::string_view value) {
  const size_t bracket = value.find(']');
  const size_t colon = value.find(':', bracket == std::string_view::npos ? 0 : bracket);
  return lowered(value.substr(0, colon));
}

// Returns whether the header can be accepted.
bool read_header(std::string_view line, HttpRequest& request, bool& has_host) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return false;
  const std::string name = lowered(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (std::any_of(value.begin(), value.end(), [](char c) { return (c >= 0 && c < ' ' && c != '\t') || c == 0x7f; })) {
    return false;
  }
  if (name == "host") {
    if (has_host || !is_printable(value)) return false;
    has_host = true;
    request.host = host_of(value);
  } else if (name == "connection") {
    const std::string wanted = lowered(value);
    if (wanted.find("close") != std::string::npos) request.keep_alive = false;
  } else if (name == "content-length") {
    return value == "0";
  } else if (name == "transfer-encoding") {
    return false;
  }
  return true;
}

}  // namespace

size_t head_size(std::string_view bytes) noexcept {
  const size_t end = bytes.find("\r\n\r\n");
  return end == std::string_view::npos ? 0 : end + 4;
}

ParsedRequest parse_request(std::string_view head) {
  HttpRequest request;
  std::string_view line = cut(head, "\r\n");
  const std::string_view method = cut(line, " ");
  std::string_view target = cut(line, " ");
  if (!is_token(method) || target.empty() || target.front() != '/' || !is_printable(target)) return {{}, kBadRequest};
  if (line != "HTTP/1.1" && line != "HTTP/1.0") {
    const bool other = line.starts_with("HTTP/") && is_printable(line);
    return {{}, other ? HttpError{505, "HTTP Version Not Supported"} : kBadRequest};
  }
  request.keep_alive = line == "HTTP/1.1";
  request.path = cut(target, "?");
  if (!read_query(target, request)) return {{}, kBadRequest};
  bool has_host = false;
  while (!head.empty()) {
    const std::string_view header = cut(head, "\r\n");
    if (header.empty()) break;
    if (!read_header(header, request, has_host)) return {{}, kBadRequest};
  }
  if (method != "GET" && method != "HEAD") return {{}, HttpError{405, "Method Not Allowed"}};
  request.head = method == "HEAD";
  return {std::move(request), {}};
}

}  // namespace quern::dashboard
