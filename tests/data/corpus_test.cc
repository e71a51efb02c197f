#include "data/corpus.h"

#include <gtest/gtest.h>

#include <vector>

#include "data/files.h"
#include "data/text_parts.h"

namespace quern::data {
namespace {

using test::contains;
using test::error_of;
using Texts = std::vector<std::string>;

Texts documents(const Corpus& corpus) {
  Texts texts;
  for_each_part(text_sources(corpus), [&texts](const TextPart& part) { texts.emplace_back(part.text); });
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
  EXPECT_EQ(corpus.bytes(), 5u + 6u + 17u + 12u + 18u);
}

// A folder with pictures was trained on without a word about them.
TEST(Corpus, ReportsWhatAFolderContains) {
  const test::Folder folder;
  for (const char* name : {"a.txt", "b/c.TXT", "d.jsonl", "e.txt.gz", "empty.md"}) {
    folder.write(name, std::string_view(name) == "empty.md" ? "" : "x");
  }
  for (const char* name : {"1.png", "2.PNG", "b/3.pdf", "README", ".DS_Store", ".git/a.txt"}) folder.write(name, "x");
  std::filesystem::create_directory_symlink(folder.path(), folder.path() / "loop");
  std::filesystem::create_symlink("nowhere", folder.path() / "dangling.txt");
  std::filesystem::create_symlink("a.txt", folder.path() / "link.txt");
  const Corpus corpus({folder.path()});
  ASSERT_EQ(corpus.folders().size(), 1u);
  const std::string name = folder.path().string();
  EXPECT_EQ(corpus.folders()[0].read_text(), name + ": read 5 files: .txt (3), .jsonl (1), .txt.gz (1)");
  EXPECT_EQ(corpus.folders()[0].skipped_text(),
            name +
                ": skipped 9 files: .png (2), .pdf (1), README (1): not text by name; hidden (2); empty (1); links "
                "to folders or to nothing (2)");
  const test::Folder clean;
  clean.write("a.txt", "x");
  EXPECT_EQ(Corpus({clean.path()}).folders()[0].skipped_text(), "");
  EXPECT_TRUE(Corpus({clean.path() / "a.txt"}).folders().empty());
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
