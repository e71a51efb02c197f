#include "dashboard/http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "core/host_name.h"

namespace quern::dashboard {
namespace {

constexpr size_t kReadBytes = 4096;
constexpr double kDrainSeconds = 2;
constexpr const char* kHeaders =
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cache-Control: no-store\r\n"
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n";

HttpResponse plain(int status, const char* status_text, std::string body) {
  return {.status = status,
          .status_text = status_text,
          .body = std::make_shared<const std::string>(std::move(body) + "\n")};
}

bool is_address(const std::string& host) {
  in_addr four = {};
  in6_addr six = {};
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    return inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &six) == 1;
  }
  return inet_pton(AF_INET, host.c_str(), &four) == 1;
}

std::string without_brackets(const std::string& host) {
  return host.size() > 2 && host.front() == '[' && host.back() == ']' ? host.substr(1, host.size() - 2) : host;
}

struct Addresses {
  addrinfo* first = nullptr;
  ~Addresses() {
    if (first != nullptr) freeaddrinfo(first);
  }
};

}  // namespace

struct HttpServer::Connection {
  explicit Connection(int socket, double now, double seconds) : descriptor(socket), deadline(now + seconds) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { ::close(descriptor); }

  bool is_sending() const { return sent < head.size() + (body ? body->size() : 0); }
  bool is_idle() const { return !stream && !is_sending(); }
  bool is_waiting() const { return is_idle() && !draining; }  // for a request

  int descriptor;
  std::string received;                     // at most kMaxHeadBytes and one read
  std::string head;                         // of the answer; of a stream, the events that wait
  std::shared_ptr<const std::string> body;  // null for HEAD
  size_t sent = 0;                          // of both
  double deadline;
  double last_sent = 0;  // of a stream
  bool stream = false, keep_alive = false;
  // Everything was sent. What the client still sends is discarded until it closes: closing first, with bytes unread,
  // would take back what was sent.
  bool draining = false;
};

HttpServer::HttpServer(const HttpServerOptions& options) : options_(options) {
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) throw Error("[dashboard] cannot start: {}", std::generic_category().message(errno));
  try {
    listen_on(options.host, options.port);
  } catch (...) {
    ::close(wake_);
    throw;
  }
}

HttpServer::~HttpServer() {
  connections_.clear();
  ::close(listener_);
  ::close(wake_);
}

void HttpServer::listen_on(const std::string& host, uint16_t port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  Addresses addresses;
  if (const int code = getaddrinfo(without_brackets(host).c_str(), nullptr, &hints, &addresses.first); code != 0) {
    throw Error("[dashboard] --host {}: expected an address of this machine, found none: {}", host, gai_strerror(code));
  }
  const addrinfo& first = *addresses.first;
  sockaddr_storage address = {};
  std::copy_n(reinterpret_cast<const char*>(first.ai_addr), first.ai_addrlen, reinterpret_cast<char*>(&address));
  in_port_t& place = first.ai_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                                 : reinterpret_cast<sockaddr_in&>(address).sin_port;
  any_address_ = host == "0.0.0.0" || without_brackets(host) == "::";
  int error = 0;
  for (uint32_t i = 0; i < (port == 0 ? 1u : options_.tries) && port + i <= 65535; ++i) {
    listener_ = ::socket(first.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int yes = 1;
    ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    place = htons(static_cast<uint16_t>(port + i));
    if (listener_ >= 0 && ::bind(listener_, reinterpret_cast<sockaddr*>(&address), first.ai_addrlen) == 0 &&
        ::listen(listener_, 64) == 0) {
      socklen_t size = sizeof(address);
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
      port_ = ntohs(place);
      return;
    }
    error = errno;
    if (listener_ >= 0) ::close(listener_);
    listener_ = -1;
    if (error != EADDRINUSE) break;
  }
  if (error == EADDRINUSE) {
    throw Error("[dashboard] --port {}: expected a free port, found all of {} to {} in use", port, port,
                std::min(65535, port + options_.tries - 1));
  }
  throw Error("[dashboard] cannot listen on {} port {}: {}", host, port, std::generic_category().message(error));
}

void HttpServer::wake() noexcept {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof(one));
}

size_t HttpServer::streams() const {
  return static_cast<size_t>(
      std::count_if(connections_.begin(), connections_.end(), [](const auto& each) { return each->stream; }));
}

// With addresses, and the machine's own name if it listens on all of its addresses: an attacker's page has a name.
bool HttpServer::is_allowed_host(const std::string& host) const {
  if (host == "localhost" || host == "127.0.0.1" || host == "[::1]" || host == options_.host) return true;
  if (without_brackets(host) == without_brackets(options_.host)) return true;
  return any_address_ && (is_address(host) || host == host_name());
}

HttpResponse HttpServer::response_to(const ParsedRequest& parsed, const Handler& handler) const {
  if (parsed.error) return plain(parsed.error->status, parsed.error->text, parsed.error->text);
  const HttpRequest& request = *parsed.request;
  if (!is_allowed_host(request.host)) {
    return plain(403, "Forbidden", "this is not the dashboard of the host that was asked for; use its address");
  }
  HttpResponse response = handler(request);
  if (response.stream && (request.head || streams() >= options_.streams)) {
    return request.head ? plain(200, "OK", "") : plain(503, "Service Unavailable", "too many pages are open");
  }
  return response;
}

void HttpServer::queue(Connection& connection, const HttpResponse& response, bool head, double now) {
  connection.head = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\n{}", response.status, response.status_text,
                                response.type, kHeaders);
  if (response.status == 405) connection.head += "Allow: GET, HEAD\r\n";
  connection.stream = response.stream;
  connection.sent = 0;
  connection.body.reset();
  if (response.stream) {
    connection.keep_alive = false;
    connection.head += "Connection: close\r\n\r\n" + *response.body;
    connection.last_sent = now;
    return;
  }
  connection.head += fmt::format("Content-Length: {}\r\nConnection: {}\r\n\r\n", response.body->size(),
                                 connection.keep_alive ? "keep-alive" : "close");
  if (!head) connection.body = response.body;
}

bool HttpServer::answer(Connection& connection, const Handler& handler, double now) {
  while (connection.is_waiting()) {
    const size_t size = head_size(connection.received);
    const bool too_long = size > kMaxHeadBytes || (size == 0 && connection.received.size() > kMaxHeadBytes);
    if (size == 0 && !too_long) return true;
    ParsedRequest parsed;
    if (too_long) {
      parsed.error = HttpError{431, "Request Header Fields Too Large"};
    } else {
      parsed = parse_request(std::string_view(connection.received).substr(0, size));
    }
    connection.received.erase(0, size);
    if (parsed.error) connection.received.clear();
    connection.keep_alive = parsed.request && parsed.request->keep_alive;
    queue(connection, response_to(parsed, handler), parsed.request && parsed.request->head, now);
    connection.deadline = now + (connection.stream ? options_.stream_seconds : options_.body_seconds);
    if (!send(connection, now)) return false;
  }
  return true;
}

// While an answer is being sent, further requests wait in the socket.
bool HttpServer::receive(Connection& connection, const Handler& handler, double now) {
  char bytes[kReadBytes];
  const ssize_t count = ::recv(connection.descriptor, bytes, sizeof(bytes), 0);
  if (count == 0) return false;
  if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  if (connection.stream || connection.draining) return true;  // nobody asks for more on a stream
  connection.received.append(bytes, static_cast<size_t>(count));
  return answer(connection, handler, now);
}

bool HttpServer::send(Connection& connection, double now) {
  while (connection.is_sending()) {
    const bool in_head = connection.sent < connection.head.size();
    const std::string& text = in_head ? connection.head : *connection.body;
    const size_t offset = connection.sent - (in_head ? 0 : connection.head.size());
    const ssize_t count =
        ::send(connection.descriptor, text.data() + offset, text.size() - offset, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    connection.sent += static_cast<size_t>(count);
  }
  connection.head.clear();
  connection.head.shrink_to_fit();
  connection.body.reset();
  connection.sent = 0;
  connection.deadline = now + options_.head_seconds;
  if (!connection.stream && !connection.keep_alive) {
    connection.draining = true;
    connection.deadline = now + kDrainSeconds;
    ::shutdown(connection.descriptor, SHUT_WR);
  }
  return true;
}

bool HttpServer::is_in_time(Connection& connection, double now) {
  if (!connection.stream || connection.is_sending()) return now < connection.deadline;
  if (now - connection.last_sent < options_.comment_seconds) return true;
  connection.head = ": still here\n\n";
  connection.last_sent = now;
  connection.deadline = now + options_.stream_seconds;
  return send(connection, now);
}

void HttpServer::send_event(const std::string& text) {
  const double now = seconds_now();
  for (auto each = connections_.begin(); each != connections_.end();) {
    Connection& connection = **each;
    bool stays = true;
    if (connection.stream) {
      if (!connection.is_sending()) connection.deadline = now + options_.stream_seconds;
      connection.head.erase(0, connection.sent);
      connection.sent = 0;
      connection.head += text;
      connection.last_sent = now;
      stays = connection.head.size() <= options_.stream_bytes && send(connection, now);
    }
    each = stays ? std::next(each) : connections_.erase(each);
  }
}

// Closes the connection that has been idle for longest: browsers keep some for later, and attackers all of them.
bool HttpServer::make_room() {
  if (connections_.size() < options_.connections) return true;
  auto oldest = connections_.end();
  for (auto each = connections_.begin(); each != connections_.end(); ++each) {
    if (!(*each)->is_idle()) continue;
    if (oldest == connections_.end() || (*each)->deadline < (*oldest)->deadline) oldest = each;
  }
  if (oldest == connections_.end()) return false;
  connections_.erase(oldest);
  return true;
}

void HttpServer::accept_all(double now) {
  // At most as many as there may be, so that a flood of them does not keep the others from being served.
  for (size_t i = 0; i < options_.connections; ++i) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) {
      const bool full = errno == EMFILE || errno == ENFILE;  // of descriptors: waiting is all that can be done
      if (full) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return;
    }
    if (!make_room()) {
      ::close(socket);
      continue;
    }
    connections_.push_back(std::make_unique<Connection>(socket, now, options_.head_seconds));
  }
}

void HttpServer::serve(double seconds, const Handler& handler) {
  std::vector<pollfd> waiting = {{listener_, POLLIN, 0}, {wake_, POLLIN, 0}};
  double deadline = seconds_now() + seconds;
  for (const auto& each : connections_) {
    const bool sending = each->is_sending();
    waiting.push_back({each->descriptor, static_cast<short>(sending ? POLLOUT : POLLIN), 0});
    deadline =
        std::min(deadline, each->stream && !sending ? each->last_sent + options_.comment_seconds : each->deadline);
  }
  const double left = std::max(0.0, deadline - seconds_now());
  const int ready = ::poll(waiting.data(), waiting.size(), static_cast<int>(std::min(left * 1000 + 1, 1e8)));
  const double now = seconds_now();
  uint64_t woken = 0;
  if (ready > 0 && waiting[1].revents != 0) {
    [[maybe_unused]] const ssize_t count = ::read(wake_, &woken, sizeof(woken));
  }
  size_t i = 2;
  for (auto each = connections_.begin(); each != connections_.end(); ++i) {
    Connection& connection = **each;
    const short events = ready > 0 ? waiting[i].revents : short{0};
    bool stays = (events & (POLLERR | POLLNVAL | POLLHUP)) == 0;
    if (stays && (events & POLLOUT) != 0) stays = send(connection, now) && answer(connection, handler, now);
    if (stays && (events & POLLIN) != 0 && !connection.is_sending()) {
      stays = receive(connection, handler, now);
    }
    stays = stays && is_in_time(connection, now);
    each = stays ? std::next(each) : connections_.erase(each);
  }
  if (ready > 0 && waiting[0].revents != 0) accept_all(now);
}

}  // namespace quern::dashboard
