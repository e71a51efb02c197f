#include <atomic>
#include <cstdlib>
#include <new>

#include "generate/generate.h"
#include "generate/model.h"

namespace {

std::atomic<size_t> allocations = 0;

}  // namespace

// Counts, in this program. AlignedBuffer does not come through here, but nothing can hold one without a container. Not
// inlined, because g++ 12 would then see a free() of what it takes for another operator's memory.
[[gnu::noinline]] void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace quern {
namespace {

// Through several slides of the window.
TEST(Generate, AllocatesNothingPerToken) {
  nn::Transformer model(test::small_config(16), true);
  test::fill(model);
  Decoder decoder(model);
  const std::vector<int32_t> prompt = test::random_tokens(100, model.config().vocabulary);
  size_t before = 0, after = 0, made = 0;
  const OnToken on_token = [&](int32_t) {
    if (made++ == 0) before = allocations.load();
    after = allocations.load();
    return true;
  };
  const Sampling sampling{.top_k = 20, .top_p = 0.9f, .min_p = 0.01f, .repeat_penalty = 1.1f, .repeat_window = 30};
  generate(decoder, prompt, {.max_tokens = 60, .sampling = sampling}, on_token);
  EXPECT_EQ(made, 60u);
  EXPECT_GT(before, 0u);
  EXPECT_EQ(after, before);
}

TEST(Decoder, AllocatesNothingOnceMade) {
  nn::Transformer model(test::small_config(16), false);
  test::fill(model);
  const std::vector<int32_t> prompt = test::random_tokens(100, model.config().vocabulary);
  for (const size_t threads : {1, 3}) {
    Decoder decoder(model, {.threads = threads, .share_all = true});
    decoder.append(prompt);  // until then the other thread may be starting
    const size_t before = allocations.load();
    decoder.clear();
    decoder.append(prompt);
    for (const int32_t token : prompt) decoder.append(token);
    EXPECT_EQ(allocations.load(), before) << threads << " threads";
  }
}

}  // namespace
}  // namespace quern
