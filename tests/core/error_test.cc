#include "core/error.h"

#include <gtest/gtest.h>

namespace quern {
namespace {

TEST(Error, FormatsPlaceExpectedAndFound) {
  const Error error("[checkpoint] {}: expected version {}, found {}", "a.safetensors", 3, 7);
  EXPECT_STREQ(error.what(), "[checkpoint] a.safetensors: expected version 3, found 7");
}

}  // namespace
}  // namespace quern
