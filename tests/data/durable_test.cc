// After a rename the folder is synced, or a power cut brings the old name back.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "data/byte_tokenizer.h"
#include "data/files.h"
#include "data/token_shard_writer.h"

namespace {

std::vector<std::string>* synced = nullptr;  // paths, in order, while a test looks

}  // namespace

// In place of the C library's: notes what is synced, then syncs it.
extern "C" int fsync(int descriptor) {
  if (synced != nullptr) {
    const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
    synced->push_back(std::filesystem::read_symlink(link).string());
  }
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}

namespace quern::data {
namespace {

class Durable : public ::testing::Test {
 protected:
  Durable() { synced = &paths_; }
  ~Durable() override { synced = nullptr; }

  // The file under its first name, then the folder with its last one.
  void expect_synced(const std::string& partial) const {
    const std::string root = std::filesystem::canonical(folder_.path()).string();
    EXPECT_EQ(paths_, (std::vector<std::string>{root + "/" + partial, root}));
  }

  std::vector<std::string> paths_;
  test::Folder folder_;
};

TEST_F(Durable, ATokenizer) {
  ByteTokenizer().save((folder_.path() / "t.json").string());
  expect_synced("t.json.partial");
}

TEST_F(Durable, AShard) {
  TokenShardWriter writer(folder_.path() / "t.bin");
  writer.append(std::vector<int32_t>{1, 2, 3});
  writer.finish();
  expect_synced("t.bin.partial");
}

// A name without a folder is in the current one.
TEST_F(Durable, AFileInTheCurrentFolder) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  ByteTokenizer().save("t.json");
  std::filesystem::current_path(before);
  expect_synced("t.json.partial");
}

}  // namespace
}  // namespace quern::data
