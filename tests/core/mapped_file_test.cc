#include "core/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "core/process_memory.h"
#include "data/files.h"

namespace quern {
namespace {

using test::contains;
using test::error_of;

TEST(MappedFile, ContainsTheFile) {
  const test::Folder folder;
  const std::string content("a\0b\n\xff", 5);
  const MappedFile file(folder.write("a.txt", content));
  EXPECT_EQ(file.text(), content);
  file.expect_sequential();
}

TEST(MappedFile, MoveKeepsTheAddress) {
  const test::Folder folder;
  MappedFile first(folder.write("a.txt", "first"));
  MappedFile second(folder.write("b.txt", "second"));
  const std::string_view bytes = first.text();
  MappedFile moved(std::move(first));
  EXPECT_EQ(moved.text().data(), bytes.data());
  second = std::move(moved);
  EXPECT_EQ(second.text(), "first");
  EXPECT_EQ(second.path().filename(), "a.txt");
}

TEST(MappedFile, ReleasedPagesLeaveMemoryAndRemainReadable) {
  const test::Folder folder;
  const std::string content(size_t{64} << 20, 'x');
  const MappedFile file(folder.write("large", content));
  const uint64_t before = resident_bytes();
  EXPECT_EQ(file.text(), content);
  const uint64_t read = resident_bytes();
  EXPECT_GT(read, before + (size_t{60} << 20));
  MappedFile::release(file.bytes().subspan(1));  // the first page stays
  EXPECT_LT(resident_bytes(), read - (size_t{60} << 20));
  EXPECT_EQ(file.text(), content);
  MappedFile::release(file.bytes().first(10));
  MappedFile::release({});
}

TEST(MappedFile, MissingEmptyOrIrregularFileIsNamed) {
  const test::Folder folder;
  const auto open = [](const std::filesystem::path& path) {
    return error_of([&] { MappedFile file(path, EmptyFile::kRefused); });
  };
  EXPECT_TRUE(contains(open(folder.path() / "none.txt"), "none.txt: cannot open: No such file or directory"));
  EXPECT_TRUE(contains(open(folder.path()), "expected a file, found a folder"));
  EXPECT_TRUE(contains(open(folder.write("empty.txt", "")), "empty.txt: the file is empty"));
  const std::filesystem::path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(contains(open(pipe), "pipe: expected a regular file"));
}

TEST(MappedFile, EmptyFileIsAcceptedOnRequest) {
  const test::Folder folder;
  MappedFile file(folder.write("empty.txt", ""));
  file.expect_sequential();
  EXPECT_TRUE(file.text().empty() && file.bytes().empty());
}

// Reading a page that was truncated away ended the process with SIGBUS.
TEST(MappedFile, ATruncatedFileReadsAsZerosAndIsAnError) {
  const test::Folder folder;
  for (const size_t left : {size_t{0}, size_t{1}, size_t{4096}, size_t{9000}, size_t{19'999}}) {
    const std::string path = folder.write("cut", std::string(20'000, 'x'));
    MappedFile file(path);
    file.check_intact();
    ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(left)), 0);
    EXPECT_EQ(file.text().back(), '\0');
    const std::string message = error_of([&] { file.check_intact(); });
    EXPECT_NE(message.find("cut: was truncated while in use: expected 20000 bytes, found " + std::to_string(left)),
              std::string::npos)
        << message;
    EXPECT_EQ(error_of([&] { file.read([] { throw Error("zeros"); }); }), message);
    EXPECT_EQ(error_of([&] { static_cast<void>(file.read([&] { return file.text().back(); })); }), message);
    const MappedFile moved(std::move(file));
    EXPECT_EQ(error_of([&] { moved.check_intact(); }), message);
  }
}

TEST(MappedFile, AReplacedOrGrownFileIsIntact) {
  const test::Folder folder;
  const std::string path = folder.write("a", std::string(5000, 'x'));
  const MappedFile file(path);
  std::ofstream(path, std::ios::app) << "more";
  file.check_intact();
  std::filesystem::rename(folder.write("b", "new"), path);
  EXPECT_EQ(file.read([&] { return file.text().size(); }), 5000u);
  std::filesystem::remove(path);
  file.check_intact();
  EXPECT_EQ(file.text().back(), 'x');
}

}  // namespace
}  // namespace quern
