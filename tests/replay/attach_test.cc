// Owner and mode of a buffer are checked: /dev/shm is writable for everyone on the machine.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.h"
#include "replay/buffer.h"
#include "tests/support/child_process.h"
#include "tests/support/message.h"
#include "tests/support/temporary_folder.h"

namespace quern::replay {
namespace {

using test::message_of;

class AttachTest : public testing::TestWithParam<Storage::Kind> {
 protected:
  AttachTest() { ReplayBuffer::remove(storage_); }
  ~AttachTest() override {
    unlink(path_.c_str());
    unlink(target_.c_str());
  }

  ReplayBuffer make(const Storage& storage) const {
    return ReplayBuffer::create(Schema({{.name = "a", .dtype = DType::kU8}}), {.capacity = 4}, storage);
  }

  // Without the place that it starts with.
  std::string attach_message() const {
    const std::string message = message_of([&] { ReplayBuffer::attach(storage_); });
    return message.starts_with(storage_.text()) ? message.substr(storage_.text().size()) : message;
  }

  Storage named(const std::string& name) const {
    if (GetParam() == Storage::Kind::kFile) return Storage::in_file(folder_ / name);
    return Storage::in_shared("attach_test-" + std::to_string(getpid()) + name);
  }

  test::TemporaryFolder folder_;
  Storage storage_ = named("buffer");
  std::string path_ = storage_.path();
  std::string target_ = named("target").path();
};

TEST_P(AttachTest, SymbolicLinkIsRefused) {
  const ReplayBuffer buffer = make(named("target"));
  std::filesystem::create_symlink(target_, path_);
  EXPECT_EQ(attach_message(), ": expected a regular file, found a symbolic link; give the path of the file itself");
}

TEST_P(AttachTest, FileWritableByOthersIsRefused) {
  { const ReplayBuffer buffer = make(storage_); }
  for (const mode_t mode : {0620, 0602, 0666}) {
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    EXPECT_EQ(attach_message(), fmt::format(": expected a file that only its owner can write, found mode {:o}; run "
                                            "chmod go-w {}",
                                            mode, path_));
  }
  ASSERT_EQ(chmod(path_.c_str(), 0644), 0);
  EXPECT_EQ(attach_message(), "no error");
}

TEST_P(AttachTest, FileOfAnotherUserIsRefused) {
  { const ReplayBuffer buffer = make(storage_); }
  constexpr uid_t kNobody = 65534;
  if (chown(path_.c_str(), kNobody, kNobody) != 0) GTEST_SKIP() << "giving a file away takes more rights";
  EXPECT_EQ(attach_message(), fmt::format(": expected a file of user {}, who attaches, found one of user {}; attach as "
                                          "that user",
                                          geteuid(), kNobody));
}

TEST_P(AttachTest, IrregularFileIsRefused) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(attach_message(), ": expected a regular file, found something else");
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
  EXPECT_NE(attach_message().find("cannot open"), std::string::npos);
  ASSERT_EQ(rmdir(path_.c_str()), 0);
}

// Where a umask of 002 is the rule, a file that followed it could never be attached to again.
TEST_P(AttachTest, NewBuffersAreWritableByTheOwnerOnly) {
  const int code = test::run_in_child([&] {
    umask(0);
    const ReplayBuffer buffer = make(storage_);
    struct stat status = {};
    if (stat(path_.c_str(), &status) != 0 || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) return 1;
    return ReplayBuffer::attach(storage_).capacity() == 4 ? 0 : 2;
  });
  EXPECT_EQ(code, 0);
}

TEST_P(AttachTest, OtherFilesAreNotRemoved) {
  std::ofstream(path_) << "somebody's notes, which are not a replay buffer and longer than the start of one";
  EXPECT_EQ(message_of([&] { ReplayBuffer::remove(storage_); }),
            storage_.text() + ": cannot remove: expected a replay buffer, found something else");
  EXPECT_TRUE(std::filesystem::exists(path_));
}

INSTANTIATE_TEST_SUITE_P(Storages, AttachTest, testing::Values(Storage::Kind::kShared, Storage::Kind::kFile));

}  // namespace
}  // namespace quern::replay
