#include "core/files.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "core/error.h"
#include "support/child_process.h"
#include "support/message.h"
#include "support/temporary_folder.h"

namespace quern {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

constexpr size_t kLimit = 1 << 20;

using test::message_of;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(AtomicFile, AppearsAtCommitAndReplaces) {
  const test::TemporaryFolder folder;
  const fs::path path = folder / "a.txt";
  {
    AtomicFile file(path);
    file.writer().write("old");
    EXPECT_FALSE(fs::exists(path));
    file.commit();
  }
  EXPECT_EQ(read_file(path, kLimit), "old");
  {
    AtomicFile file(path);
    file.writer().write("new ");
    file.writer().write("text");
    EXPECT_EQ(read_file(path, kLimit), "old");
    file.commit();
  }
  EXPECT_EQ(read_file(path, kLimit), "new text");
  EXPECT_EQ(test::names_in(folder.path()), Names{"a.txt"});
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const test::TemporaryFolder folder;
  write_file(folder / "a.txt", "old");
  {
    AtomicFile file(folder / "a.txt");
    file.writer().write("half");
  }
  EXPECT_EQ(read_file(folder / "a.txt", kLimit), "old");
  EXPECT_EQ(test::names_in(folder.path()), Names{"a.txt"});
}

// Root may rename over a device: /dev/full would be an ordinary file from then on.
TEST(AtomicFile, ReplacesOnlyFilesAndLinks) {
  const test::TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  fs::create_directory(folder / "folder");
  fs::create_symlink("pipe", folder / "to_pipe");
  for (const std::string name : {"pipe", "folder", "to_pipe"}) {
    EXPECT_EQ(message_of([&] { const AtomicFile file(folder / name); }),
              fmt::format("[files] {}: expected a regular file or none, found {}; choose another name",
                          (folder / name).native(), name == "folder" ? "a directory" : "a device, pipe or socket"));
  }
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
  EXPECT_EQ(test::names_in(folder.path()), (Names{"folder", "pipe", "to_pipe"}));

  write_file(folder / "file", "old");
  for (const std::string name : {"to_file", "to_none"}) {
    fs::create_symlink(name.substr(3), folder / name);
    write_file(folder / name, "new");
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder / name)));
  }
  EXPECT_EQ(read_file(folder / "file", kLimit), "old");
}

TEST(AtomicFile, MissingFolderIsReported) {
  const test::TemporaryFolder folder;
  const std::string message = message_of([&] { write_file(folder / "none/a.txt", "x"); });
  EXPECT_TRUE(has(message, "none/a.txt: cannot create") && has(message, "No such file or directory")) << message;
}

TEST(AtomicDirectory, AppearsAtCommitAndReplaces) {
  const test::TemporaryFolder folder;
  for (const char* text : {"old", "new"}) {
    AtomicDirectory directory(folder / "d");
    FileWriter file(directory.temporary() / text);
    file.write(text);
    file.close();
    directory.commit();
    EXPECT_EQ(test::names_in(folder / "d"), Names{text});
  }
  EXPECT_EQ(test::names_in(folder.path()), Names{"d"});
}

TEST(AtomicDirectory, LeavesNothingWithoutCommit) {
  const test::TemporaryFolder folder;
  {
    const AtomicDirectory directory(folder / "d");
    write_file(directory.temporary() / "f", "x");
  }
  EXPECT_EQ(test::names_in(folder.path()), Names{});
}

TEST(AtomicDirectory, ExistingFileOfThatNameIsAnError) {
  const test::TemporaryFolder folder;
  write_file(folder / "d", "a file");
  const std::string message = message_of([&] { AtomicDirectory(folder / "d").commit(); });
  EXPECT_TRUE(has(message, "/d: cannot rename")) << message;
  EXPECT_EQ(read_file(folder / "d", kLimit), "a file");
  EXPECT_EQ(test::names_in(folder.path()), Names{"d"});
}

// 0 when a write of 100,000 bytes over the old file fails as promised.
int check_full_disk(const fs::path& folder, const char* reason) {
  const std::string message = message_of([&] { write_file(folder / "a.txt", std::string(100'000, 'x')); });
  const bool named = has(message, (folder / "a.txt: cannot write more than ").native()) && has(message, reason);
  if (!named) std::fprintf(stderr, "%s\n", message.c_str());
  if (!named) return 1;
  if (read_file(folder / "a.txt", kLimit) != "old") return 2;
  return test::names_in(folder) == Names{"a.txt"} ? 0 : 3;
}

TEST(AtomicFile, FileSizeLimitIsReportedAndTheOldFileRemains) {
  const test::TemporaryFolder folder;
  write_file(folder / "a.txt", "old");
  const int code = test::run_in_child([&] {
    test::limit_file_size(60'000);
    return check_full_disk(folder.path(), "File too large");
  });
  EXPECT_EQ(code, 0);
}

TEST(AtomicFile, FullDiskIsReportedAndTheOldFileRemains) {
  const test::TemporaryFolder folder;
  const int code = test::run_in_child([&] {
    if (!test::mount_tiny_disk(folder.path(), 65536)) return test::kNotPermitted;
    write_file(folder / "a.txt", "old");
    return check_full_disk(folder.path(), "No space left on device");
  });
  if (code == test::kNotPermitted) GTEST_SKIP() << "mounting a small disk takes more rights";
  EXPECT_EQ(code, 0);
}

TEST(ReadFile, ChecksSizeAndKind) {
  const test::TemporaryFolder folder;
  write_file(folder / "a", std::string(100'000, 'y'));
  EXPECT_EQ(read_file(folder / "a", 100'000), std::string(100'000, 'y'));
  EXPECT_TRUE(has(message_of([&] { read_file(folder / "a", 99'999); }), "expected at most 99999 bytes"));
  EXPECT_TRUE(has(message_of([&] { read_file(folder / "b", 1); }), "No such file"));
  EXPECT_TRUE(has(message_of([&] { read_file(folder.path(), 1); }), "expected a regular file"));
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(has(message_of([&] { read_file(folder / "pipe", 1); }), "expected a regular file"));
}

TEST(RemoveDirectory, RemovesOrReportsTheError) {
  const test::TemporaryFolder folder;
  fs::create_directory(folder / "d");
  write_file(folder / "d/f", "x");
  remove_directory(folder / "d");
  EXPECT_EQ(test::names_in(folder.path()), Names{});
  EXPECT_TRUE(has(message_of([&] { remove_directory(folder / "d"); }), "/d: cannot remove"));
}

TEST(RemoveLeftovers, RemovesOnlyFilesOfDeadProcesses) {
  const test::TemporaryFolder folder;
  write_file(folder / "kept", "x");
  const int code = test::run_in_child([&] {
    const AtomicDirectory directory(folder / "dead");
    const AtomicFile file(folder / "dead.txt");
    return kill(getpid(), SIGKILL);
  });
  EXPECT_EQ(code, 128 + SIGKILL);
  EXPECT_EQ(test::names_in(folder.path()).size(), 3u);
  const AtomicDirectory alive(folder / "alive");
  remove_leftovers(folder.path());
  EXPECT_EQ(test::names_in(folder.path()), (Names{"kept", alive.temporary().filename()}));
}

TEST(RemoveLeftovers, OfOneFileRemovesNoOthers) {
  const test::TemporaryFolder folder;
  const int code = test::run_in_child([&] {
    const AtomicFile mine(folder / "mine");
    const AtomicFile other(folder / "other");
    return kill(getpid(), SIGKILL);
  });
  EXPECT_EQ(code, 128 + SIGKILL);
  const AtomicFile alive(folder / "mine");
  remove_leftovers_of(folder / "mine");
  const Names left = test::names_in(folder.path());
  EXPECT_EQ(left.size(), 2u);
  EXPECT_TRUE(left.begin()->starts_with(".tmp-quern-mine-"));
  EXPECT_TRUE(left.rbegin()->starts_with(".tmp-quern-other-"));
}

// All that starts with ".tmp-" was removed, a folder with somebody's thesis among it.
TEST(RemoveLeftovers, RemovesNothingThatQuernDidNotCreate) {
  const test::TemporaryFolder folder;
  const std::string ours = temporary_beside("mine").filename();
  std::string changed = ours;
  changed.back() = changed.back() == '0' ? '1' : '0';
  const Names others = {".tmp-precious",       ".tmp-mine-1-1", ".tmp-mine-backup", ".tmp-quern-mine",
                        ".tmp-quern-mine-1-1", changed,         ours + "~",         "x" + ours};
  for (const std::string& name : others) {
    fs::create_directory(folder / name);
    write_file(folder / name / "thesis.txt", "years of work");
  }
  const std::string link = temporary_beside("mine").filename();
  fs::create_directory_symlink(folder / ".tmp-precious", folder / link);
  fs::create_directory(folder / ours);
  remove_leftovers_of(folder / "mine");
  remove_leftovers(folder.path());
  Names left = others;
  left.insert(link);
  EXPECT_EQ(test::names_in(folder.path()), left);
  for (const std::string& name : others) EXPECT_EQ(read_file(folder / name / "thesis.txt", kLimit), "years of work");
}

TEST(TemporaryName, BelongsToOneTarget) {
  for (const std::string target : {"games", "games-1", "games-1-2", "a b", "-", "1-2"}) {
    const std::string name = temporary_beside("x/y/" + target).filename();
    EXPECT_EQ(temporary_beside("x/y/" + target).parent_path(), "x/y");
    EXPECT_TRUE(is_temporary_name(name)) << name;
    for (const std::string other : {"games", "games-1", "games-1-2", "a b", "-", "1-2", "game", ""}) {
      EXPECT_EQ(is_temporary_name_of(name, other), other == target) << name << " " << other;
    }
  }
}

// A file that was complete but not yet renamed, or created but not yet locked, was removed as a leftover by another
// writer of the same name, and the first one failed.
TEST(RemoveLeftovers, ConcurrentWritersOfOneFileDoNotInterfere) {
  const test::TemporaryFolder folder;
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(test::start_child([&] {
      for (int round = 0; round < 1000; ++round) {
        remove_leftovers_of(folder / "a");
        write_file(folder / "a", "text");
        remove_leftovers_of(folder / "d");
        const AtomicDirectory directory(folder / "d");
        FileWriter(directory.temporary() / "f").close();
      }
      return 0;
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(test::wait_for(child), 0);
  EXPECT_EQ(test::names_in(folder.path()), Names{"a"});
}

// strace would show the calls; here it is enough that nothing is refused which mkdir -p would do.
TEST(CreateFolders, CreatesMissingParents) {
  const test::TemporaryFolder folder;
  create_folders(folder / "a/b/c/");
  create_folders(folder / "a/b/c");
  create_folders(folder / "a/../a/d");
  EXPECT_EQ(test::names_in(folder / "a"), (Names{"b", "d"}));
  write_file(folder / "file", "x");
  for (const char* name : {"file", "file/x"}) {
    EXPECT_TRUE(has(message_of([&] { create_folders(folder / name); }), "/file: cannot create: Not a directory"));
  }
}

}  // namespace
}  // namespace quern
