#include "data/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <utility>

#include "data/files.h"

namespace quern::data {
namespace {

using test::contains;
using test::error_of;

TEST(MappedFile, HoldsTheBytesOfTheFile) {
  const test::Folder folder;
  const std::string content("a\0b\n\xff", 5);
  const MappedFile file(folder.write("a.txt", content));
  EXPECT_EQ(file.bytes(), content);
  file.expect_sequential();
}

TEST(MappedFile, LeavesItsBytesWhereTheyAreWhenItMoves) {
  const test::Folder folder;
  MappedFile first(folder.write("a.txt", "first"));
  MappedFile second(folder.write("b.txt", "second"));
  const std::string_view bytes = first.bytes();
  MappedFile moved(std::move(first));
  EXPECT_EQ(moved.bytes().data(), bytes.data());
  second = std::move(moved);
  EXPECT_EQ(second.bytes(), "first");
  EXPECT_EQ(second.path().filename(), "a.txt");
}

TEST(MappedFile, NamesAFileThatIsMissingEmptyOrNone) {
  const test::Folder folder;
  const auto open = [](const std::filesystem::path& path) { return error_of([&] { MappedFile file(path); }); };
  EXPECT_TRUE(contains(open(folder.path() / "none.txt"), "none.txt: cannot open: No such file or directory"));
  EXPECT_TRUE(contains(open(folder.path()), "expected a file, found a folder"));
  EXPECT_TRUE(contains(open(folder.write("empty.txt", "")), "empty.txt: the file is empty"));
  const std::filesystem::path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(contains(open(pipe), "pipe: expected a regular file"));
}

TEST(MappedFile, MayBeEmptyWhereThatIsAllowed) {
  const test::Folder folder;
  MappedFile file(folder.write("empty.txt", ""), EmptyFile::kAllowed);
  file.expect_sequential();
  EXPECT_TRUE(file.bytes().empty());
}

}  // namespace
}  // namespace quern::data
