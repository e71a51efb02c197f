#include "core/error.h"

#include <gtest/gtest.h>

namespace quern {
namespace {

TEST(Error, FormatsItsArguments) {
  const Error error("[checkpoint] {}: expected version {}, found {}", "a.safetensors", 3, 7);
  EXPECT_STREQ(error.what(), "[checkpoint] a.safetensors: expected version 3, found 7");
}

// Names of files, and what is in them, come from others.
TEST(Error, IsOnePrintableLine) {
  const Error error("[data] {}: expected text, found {}", "a\x1b]0;title\x07\nb.txt", "\xff\xe9t\u00E9");
  EXPECT_STREQ(error.what(), "[data] a\\x1b]0;title\\x07 b.txt: expected text, found \\xff\\xe9t\u00E9");
}

}  // namespace
}  // namespace quern
