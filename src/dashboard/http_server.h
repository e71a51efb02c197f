// A small HTTP server for one page and its data: one thread, bounded in everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "dashboard/http_request.h"

namespace quern::dashboard {

struct HttpServerOptions {
  std::string host = "127.0.0.1";  // the address to listen on
  uint16_t port = 8321;            // if it is taken: the next free one; 0: any
  uint16_t tries = 50;             // how many ports to try
  size_t connections = 64;
  size_t streams = 32;       // of them, those that wait for events
  double head_seconds = 10;  // in which the head of a request must have arrived, and how long a connection may be idle
  double body_seconds = 60;  // in which a client must have taken an answer
  double stream_seconds = 30;               // the same for events that wait to be sent
  double comment_seconds = 15;              // between comments in a silent stream
  size_t stream_bytes = size_t{256} << 10;  // of events that wait to be sent to one client
};

struct HttpResponse {
  int status = 200;
  const char* status_text = "OK";
  const char* type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;  // shared by all clients that are sent the same
  bool stream = false;                      // from now on, events; `body` is the first of them
};

// Nothing that a client does or does not do blocks others or takes unbounded memory: a head has at most kMaxHeadBytes;
// requests have no body; clients that are too slow, in what they send or in what they take, are cut off; and if there
// are too many connections, an idle one is closed for a new one.
//
// A request's Host must be this machine: a name that an attacker lets point to 127.0.0.1 is refused, so that no page of
// another site can read the answers ("DNS rebinding").
class HttpServer {
 public:
  // Listens. Error if the address cannot be used, or none of the ports is free.
  explicit HttpServer(const HttpServerOptions& options);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();

  uint16_t port() const { return port_; }

  using Handler = std::function<HttpResponse(const HttpRequest& request)>;
  // Waits for what happens, at most `seconds`, and answers what can be answered.
  void serve(double seconds, const Handler& handler);

  // Sends the text to all streams. One that has not taken much of the earlier ones is closed.
  void send_event(const std::string& text);
  size_t streams() const;
  size_t connections() const { return connections_.size(); }
  // Makes serve() return early. Any thread, and signal handlers.
  void wake() noexcept;

 private:
  struct Connection;
  using Place = std::list<std::unique_ptr<Connection>>::iterator;

  void listen_on(const std::string& host, uint16_t port);
  void accept_all(double now);
  bool make_room();
  bool is_allowed_host(const std::string& host) const;
  // These return false if the connection is to be closed.
  bool receive(Connection& connection, const Handler& handler, double now);
  bool answer(Connection& connection, const Handler& handler, double now);
  bool send(Connection& connection, double now);
  bool is_in_time(Connection& connection, double now);
  HttpResponse response_to(const ParsedRequest& parsed, const Handler& handler) const;
  static void queue(Connection& connection, const HttpResponse& response, bool head, double now);

  HttpServerOptions options_;
  int listener_ = -1, wake_ = -1;
  uint16_t port_ = 0;
  bool any_address_ = false;  // listens on all addresses of the machine
  std::list<std::unique_ptr<Connection>> connections_;
};

}  // namespace quern::dashboard
