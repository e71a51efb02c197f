#include "kernels/attention_decode.h"

#include <algorithm>
#include <string>

#include "kernels/attention.h"
#include "support/support.h"

namespace quern::kernels {
namespace {

constexpr float kUntouched = -777.0f;

struct Case {
  size_t T, heads, D;
  size_t group = 1;  // heads of queries that share keys and values
  size_t kv_heads() const { return heads / group; }
  size_t width() const { return (heads + 2 * kv_heads()) * D; }
  std::vector<float> qkv() const { return test::normal(T * width(), 1); }
};

std::vector<float> whole(const Case& c, const std::vector<float>& qkv) {
  const AttentionShape shape{c.T, c.heads, c.kv_heads(), c.D, c.width(), c.heads * c.D};
  std::vector<float> out(c.T * c.heads * c.D), logsumexp(c.heads * c.T), scratch(attention_scratch(shape));
  attention_forward(shape, qkv.data(), out.data(), logsumexp.data(), {}, 0, c.heads, scratch);
  return out;
}

// How a case is cut and placed: everything `offset` floats off alignment, the memory full of NaN at first.
struct Steps {
  size_t rows = 1;  // new positions at a time
  size_t offset = 0;
  size_t spare = 0;      // capacity that is not used
  size_t heads = 1'000;  // at a time, the last ones first
};

std::vector<float> in_steps(const Case& c, const std::vector<float>& values, const Steps& steps) {
  const auto& [rows, offset, spare, at_once] = steps;
  const CacheShape shape{c.heads, c.kv_heads(), c.D, c.T + spare};
  const size_t C = c.heads * c.D;
  const test::Placed qkv(values, offset);
  test::Placed cache(attention_cache_size(shape), std::nanf(""), offset), out(c.T * C, kUntouched, offset);
  test::Placed scratch(attention_decode_scratch(shape), std::nanf(""), offset);
  for (size_t i = 0; i < c.T; i += rows) {
    const NewPositions positions{shape, qkv.data() + i * c.width(), std::min(rows, c.T - i), i};
    for (size_t end = c.heads; end > 0; end -= std::min(end, at_once)) {
      const Range heads{end - std::min(end, at_once), end};
      const Range shared{heads.begin / c.group, (heads.end - 1) / c.group + 1};
      attention_cache_store(positions, shared, cache.data());
      attention_decode(positions, heads, cache.data(), out.data() + i * C, scratch.span());
    }
  }
  return out.copy();
}

void expect_same(const Case& c, const Steps& steps) {
  SCOPED_TRACE("T=" + std::to_string(c.T) + " heads=" + std::to_string(c.heads) + " D=" + std::to_string(c.D) +
               " group=" + std::to_string(c.group));
  const std::vector<float> qkv = c.qkv();
  test::for_each_target([&](const Target&) { EXPECT_TRUE(test::same_bits(whole(c, qkv), in_steps(c, qkv, steps))); });
}

TEST(AttentionDecode, OneByOneMatchesTheFullPassForEveryHeadSize) {
  for (const size_t D : {1u, 3u, 8u, 15u, 16u, 17u, 32u, 64u, 80u, 128u, 129u, 256u})
    expect_same({40, 2, D}, {.rows = 1});
}

TEST(AttentionDecode, OneByOneMatchesTheFullPassForEveryLength) {
  for (const size_t T : {1u, 2u, 15u, 16u, 17u, 127u, 128u, 129u, 300u}) expect_same({T, 2, 24}, {.rows = 1});
}

TEST(AttentionDecode, ChunkSizeDoesNotMatter) {
  for (const size_t rows : {2u, 7u, 64u, 150u}) expect_same({150, 3, 20}, {.rows = rows});
}

TEST(AttentionDecode, HeadsCanBeSplitAnywhere) {
  for (const size_t heads : {1u, 2u, 3u, 5u}) expect_same({40, 5, 20}, {.rows = 7, .heads = heads});
}

TEST(AttentionDecode, SharedKeysMatchTheFullPass) {
  for (const size_t group : {2u, 3u, 7u, 30u}) {
    for (const size_t rows : {1u, 2u, 25u, 64u}) {
      for (const size_t heads : {1'000u, 4u, 1u}) expect_same({140, group, 20, group}, {.rows = rows, .heads = heads});
      expect_same({70, 2 * group, 64, group}, {.rows = rows});
    }
  }
}

TEST(AttentionDecode, AlignmentAndCapacityDoNotMatter) {
  for (const size_t offset : {1u, 3u, 8u, 15u})
    expect_same({70, 3, 17}, {.rows = 9, .offset = offset, .spare = offset * 20});
}

TEST(AttentionDecode, LargeScoresDoNotOverflow) {
  std::vector<float> qkv = test::normal(20 * 3 * 16, 4, 100.0f);
  test::for_each_target([&](const Target&) {
    const std::vector<float> out = in_steps({20, 1, 16}, qkv, {});
    EXPECT_TRUE(test::same_bits(whole({20, 1, 16}, qkv), out));
    for (const float x : out) ASSERT_TRUE(std::isfinite(x));
  });
}

}  // namespace
}  // namespace quern::kernels
