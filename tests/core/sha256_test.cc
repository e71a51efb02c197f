#include "core/sha256.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace quern {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string digest_of(std::string_view text, Sha256::Code code) {
  Sha256 hash(code);
  hash.update(bytes_of(text));
  return to_hex(hash.finish());
}

// From FIPS 180-4 examples and NIST's SHA256ShortMsg.
TEST(Sha256, MatchesPublishedDigests) {
  const std::string million(1'000'000, 'a');
  for (const Sha256::Code code : {Sha256::Code::kFastest, Sha256::Code::kPortable}) {
    EXPECT_EQ(digest_of("", code), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(digest_of("abc", code), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(digest_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", code),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(
        digest_of("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrs"
                  "mnopqrstnopqrstu",
                  code),
        "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
    EXPECT_EQ(digest_of(million, code), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    EXPECT_EQ(digest_of("\xd3", code), "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1");
  }
}

// Every length around one and two blocks exercises every amount of padding.
TEST(Sha256, PiecewiseUpdateGivesTheSameDigest) {
  std::string message;
  for (int i = 0; i < 300; ++i) message += static_cast<char>(i * 7 + 3);
  for (size_t length = 0; length <= message.size(); ++length) {
    const std::span<const std::byte> whole = bytes_of(message).first(length);
    const std::string expected = digest_of(std::string_view(message).substr(0, length), Sha256::Code::kPortable);
    for (const size_t piece : {size_t{1}, size_t{7}, size_t{63}, size_t{64}, size_t{65}, size_t{1000}}) {
      Sha256 hash;
      for (size_t at = 0; at < length; at += piece) hash.update(whole.subspan(at, std::min(piece, length - at)));
      ASSERT_EQ(to_hex(hash.finish()), expected) << length << " bytes in pieces of " << piece;
    }
  }
}

TEST(Sha256, StartsOverAfterFinish) {
  Sha256 hash;
  hash.update(bytes_of("something else"));
  hash.finish();
  hash.update(bytes_of("abc"));
  EXPECT_EQ(to_hex(hash.finish()), sha256_hex(bytes_of("abc")));
}

}  // namespace
}  // namespace quern
