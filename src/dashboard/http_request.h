// Reads the head of an HTTP request.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace quern::dashboard {

// The head of a GET or HEAD request.
struct HttpRequest {
  bool head = false;                                      // HEAD: the same without the body
  bool keep_alive = false;                                // the client may send another request
  std::string path;                                       // as sent: never decoded, and compared with fixed texts only
  std::map<std::string, std::string, std::less<>> query;  // decoded
  std::string host;                                       // in small letters, without the port; empty if there was none
};

// What is left of a request that cannot be answered.
struct HttpError {
  int status;
  const char* text;
};

struct ParsedRequest {
  std::optional<HttpRequest> request = {};
  std::optional<HttpError> error = {};
};

inline constexpr size_t kMaxHeadBytes = 8192;

// The number of bytes of the head that `bytes` begin with, the empty line included; 0 if it is not complete yet.
size_t head_size(std::string_view bytes) noexcept;

// Parses a complete head. Lenient in nothing: a request with a body, with two hosts, with line breaks that are not
// \r\n, or with bytes that do not belong into a head is an error.
ParsedRequest parse_request(std::string_view head);

}  // namespace quern::dashboard
