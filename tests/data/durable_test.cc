// After a rename the folder is synced, or a power cut brings the old name back.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "core/temporary_name.h"
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
  void expect_synced(const std::string& name) const {
    const std::filesystem::path root = std::filesystem::canonical(folder_.path());
    ASSERT_EQ(paths_.size(), 2u);
    const std::filesystem::path first = paths_[0];
    EXPECT_EQ(first.parent_path(), root);
    EXPECT_TRUE(is_temporary_name_of(first.filename().native(), name)) << first;
    EXPECT_EQ(paths_[1], root);
  }

  std::vector<std::string> paths_;
  test::Folder folder_;
};

TEST_F(Durable, TokenizerIsSyncedWithItsFolder) {
  ByteTokenizer().save((folder_.path() / "t.json").string());
  expect_synced("t.json");
}

TEST_F(Durable, ShardIsSyncedWithItsFolder) {
  TokenShardWriter writer(folder_.path() / "t.bin");
  writer.append(std::vector<int32_t>{1, 2, 3});
  writer.finish();
  expect_synced("t.bin");
}

// A name without a folder is in the current one.
TEST_F(Durable, FileInTheCurrentFolderIsSynced) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  ByteTokenizer().save("t.json");
  std::filesystem::current_path(before);
  expect_synced("t.json");
}

}  // namespace
}  // namespace quern::data
