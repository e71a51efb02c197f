#include "data/text_pieces.h"

#include <gtest/gtest.h>

#include "data/bpe_trainer.h"
#include "data/compression.h"
#include "data/files.h"
#include "data/stream_text.h"
#include "data/text_parts.h"
#include "data/text_tokens.h"
#include "data/token_buffer.h"

namespace quern::data {
namespace {

using ::quern::test::contains;
using ::quern::test::error_of;
using test::in_memory;
using test::json_line;
using test::words;

constexpr uint64_t kPiece = TextPieces::kPieceBytes;

// Everything that was visited, with a bar after each document.
std::string all_of(const TextPieces& pieces) {
  std::string text;
  TextPieces::Raw scratch;
  for (uint64_t i = 0; i < pieces.count(); ++i) {
    pieces.visit(i, scratch, [&](const TextPieces::Span& span) {
      EXPECT_FALSE(span.text.empty());
      text += span.text;
      if (span.ends_document) text += '|';
    });
  }
  return text;
}

std::vector<int32_t> tokens_of(const TextPieces& pieces, const Tokenizer& tokenizer) {
  std::vector<int32_t> all, tokens;
  TextPieces::Raw raw;
  PieceCursor cursor(pieces);
  for (uint64_t i = 0; i < pieces.count(); ++i) {
    cursor.next(raw);
    tokens_of_piece(raw, tokenizer, tokens);
    all.insert(all.end(), tokens.begin(), tokens.end());
  }
  return all;
}

std::unique_ptr<Tokenizer> bpe(const std::string& text) {
  BpeTrainer trainer;
  trainer.add(text);
  return trainer.train({.vocabulary_size = 600, .minimum_count = 2, .added_tokens = {"<|endoftext|>"}});
}

TEST(TextPieces, ConcatenateToTheText) {
  for (const uint64_t size :
       {uint64_t{1}, uint64_t{1000}, kPiece - 1, kPiece, kPiece + 1, 2 * kPiece, 5 * kPiece + 7}) {
    const std::string text = words(size).substr(0, size);
    const TextPieces pieces(in_memory(text));
    EXPECT_EQ(pieces.bytes(), size);
    EXPECT_EQ(pieces.count(), (size + kPiece - 1) / kPiece);
    EXPECT_EQ(all_of(pieces), text + "|");
  }
}

// White space only, no white space at all, bytes that are no UTF-8: still whole, and of bounded length.
TEST(TextPieces, ConcatenateToAnyBytes) {
  const ::quern::test::Folder folder;
  for (const std::string& unit : {std::string("\n"), std::string("x"), std::string("\xC3\xA9"), std::string("\x80")}) {
    std::string text;
    while (text.size() < 4 * kPiece) text += unit;
    text += "end";
    const Corpus corpus({folder.write("a.txt", text)}, {.encoding = Encoding::kBytes});
    EXPECT_EQ(all_of(TextPieces(text_sources(corpus))), text + "|");
  }
}

// A cut at the very end of the text leaves the last piece empty.
TEST(TextPieces, WordAcrossTheLastBoundaryIsNotSplit) {
  const std::string text = std::string(kPiece - 5, '.') + " a long word" + std::string(20, 'y');
  const TextPieces pieces(in_memory(text));
  ASSERT_EQ(pieces.count(), 2u);
  TextPieces::Raw scratch;
  pieces.visit(0, scratch, [&](const TextPieces::Span& span) { EXPECT_EQ(span.text.size(), kPiece + 2) << span.text; });
  EXPECT_EQ(all_of(pieces), text + "|");
}

TEST(TextPieces, GiveTheTokensOfTheCompleteText) {
  const std::string text = words(6 * kPiece);
  const auto tokenizer = bpe(text);
  std::vector<int32_t> expected = tokenizer->encode(text);
  expected.push_back(*tokenizer->end_of_text());
  EXPECT_EQ(tokens_of(TextPieces(in_memory(text)), *tokenizer), expected);
}

TEST(TextPieces, OfFilesGiveTheDocumentsOfTheCorpus) {
  const ::quern::test::Folder folder;
  folder.write("a.txt", words(kPiece + 100, 1));
  folder.write("b.txt", "");
  folder.write("c.jsonl",
               json_line("") + json_line(words(300, 2)) + "\n" + json_line(words(3 * kPiece, 3)) + json_line("last"));
  std::string lines;
  for (unsigned i = 0; lines.size() < 3 * kPiece; ++i) lines += json_line(words(50 + i % 400, i));
  folder.write("d.jsonl", lines.substr(0, lines.size() - 1));  // without a line break at the end
  folder.write("e.txt", "short");
  const Corpus corpus({folder.path()});
  std::string expected;
  for_each_part(text_sources(corpus), [&](const TextPart& part) {
    expected += part.text;
    if (part.ends_document) expected += '|';
  });
  EXPECT_EQ(all_of(TextPieces(text_sources(corpus))), expected);
}

TEST(TextPieces, SplitsByBytesWhereTokensDoNotCross) {
  const std::string text = words(3 * kPiece);
  const auto tokenizer = bpe(text);
  const std::vector<int32_t> expected = tokens_of(TextPieces(in_memory(text)), *tokenizer);
  for (const double fraction : {0.0, 0.001, 0.1, 0.5, 0.9}) {
    const auto [train, held_out] = TextPieces(in_memory(text)).split(fraction);
    EXPECT_EQ(train.bytes() + held_out.bytes(), text.size());
    EXPECT_NEAR(static_cast<double>(held_out.bytes()), fraction * static_cast<double>(text.size()), 1000);
    std::vector<int32_t> both = tokens_of(train, *tokenizer);
    const std::vector<int32_t> second = tokens_of(held_out, *tokenizer);
    both.insert(both.end(), second.begin(), second.end());
    EXPECT_EQ(both, expected) << fraction;
    EXPECT_EQ(second.empty(), fraction == 0);
  }
}

TEST(TextPieces, SplitsFilesAndLines) {
  const ::quern::test::Folder folder;
  folder.write("a.txt", words(1000, 1));
  folder.write("b.jsonl", json_line("one") + json_line("two") + json_line("three") + json_line("four"));
  folder.write("c.txt", words(1000, 2));
  const TextPieces pieces(text_sources(Corpus({folder.path()})));
  const std::string whole = all_of(pieces);
  for (double fraction = 0; fraction < 0.9; fraction += 0.007) {
    const auto [train, held_out] = pieces.split(fraction);
    EXPECT_EQ(all_of(train) + all_of(held_out), whole) << fraction;
  }
}

// Without an index, which files that are only read from front to back do not have.
std::string all_in_order(const TextPieces& pieces) {
  std::string text;
  TextPieces::Raw raw;
  PieceCursor cursor(pieces);
  while (cursor.round(cursor.next(raw)) == 0) {
    TextPieces::visit(raw, [&](const TextPieces::Span& span) {
      text += span.text;
      if (span.ends_document) text += '|';
    });
  }
  return text;
}

TEST(TextPieces, OfCompressedFilesAreThoseOfTheText) {
  const ::quern::test::Folder folder;
  std::string lines;
  for (unsigned i = 0; lines.size() < 3 * kPiece; ++i) lines += json_line(words(50 + i % 400, i));
  lines += json_line(words(3 * kPiece, 9)) + json_line("last");  // a line of several pieces
  for (const uint64_t size : {uint64_t{1}, kPiece - 1, kPiece, kPiece + 1, 2 * kPiece, 5 * kPiece + 7}) {
    const std::string text = words(size).substr(0, size);
    folder.write("plain/a.txt", text);
    folder.write("plain/b.jsonl", lines);
    folder.write("packed/a.txt.gz", test::gzip(text));
    folder.write("packed/b.jsonl.zst", test::zstd(lines));
    const TextPieces plain(text_sources(Corpus({folder.path() / "plain"})));
    const TextPieces packed(text_sources(Corpus({folder.path() / "packed"})));
    EXPECT_TRUE(plain.is_indexed());
    EXPECT_FALSE(packed.is_indexed());
    EXPECT_EQ(all_in_order(packed), all_of(plain)) << size;
    EXPECT_EQ(all_in_order(plain), all_of(plain)) << size;
  }
}

// Every piece is in one half, a tenth of them in the second, and both halves have some of every long file.
TEST(TextPieces, SplitsCompressedFilesByPieces) {
  const ::quern::test::Folder folder;
  for (unsigned i = 0; i < 30; ++i) {
    folder.write(fmt::format("{:02}.txt.gz", i),
                 test::gzip(fmt::format("[{}] ", i) + words(i % 10 == 0 ? 9 * kPiece : 90, i)));
  }
  const TextPieces pieces(text_sources(Corpus({folder.path()})));
  const std::string whole = all_in_order(pieces);
  for (const double fraction : {0.1, 0.5, 0.9}) {
    const auto [train, held_out] = pieces.split(fraction);
    const std::string first = all_in_order(train), second = all_in_order(held_out);
    EXPECT_EQ(first.size() + second.size(), whole.size());
    EXPECT_NEAR(static_cast<double>(second.size()), fraction * static_cast<double>(whole.size()), 3.0 * kPiece);
    EXPECT_TRUE(second.starts_with("[0] "));
  }
  EXPECT_TRUE(pieces.split(0).second.empty());
  EXPECT_EQ(all_in_order(pieces.split(0).first), whole);
}

// The only piece of a small file is held out; the message told neither the file nor a remedy.
TEST(TextPieces, CompressedFileWithoutTrainingTextIsNamed) {
  const ::quern::test::Folder folder;
  const TextPieces small(text_sources(Corpus({folder.write("a.txt.gz", test::gzip(words(900)))})));
  const std::string message = error_of([&] { all_in_order(small.split(0.1).first); });
  EXPECT_TRUE(contains(message, "a.txt.gz: expected more than 64 KiB of text")) << message;
  EXPECT_TRUE(contains(message, "use data.sampling=random, or data.validation_fraction=0")) << message;
  const TextPieces empty(text_sources(Corpus({folder.write("b.txt.gz", test::gzip(""))})));
  EXPECT_TRUE(contains(error_of([&] { all_in_order(empty.split(0).first); }), "b.txt.gz: expected text, found only"));
}

// A file of a few KB that decompresses to 80 MB without a line break: refused, with bounded memory.
TEST(TextPieces, LinesOfABombAreRefused) {
  const ::quern::test::Folder folder;
  std::string bomb = test::zstd(std::string(uint64_t{80} << 20, 'x'));
  EXPECT_LT(bomb.size(), 100'000u);
  const TextSources sources = text_sources(Corpus({folder.write("a.jsonl.zst", bomb)}));
  EXPECT_TRUE(contains(error_of([&] { all_in_order(TextPieces(sources)); }),
                       "a.jsonl.zst: byte 0 of the text: expected a line of at most 67108864 bytes, found more"));
  EXPECT_TRUE(
      contains(error_of([&] { for_each_part(sources, [](const TextPart&) {}); }), "expected a line of at most"));
}

TEST(TextPieces, DamageInACompressedFileIsNamed) {
  const ::quern::test::Folder folder;
  const std::string good = test::gzip(words(5 * kPiece));
  const auto file = folder.write("a.txt.gz", good.substr(0, good.size() / 2));
  EXPECT_TRUE(contains(error_of([&] { all_in_order(TextPieces(text_sources(Corpus({file})))); }),
                       fmt::format("a.txt.gz: byte {}: expected more gzip data", good.size() / 2)));
  const auto line =
      folder.write("b.jsonl.gz", test::gzip(json_line(words(2 * kPiece)) + json_line("b") + "{\"x\": 1}\n"));
  EXPECT_TRUE(contains(error_of([&] { all_in_order(TextPieces(text_sources(Corpus({line})))); }), "b.jsonl.gz:3: "));
}

TEST(TextPieces, BadLineIsNamed) {
  const ::quern::test::Folder folder;
  std::string lines;
  for (unsigned i = 0; i < 2000; ++i) lines += json_line(words(100, i));
  ASSERT_GT(lines.size(), 3 * kPiece);
  const auto file = folder.write("a.jsonl", lines + "{\"text\": 3}\n" + lines);
  const TextPieces pieces(text_sources(Corpus({file})));
  EXPECT_EQ(error_of([&] { all_of(pieces); }),
            "[data] " + file.string() +
                ":2001: expected a JSON object with a string field \"text\", found a number in the field");
}

TEST(TextPieces, FileTruncatedMeanwhileIsAnError) {
  const ::quern::test::Folder folder;
  const auto file = folder.write("a.txt", words(3 * kPiece));
  const TextPieces pieces(text_sources(Corpus({file})));
  std::filesystem::resize_file(file, 2 * kPiece);
  EXPECT_TRUE(contains(error_of([&] { all_of(pieces); }), "a.txt: changed while it was in use"));
}

}  // namespace
}  // namespace quern::data
