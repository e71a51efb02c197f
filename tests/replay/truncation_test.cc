// A buffer or snapshot that is truncated, or a snapshot that is changed, while in use causes an Error, not SIGBUS or
// wrong rows.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>

#include "core/error.h"
#include "replay/sampler.h"
#include "replay/snapshot.h"
#include "replay/snapshot_file.h"
#include "rows.h"
#include "support/child_process.h"
#include "support/message.h"
#include "support/temporary_folder.h"

namespace quern::replay {
namespace {

using test::message_of;

constexpr uint64_t kRows = 2000;

class Truncation : public testing::TestWithParam<Storage::Kind> {
 protected:
  Truncation() {
    ReplayBuffer::remove(storage_);
    test::add_rows(buffer_.emplace(create()), 0, kRows);
  }
  ~Truncation() override { unlink(storage_.path().c_str()); }

  ReplayBuffer create() const {
    BufferOptions options = test::options_for(kRows, true);
    options.limit = {.samples_per_insert = 1, .minimum = kRows};
    return ReplayBuffer::create(test::small_schema(), options, storage_);
  }

  void cut(off_t bytes) const { ASSERT_EQ(truncate(storage_.path().c_str(), bytes), 0); }

  static void sample(const ReplayBuffer& buffer, Rule rule) {
    std::vector<test::Bytes> values;
    std::vector<std::byte*> columns;
    for (const Column& column : buffer.schema().columns()) values.emplace_back(8 * column.value_bytes());
    for (test::Bytes& column : values) columns.push_back(column.data());
    Sampler(buffer, 1).sample({.rows = 8, .rule = rule, .half_life = 50}, {columns});
  }

  std::string expected() const {
    return storage_.text() + ": it was truncated while in use, or its disk has failed; remove it and create it again";
  }

  test::TemporaryFolder folder_;
  Storage storage_ = GetParam() == Storage::Kind::kFile
                         ? Storage::in_file(folder_ / "buffer")
                         : Storage::in_shared("truncation_test-" + std::to_string(getpid()));
  std::optional<ReplayBuffer> buffer_;
};

// Each call is the first to notice once, on a buffer of its own.
TEST_P(Truncation, EveryCallIsAnError) {
  const std::vector<uint64_t> ids = {kRows - 1};
  const std::vector<float> priorities = {1};
  const std::filesystem::path saved = folder_.path() / "s";
  save_snapshot(*buffer_, saved);
  const std::function<void()> calls[] = {
      [&] { test::add_rows(*buffer_, 0, kRows); },
      [&] { test::number_of(*buffer_, kRows - 1); },
      [&] { sample(*buffer_, Rule::kUniform); },
      [&] { sample(*buffer_, Rule::kWithoutReplacement); },
      [&] { sample(*buffer_, Rule::kPrioritised); },
      [&] { sample(*buffer_, Rule::kRecent); },
      [&] { buffer_->update_priorities(ids, priorities); },
      [&] { save_snapshot(*buffer_, saved); },
      [&] { save_snapshot_in_background(*buffer_, saved).get(); },
      [&] { load_snapshot(*buffer_, saved); },
  };
  for (const off_t bytes : {off_t{0}, off_t{4096}, off_t{20'000}}) {
    for (const auto& call : calls) {
      cut(bytes);
      EXPECT_EQ(message_of(call), expected()) << bytes << " bytes, call " << &call - calls;
      EXPECT_EQ(message_of(calls[0]), expected());  // and remains one
      buffer_.reset();
      unlink(storage_.path().c_str());
      test::add_rows(buffer_.emplace(create()), 0, kRows);
    }
  }
  EXPECT_EQ(snapshot_info(saved).rows, kRows);  // those that failed have left the old one
}

TEST_P(Truncation, EndsWaitsForTheRateLimit) {
  ASSERT_TRUE(buffer_->limiter().admit_samples(1, 0));
  ASSERT_FALSE(buffer_->limiter().admit_samples(1, 0));
  std::thread waiting([&] { EXPECT_TRUE(buffer_->limiter().admit_samples(1, -1)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  cut(0);
  waiting.join();
  EXPECT_EQ(message_of([&] { sample(*buffer_, Rule::kUniform); }), expected());
}

TEST_P(Truncation, AttachReportsTheSizes) {
  cut(20'000);
  EXPECT_NE(message_of([&] { ReplayBuffer::attach(storage_); }).find("damaged: bytes: expected"), std::string::npos);
}

TEST_P(Truncation, IsAnErrorInRunningThreads) {
  std::atomic<int> errors{0}, working{0};
  const auto until_error = [&](const auto& call) {
    std::string message = "no error";
    for (++working; message == "no error";) message = message_of(call);
    errors += message == expected() ? 1 : 0;
  };
  std::thread adding([&] { until_error([&] { test::add_rows(*buffer_, 0, 100); }); });
  std::thread drawing([&] { until_error([&] { sample(*buffer_, Rule::kPrioritised); }); });
  std::thread saving([&] { until_error([&] { save_snapshot(*buffer_, folder_.path() / "s"); }); });
  while (working.load() < 3) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  cut(100'000);
  cut(0);
  adding.join();
  drawing.join();
  saving.join();
  EXPECT_EQ(errors.load(), 3);
}

INSTANTIATE_TEST_SUITE_P(Storages, Truncation, testing::Values(Storage::Kind::kShared, Storage::Kind::kFile));

// A byte of a mapping that has nothing to do with us and whose file ends before it.
void touch_a_missing_page() {
  const test::TemporaryFolder folder;
  const int file = open((folder / "f").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(ftruncate(file, 4096), 0);
  auto* const bytes = static_cast<volatile char*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  ASSERT_EQ(ftruncate(file, 0), 0);
  unlink((folder / "f").c_str());
  rmdir(folder.path().c_str());  // this process will not get to its destructor
  bytes[0] = 1;
}

ReplayBuffer some_buffer(const test::TemporaryFolder& folder) {
  return ReplayBuffer::create(test::small_schema(), test::options_for(10), Storage::in_file(folder / "buffer"));
}

TEST(BusError, OutsideGuardedMappingsStillEndsTheProcess) {
  const test::TemporaryFolder folder;
  const ReplayBuffer buffer = some_buffer(folder);
  const auto die = [](const auto& how) {
    return test::run_in_child([&] {
      how();
      return 0;
    });
  };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr bool kReported = true;  // the sanitizer handles the signal, and exits with a code of its own
#else
  constexpr bool kReported = false;
#endif
  for (const int code : {die([] { raise(SIGBUS); }), die(touch_a_missing_page)}) {
    EXPECT_TRUE(code == 128 + SIGBUS || (kReported && code != 0)) << code;
  }
}

// Installed before our first buffer: sees what is not ours. (ctest runs each test in a process of its own. After others
// in one process it replaces our handler, which is installed only once, and shows less.)
TEST(BusError, IsForwardedToTheEarlierHandler) {
  const int code = test::run_in_child([] {
    struct sigaction action = {};
    action.sa_handler = [](int) { _exit(42); };
    sigaction(SIGBUS, &action, nullptr);
    const test::TemporaryFolder folder;
    const ReplayBuffer buffer = some_buffer(folder);
    ReplayBuffer::remove(Storage::in_file(folder / "buffer"));
    rmdir(folder.path().c_str());
    touch_a_missing_page();
    return 0;
  });
  EXPECT_EQ(code, 42);
}

// A program that ignores the signal still ignores those that other processes send.
TEST(BusError, SentByKillStaysIgnored) {
  const int code = test::run_in_child([] {
    signal(SIGBUS, SIG_IGN);
    const test::TemporaryFolder folder;
    const ReplayBuffer buffer = some_buffer(folder);
    kill(getpid(), SIGBUS);
    kill(getpid(), SIGBUS);
    return 42;
  });
  EXPECT_EQ(code, 42);
}

// As Python's faulthandler.disable() does, or a program that sets back all signals.
TEST(BusError, HandlerIsReinstalledAfterAReset) {
  for (const auto action : {SIG_DFL, SIG_IGN}) {
    const int code = test::run_in_child([&] {
      const test::TemporaryFolder folder;
      const ReplayBuffer first = some_buffer(folder);
      signal(SIGBUS, action);
      const std::string path = folder / "second";
      ReplayBuffer second =
          ReplayBuffer::create(test::small_schema(), test::options_for(kRows), Storage::in_file(path));
      if (truncate(path.c_str(), 0) != 0) return 1;
      return message_of([&] { test::add_row(second, 0); }).find("truncated while in use") != std::string::npos ? 42 : 2;
    });
    EXPECT_EQ(code, 42);
  }
}

TEST(SnapshotTruncation, IsAnErrorWhileItIsRead) {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "s";
  auto buffer = ReplayBuffer::create(test::small_schema(), test::options_for(20'000));
  test::add_rows(buffer, 0, 20'000);
  save_snapshot(buffer, path);
  const SnapshotReader reader(path);
  ASSERT_GT(reader.blocks().size(), 2u);
  std::filesystem::resize_file(path, 100'000);
  EXPECT_NE(message_of([&] { reader.verify(2); }).find("as when it was opened, found 100000"), std::string::npos);
  RowBlock block(reader.info().schema, {}, reader.max_rows());
  BlockCodec codec;
  const size_t last = reader.blocks().size() - 1;
  EXPECT_NE(message_of([&] { reader.unpack(last, codec, block); }).find("as when it was opened"), std::string::npos);
  std::vector<std::byte> numbers(reader.blocks()[last].rows * 8);
  EXPECT_NE(message_of([&] { reader.unpack_part(last, 1, codec, numbers); }).find("as when it was opened"),
            std::string::npos);
}

// Changed after verify() has found it good: without a second check, a byte that is not packed would turn up in a row.
TEST(SnapshotChange, IsAnErrorWhileItIsRead) {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "s";
  auto buffer = ReplayBuffer::create(test::small_schema(), test::options_for(2000));
  test::add_rows(buffer, 0, 2000);
  save_snapshot(buffer, path);
  const SnapshotReader reader(path);
  reader.verify(1);
  const uint64_t end = reader.blocks()[0].bytes;
  RowBlock block(reader.info().schema, {}, reader.max_rows());
  BlockCodec codec;
  reader.unpack(0, codec, block);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (uint64_t offset = 1000; offset < end; offset += end / 50) {
    file.seekg(static_cast<std::streamoff>(offset));
    const char before = static_cast<char>(file.peek());
    const auto put = [&](char byte) { file.seekp(static_cast<std::streamoff>(offset)).put(byte).flush(); };
    put(static_cast<char>(before ^ 1));
    EXPECT_EQ(message_of([&] { reader.unpack(0, codec, block); }),
              fmt::format("[snapshot] {}: block 0 of {} is damaged; load an older snapshot", path.native(),
                          reader.blocks().size()))
        << offset;
    put(before);
  }
  reader.unpack(0, codec, block);
}

}  // namespace
}  // namespace quern::replay
