// Buffers whose counters, words, sum tree or rows somebody has changed: rows may be rubbish or missing, calls may be
// Errors, and no byte outside of the buffer's parts is read or written.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>

#include "core/error.h"
#include "core/files.h"
#include "replay/layout.h"
#include "replay/sampler.h"
#include "replay/snapshot.h"
#include "support/temporary_folder.h"

namespace quern::replay {
namespace {

constexpr size_t kRows = 8;

Schema schema() {
  return Schema({{.name = "a", .dtype = DType::kU8, .shape = {3}},
                 {.name = "b", .dtype = DType::kU8, .shape = {40}, .encoding = Encoding::kBits},
                 {.name = "c", .dtype = DType::kF32, .shape = {20}, .encoding = Encoding::kSparse, .max_nonzero = 2}});
}

BufferOptions options(uint64_t capacity) {
  return {.capacity = capacity,
          .prioritised = true,
          .limit = {.samples_per_insert = 2, .minimum = 2, .slack = 10},
          .prefault = false};
}

// The result does not matter, as long as the call returns.
template <typename Body>
bool works(Body body) {
  try {
    body();
    return true;
  } catch (const Error&) {
    return false;
  }
}

class HostileContents : public testing::Test {
 protected:
  // The bytes of a full buffer.
  std::string full(uint64_t capacity) {
    ReplayBuffer buffer = ReplayBuffer::create(schema(), options(capacity), storage());
    add(buffer, capacity + capacity / 3);
    std::string bytes = quern::read_file(path_, size_t{1} << 30);
    ReplayBuffer::remove(storage());
    return bytes;
  }

  Storage storage() const { return Storage::in_file(path_); }

  void add(ReplayBuffer& buffer, uint64_t rows) {
    const std::byte* const in[] = {zeros_.data(), zeros_.data(), zeros_.data()};
    for (uint64_t done = 0; done < rows; done += std::min(kRows, rows - done)) {
      buffer.add_unlimited(in, std::min(kRows, rows - done), {});
    }
  }

  // Everything that can be done with a buffer, by every rule.
  void use(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    ReplayBuffer buffer = ReplayBuffer::attach(storage());
    const Layout layout(buffer.schema(), buffer.options());
    std::vector<uint64_t> ids(kRows, 0);
    for (const Rule rule : {Rule::kUniform, Rule::kWithoutReplacement, Rule::kPrioritised, Rule::kRecent}) {
      sampled_ += works([&] { sample(buffer, rule, ids); }) ? 1 : 0;
    }
    // Sampling repairs sums; it writes nothing else.
    const std::string after = quern::read_file(path_, size_t{1} << 30);
    ASSERT_EQ(after.size(), bytes.size());
    ASSERT_EQ(after.substr(0, layout.counters), bytes.substr(0, layout.counters));
    ASSERT_EQ(after.substr(layout.columns[0]), bytes.substr(layout.columns[0]));
    change(buffer, ids);
  }

  void sample(const ReplayBuffer& buffer, Rule rule, std::vector<uint64_t>& ids) {
    std::vector<std::byte> a(kRows * 3), b(kRows * 40), c(kRows * 80);
    std::vector<uint64_t> ages(kRows);
    std::vector<float> weights(kRows);
    std::byte* const out[] = {a.data(), b.data(), c.data()};
    Sampler sampler(buffer, seed_++);
    const SampleRequest request{.rows = kRows, .rule = rule, .half_life = 100};
    const SampleArrays arrays{out, ids.data(), ages.data(), weights.data()};
    sampler.sample_admitted(request, arrays);  // the counters of the rate limit may hold anything
    works([&] { sampler.admit(request, arrays, 0.0); });
    for (const uint64_t age : ages) ASSERT_LT(age, buffer.capacity());
  }

  void change(ReplayBuffer& buffer, std::vector<uint64_t> ids) {
    const std::vector<float> priorities(2 * kRows, 2.0f);
    for (size_t i = 0; i < kRows; ++i) ids.push_back(random_());
    works([&] { buffer.update_priorities(ids, priorities); });
    works([&] { buffer.limiter().admit_inserts(3, 0); });
    works([&] { buffer.limiter().admit_samples(3, 0); });
    static_cast<void>(buffer.limiter().balance());
    EXPECT_LE(buffer.size(), buffer.capacity());
    for (uint64_t slot = 0; slot < buffer.capacity(); slot += 1 + buffer.capacity() / 100) {
      std::byte row[80];
      std::byte* const out[] = {row, row, row};
      static_cast<void>(buffer.read(buffer.ring().id_in(slot), out));
    }
    added_ += works([&] { add(buffer, 20); }) ? 1 : 0;
    SnapshotResult saved;
    if (!works([&] { saved = save_snapshot(buffer, folder_.path() / "s"); })) return;
    ReplayBuffer back = ReplayBuffer::create(schema(), options(buffer.capacity()));
    EXPECT_EQ(load_snapshot(back, folder_.path() / "s").rows, saved.rows);  // what is saved can be loaded
  }

  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "buffer";
  std::vector<std::byte> zeros_ = std::vector<std::byte>(kRows * 80);
  std::mt19937_64 random_{4};
  uint64_t seed_ = 0, sampled_ = 0, added_ = 0;
};

TEST_F(HostileContents, AnyBytesDoNoHarm) {
  const std::string good = full(10);
  const Layout layout(schema(), options(10));
  for (int round = 0; round < 300; ++round) {
    std::string bytes = good;
    for (size_t at = layout.counters; at < bytes.size(); ++at) bytes[at] = static_cast<char>(random_());
    use(bytes);
    if (HasFatalFailure()) return;
  }
}

// Eight bytes at a time, which leaves most of the buffer good, so that calls get far.
class ChangedWords : public HostileContents, public testing::WithParamInterface<uint64_t> {
 protected:
  void put(std::string& bytes, uint64_t at, uint64_t value) const { std::memcpy(&bytes[at], &value, sizeof value); }
};

TEST_P(ChangedWords, DoNoHarm) {
  const std::string good = full(GetParam());
  const Layout layout(schema(), options(GetParam()));
  const uint64_t words = (layout.columns[0] - layout.counters) / 8;
  constexpr int kRounds = 40;
  for (int round = 0; round < kRounds; ++round) {
    std::string bytes = good;
    for (uint64_t changes = 1 + random_() % 8; changes > 0; --changes) {
      // Half of them where there are few words: the counters, and the upper levels of the tree.
      const uint64_t word = random_() % 2 == 0   ? random_() % words
                            : random_() % 4 == 0 ? random_() % (kCounters * 8)
                                                 : words - 1 - random_() % std::min<uint64_t>(words, 1000);
      put(bytes, layout.counters + 8 * word, random_() >> random_() % 64);
    }
    use(bytes);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(sampled_, kRounds) << "of " << 4 * kRounds;
  EXPECT_GT(added_, kRounds / 4);
}

// Each level of the tree ends with a full cache line. Whatever lies in it behind the last node leads nowhere.
TEST_P(ChangedWords, InPaddingNodesDoNoHarm) {
  const std::string good = full(GetParam());
  const Layout layout(schema(), options(GetParam()));
  uint64_t begin = layout.tree, parents = 0;
  for (uint64_t nodes = GetParam(); nodes > 1; begin += 64 * parents, nodes = parents) {
    parents = (nodes + 7) / 8;
    if (nodes % 8 == 0) continue;
    for (const uint64_t value : {uint64_t{1} << 24, uint64_t{1} << 45, uint64_t{1} << 60, ~uint64_t{0}}) {
      std::string bytes = good;
      for (uint64_t node = nodes; node % 8 != 0; ++node) put(bytes, begin + 8 * node, value);
      use(bytes);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(sampled_, 0u);
}

INSTANTIATE_TEST_SUITE_P(Capacities, ChangedWords, testing::Values(13, 4097, 100'000, 300'000));

// No process is writing, whatever the words say: add() gives up instead of searching forever.
TEST_F(HostileContents, SlotsThatStayBusyAreAnError) {
  std::vector<std::atomic<uint64_t>> words(4);
  Counter reserved, published;
  for (std::atomic<uint64_t>& word : words) word = busy_word(0, static_cast<uint16_t>(fork_count()));
  Ring ring({&reserved, &published, words.data()}, 4, nullptr, 0.05);
  EXPECT_FALSE(works([&] { ring.write(ring.reserve(1), [](uint64_t) {}); }));
}

TEST_F(HostileContents, IdsOutOfRangeAreAnError) {
  std::vector<std::atomic<uint64_t>> words(4);
  for (const uint64_t next : {kEndOfIds, kEndOfIds - 1, ~uint64_t{0}, uint64_t{1} << 63}) {
    Counter reserved, published;
    reserved.value = next;
    Ring ring({&reserved, &published, words.data()}, 4);
    EXPECT_FALSE(works([&] { ring.reserve(2); })) << next;
  }
}

}  // namespace
}  // namespace quern::replay
