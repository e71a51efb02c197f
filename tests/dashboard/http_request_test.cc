#include "dashboard/http_request.h"

#include <gtest/gtest.h>

#include <string>

#include "support/mutation.h"

namespace quern::dashboard {
namespace {

int status_of(const std::string& head) {
  const ParsedRequest parsed = parse_request(head);
  EXPECT_NE(parsed.request.has_value(), parsed.error.has_value());
  return parsed.error ? parsed.error->status : 200;
}

TEST(HttpRequest, ReadsWhatABrowserSends) {
  const std::string head =
      "GET /api/view?from=10&to=2e3&run=a%2Bb+c HTTP/1.1\r\nHost: LocalHost:8321\r\nAccept: */*\r\n"
      "User-Agent: x (y; z)\r\n\r\n";
  EXPECT_EQ(head_size(head + "rest"), head.size());
  const auto request = parse_request(head).request;
  ASSERT_TRUE(request);
  EXPECT_EQ(request->path, "/api/view");
  EXPECT_EQ(request->host, "localhost");
  EXPECT_TRUE(request->keep_alive);
  EXPECT_FALSE(request->head);
  EXPECT_EQ(request->query.at("from"), "10");
  EXPECT_EQ(request->query.at("run"), "a+b c");
}

TEST(HttpRequest, KeepsAConnectionAsTheClientWants) {
  EXPECT_FALSE(parse_request("GET / HTTP/1.0\r\nHost: a\r\n\r\n").request->keep_alive);
  EXPECT_FALSE(parse_request("GET / HTTP/1.1\r\nHost: a\r\nConnection: Close\r\n\r\n").request->keep_alive);
  EXPECT_EQ(parse_request("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n").request->host, "[::1]");
  EXPECT_TRUE(parse_request("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n").request->head);
}

TEST(HttpRequest, RefusesWhatIsNotOne) {
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: a\r\n\r\n"), 405);
  EXPECT_EQ(status_of("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 505);
  for (const char* head : {"GET /\r\n\r\n", "GET  HTTP/1.1\r\n\r\n", "\r\n\r\n", "GET http://a/ HTTP/1.1\r\n\r\n",
                           "G\x01T / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                           "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "GET / HTTP/1.1\r\n folded\r\n\r\n",
                           "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n",
                           "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "GET / HTTP/1.1\r\nX: a\nb\r\n\r\n",
                           "GET /?a=%zz HTTP/1.1\r\nHost: a\r\n\r\n", "GET /\x80 HTTP/1.1\r\nHost: a\r\n\r\n",
                           "GET / HTTP/1.1 \r\n\r\n"}) {
    EXPECT_EQ(status_of(head), 400) << head;
  }
}

TEST(HttpRequest, AHeadIsIncompleteUntilItsEmptyLine) {
  EXPECT_EQ(head_size(""), 0u);
  EXPECT_EQ(head_size("GET / HTTP/1.1\r\nHost: a\r\n"), 0u);
  EXPECT_EQ(head_size("\r\n\r\n"), 4u);
}

TEST(HttpRequest, SurvivesAnyBytes) {
  test::Mutator mutator({"GET /api/view?x=step&from=1 HTTP/1.1\r\nHost: localhost:8321\r\nConnection: close\r\n\r\n"},
                        {"\r\n", ":", "%", "?", " ", "HTTP/1.1", "Host: "}, 5);
  for (int i = 0; i < 50'000; ++i) {
    const std::string head = mutator.next();
    static_cast<void>(head_size(head));
    static_cast<void>(status_of(head));
  }
}

}  // namespace
}  // namespace quern::dashboard
