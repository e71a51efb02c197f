#include "data/encoding.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "data/compression.h"
#include "data/files.h"
#include "data/text_parts.h"
#include "data/text_pieces.h"
#include "data/utf8.h"
#include "support/mutation.h"

namespace quern::data {
namespace {

using ::quern::test::contains;
using ::quern::test::error_of;

const std::string kText = "na\u00EFve \u20AC5 \U0001F600 \"quoted\"\nsecond line\n";

std::string utf16(std::string_view text, bool big_endian) {
  std::string out;
  const auto put = [&](uint32_t unit) {
    const char low = static_cast<char>(unit), high = static_cast<char>(unit >> 8);
    out += big_endian ? high : low;
    out += big_endian ? low : high;
  };
  for (size_t at = 0; at < text.size();) {
    const CodePoint next = read_code_point(text, at);
    at += next.length;
    if (next.value < 0x10000) {
      put(next.value);
    } else {
      put(0xD800 + ((next.value - 0x10000) >> 10));
      put(0xDC00 + ((next.value - 0x10000) & 0x3FF));
    }
  }
  return out;
}

class EncodingTest : public ::testing::Test {
 protected:
  // All text of a file, read in parts and in pieces, which must agree.
  std::string read(std::string_view name, std::string_view bytes, Encoding encoding = Encoding::kUtf8) {
    const TextSources sources = text_sources(Corpus({folder_.write(name, bytes)}, {.encoding = encoding}));
    conversions_ = conversions_text(sources);
    for (std::string& line : conversions_) line = line.substr(folder_.path().string().size() + 1);
    std::string parts, pieces;
    for_each_part(sources, [&](const TextPart& part) { parts += part.text; });
    const TextPieces text(sources);
    PieceCursor cursor(text);
    TextPieces::Raw raw;
    while (cursor.round(cursor.next(raw)) == 0) {
      TextPieces::visit(raw, [&](const TextPieces::Span& span) { pieces += span.text; });
    }
    EXPECT_EQ(parts, pieces);
    return parts;
  }
  std::string error(std::string_view bytes, Encoding encoding = Encoding::kUtf8, std::string_view name = "a.txt") {
    std::string found = error_of([&] { read(name, bytes, encoding); });
    for (size_t at; (at = found.find(folder_.path().string() + "/")) != std::string::npos;) {
      found.erase(at, folder_.path().string().size() + 1);
    }
    return found;
  }

  ::quern::test::Folder folder_;
  std::vector<std::string> conversions_;
};

using Lines = std::vector<std::string>;

TEST_F(EncodingTest, PlainTextIsReadAsItIs) {
  EXPECT_EQ(read("a.txt", kText), kText);
  EXPECT_EQ(conversions_, Lines{});
}

TEST_F(EncodingTest, ByteOrderMarkIsRemoved) {
  EXPECT_EQ(read("a.txt", "\xEF\xBB\xBF" + kText), kText);
  EXPECT_EQ(conversions_, Lines{"a.txt: removed the byte order mark"});
  EXPECT_EQ(read("a.jsonl", "\xEF\xBB\xBF{\"text\": \"x\"}\n"), "x");
  EXPECT_EQ(read("a.txt.gz", test::gzip("\xEF\xBB\xBF" + kText)), kText);
}

TEST_F(EncodingTest, Utf16IsConverted) {
  EXPECT_EQ(read("a.txt", "\xFF\xFE" + utf16(kText, false)), kText);
  EXPECT_EQ(conversions_, Lines{"a.txt: converted from UTF-16 (little endian) to UTF-8"});
  EXPECT_EQ(read("a.txt", "\xFE\xFF" + utf16(kText, true)), kText);
  EXPECT_EQ(conversions_, Lines{"a.txt: converted from UTF-16 (big endian) to UTF-8"});
  EXPECT_EQ(read("a.txt", utf16(kText, false), Encoding::kUtf16), kText);
  EXPECT_EQ(read("a.txt.zst", test::zstd("\xFF\xFE" + utf16(kText, false))), kText);
  std::string longer;
  while (longer.size() < 300'000) longer += kText;  // several blocks, with surrogate pairs across their ends
  EXPECT_EQ(read("a.txt", "\xFF\xFE" + utf16(longer, false)), longer);
  EXPECT_EQ(read("a.txt", "\xFF\xFE" + utf16("x" + longer, false)), "x" + longer);
}

TEST_F(EncodingTest, OneByteEncodingsAreConverted) {
  EXPECT_EQ(read("a.txt", "na\xEFve \xA3 5", Encoding::kLatin1), "na\u00EFve \u00A3 5");
  EXPECT_EQ(conversions_, Lines{"a.txt: converted from Latin-1 to UTF-8"});
  EXPECT_EQ(read("a.txt", "\x93na\xEFve\x94 \x80", Encoding::kWindows1252), "\u201Cna\u00EFve\u201D \u20AC");
  EXPECT_EQ(read("a.txt", "ascii", Encoding::kLatin1), "ascii");
}

// CR LF across a cut, a lone CR, CR at the end.
TEST_F(EncodingTest, CarriageReturnsBeforeLineFeedsAreRemoved) {
  EXPECT_EQ(read("a.txt", "one\r\ntwo\r\n\r\n"), "one\ntwo\n\n");
  EXPECT_EQ(conversions_, Lines{"a.txt: replaced CR LF by LF"});
  EXPECT_EQ(read("a.txt", "one\rtwo\r\r\nthree\r"), "one\rtwo\r\nthree\r");
  for (size_t length = 65'530; length < 65'545; ++length) {
    const std::string filled(length, 'x');
    const std::string twice(2 * length, 'x');
    EXPECT_EQ(read("a.txt", fmt::format("{}\r\n{}\r\n", filled, twice)), fmt::format("{}\n{}\n", filled, twice));
  }
  EXPECT_EQ(read("a.txt", "\xFF\xFE" + utf16("a\r\nb", false)), "a\nb");
  EXPECT_EQ(conversions_, Lines{"a.txt: converted from UTF-16 (little endian) to UTF-8, replaced CR LF by LF"});
  EXPECT_EQ(read("a.jsonl", "{\"text\": \"a\\r\\nb\"}\r\n"), "a\r\nb");  // escaped in JSON: what the document contains
}

TEST_F(EncodingTest, BytesAreReadAsTheyAre) {
  const std::string bytes("\xFF\xFE\0\x80\r\n\xEF\xBB\xBF", 9);
  EXPECT_EQ(read("a.txt", bytes, Encoding::kBytes), bytes);
  EXPECT_EQ(conversions_, Lines{});
}

// The char tokenizer advised to use a byte or bpe tokenizer, which trains on half characters.
TEST_F(EncodingTest, WrongBytesAreReportedWithThePlaceAndTheWayOut) {
  EXPECT_EQ(
      error("caf\xE9 au lait"),
      "[data] a.txt: byte 3: expected UTF-8, found byte 0xe9 in \"caf\\xe9 au lait\"; if the text is Latin-1, set "
      "data.encoding=latin-1, or convert the file: `iconv -f LATIN1 -t UTF-8 a.txt > NEW`");
  EXPECT_TRUE(contains(error("\x93quoted\x94"),
                       "is Windows-1252, set data.encoding=windows-1252, or convert the file: "
                       "`iconv -f WINDOWS-1252 -t UTF-8 a.txt > NEW`"));
  EXPECT_TRUE(contains(error("caf\xE9", Encoding::kUtf8, "it's a.txt"), "it'\\''s a.txt' > NEW`"));
  EXPECT_TRUE(contains(error(test::gzip("caf\xE9"), Encoding::kUtf8, "a.txt.gz"),
                       "`gzip -dc a.txt.gz | iconv -f LATIN1 -t UTF-8 | gzip > NEW`"));
  const std::string far = std::string(3'000'000, 'x') + "\xE9 more";
  EXPECT_TRUE(contains(error(far), "a.txt: byte 3000000: expected UTF-8, found byte 0xe9"));
  EXPECT_TRUE(contains(error("text \xC3"), "byte 5: expected UTF-8, found byte 0xc3"));  // half a character at the end
  EXPECT_TRUE(contains(error(std::string("\xFF\xFE\0\0t\0\0\0", 8)), "found a byte order mark of UTF-32"));
}

TEST_F(EncodingTest, BinaryFilesAreRefused) {
  EXPECT_TRUE(contains(error(std::string(1000, '\0')), "byte 0: expected text, found byte 0x00: the file is binary"));
  EXPECT_TRUE(contains(error(std::string("PNG\0\0\0\1\2\3 data", 14)), "byte 3: expected text, found byte 0x00"));
  EXPECT_TRUE(contains(error(std::string(200'000, 'x') + std::string(10, '\0')), "byte 200000: expected text"));
  EXPECT_TRUE(contains(error(utf16("no byte order mark", false)), "as in UTF-16; set data.encoding=utf-16"));
}

TEST_F(EncodingTest, TextInAnotherEncodingThanNamedIsRefused) {
  EXPECT_TRUE(
      contains(error("na\u00EFve", Encoding::kLatin1), "byte 2: expected Latin-1, as data.encoding says, found UTF-8"));
  EXPECT_TRUE(contains(error("\xEF\xBB\xBFx", Encoding::kWindows1252), "found a byte order mark of UTF-8"));
  EXPECT_TRUE(contains(error("\x93quoted\x94 caf\xE9", Encoding::kLatin1),
                       "found byte 0x93, which is no character; set data.encoding=windows-1252, where it is"));
  EXPECT_TRUE(contains(error("\x81", Encoding::kWindows1252), "found byte 0x81, which is no character"));
  EXPECT_TRUE(contains(error("\xFF\xFE" + utf16("a", false) + "x"), "half a character at the end"));
  EXPECT_TRUE(contains(error(std::string("\xFF\xFE\x3D\xD8x\0", 6)), "half of a surrogate pair"));
  EXPECT_TRUE(contains(error(std::string("\xFF\xFE\x00\xDCx\0", 6)), "half of a surrogate pair"));
}

// Whatever is read from damaged files is UTF-8 without zeros.
TEST_F(EncodingTest, MutatedFilesAreReadOrRefused) {
  const std::vector<std::string> good = {kText, "\xEF\xBB\xBF" + kText, "\xFF\xFE" + utf16(kText, false),
                                         "\xFE\xFF" + utf16(kText, true), "caf\xE9 \x93"};
  ::quern::test::Mutator mutator(good, {"\xFF\xFE", "\xED\xA0\x80", "\r\n", std::string(2, '\0'), "\xF4\x90"}, 1);
  int refused = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string bytes = mutator.next() + "x";
    for (const Encoding encoding : {Encoding::kUtf8, Encoding::kUtf16, Encoding::kLatin1, Encoding::kWindows1252}) {
      std::string text;
      const std::string found = error_of([&] { text = read("a.txt", bytes, encoding); });
      ASSERT_EQ(valid_utf8_length(text), text.size());
      ASSERT_EQ(text.find('\0'), std::string::npos);
      refused += !found.empty();
      ASSERT_TRUE(found.empty() || contains(found, "a.txt")) << found;
    }
  }
  EXPECT_GT(refused, 4000);
  EXPECT_LT(refused, 15'900);
}

}  // namespace
}  // namespace quern::data
