#include "data/corpus.h"

#include <gtest/gtest.h>

#include <vector>

#include "data/files.h"

namespace quern::data {
namespace {

using test::contains;
using test::error_of;
using Texts = std::vector<std::string>;

Texts documents(const Corpus& corpus) {
  Texts texts;
  corpus.for_each_document([&texts](std::string_view text, const std::filesystem::path&) { texts.emplace_back(text); });
  return texts;
}

TEST(Corpus, ReadsTextFilesOfAFolderInOrderOfTheirPaths) {
  const test::Folder folder;
  folder.write("b.txt", "second");
  folder.write("a/z.MD", "first");
  folder.write("c.jsonl", "{\"text\":\"third\"}\n{\"text\":\"\"}\n{\"text\":\"fourth\"}\n");
  folder.write("d.text", "");
  folder.write("image.png", "no");
  folder.write(".hidden.txt", "no");
  folder.write(".git/config.txt", "no");
  const Corpus corpus({folder.path()});
  EXPECT_EQ(documents(corpus), (Texts{"first", "second", "third", "fourth"}));
  EXPECT_EQ(corpus.files().size(), 4u);
  EXPECT_EQ(corpus.passed_over(), 1u);
  EXPECT_EQ(corpus.bytes(), 5u + 6u + 17u + 12u + 18u);
}

TEST(Corpus, ReadsANamedFileWithAnyEnding) {
  const test::Folder folder;
  const Corpus corpus(
      {folder.write("z.cpp", "int z;"), folder.write("a", "text"), folder.write("b.NDJSON", "{\"text\":\"x\"}")});
  EXPECT_EQ(documents(corpus), (Texts{"int z;", "text", "x"}));
}

TEST(Corpus, DoesNotFollowLinksToFolders) {
  const test::Folder folder;
  folder.write("a.txt", "a");
  std::filesystem::create_directory_symlink(folder.path(), folder.path() / "loop");
  EXPECT_EQ(documents(Corpus({folder.path()})), Texts{"a"});
}

TEST(Corpus, MissingOrEmptyInputIsNamed) {
  const test::Folder folder;
  const auto open = [](const std::filesystem::path& path) { return error_of([&] { Corpus corpus({path}); }); };
  EXPECT_TRUE(contains(open(folder.path() / "none"), "none: expected a file or folder, found nothing"));
  EXPECT_TRUE(contains(open(folder.path()), "expected files that end in .txt "));
  EXPECT_TRUE(contains(open(folder.write("empty.txt", "")), "empty.txt: expected text, found only empty files"));
  EXPECT_TRUE(contains(error_of([] { Corpus corpus({}); }), "expected a file or folder"));
}

TEST(Corpus, BadDocumentIsReportedWithItsLine) {
  const test::Folder folder;
  const Corpus corpus({folder.write("a.jsonl", "{\"text\":\"x\"}\n{\"text\":\n")});
  EXPECT_TRUE(contains(error_of([&] { documents(corpus); }), "a.jsonl:2: expected a JSON object"));
}

}  // namespace
}  // namespace quern::data
