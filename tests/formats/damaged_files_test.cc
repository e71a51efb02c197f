// Files that are damaged in thousands of ways: each is read, or is an Error, without undefined behaviour and without
// allocations that the file's size does not justify. A longer campaign, by hand, with the preset asan:
//
//   QUERN_MUTATIONS=1000000 build/asan/tests/formats_test --gtest_filter='DamagedFiles.*'
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "core/error.h"
#include "formats/blocks.h"
#include "formats/gguf.h"
#include "formats/hf_config_reader.h"
#include "formats/hf_weights.h"
#include "formats/peft_config.h"
#include "formats/peft_import.h"
#include "support/mutation.h"
#include "support/peft_files.h"
#include "support/temporary_folder.h"
#include "tests/formats/gguf_bytes.h"
#include "tests/formats/hf_files.h"

namespace {
thread_local size_t allocated_bytes = 0;
}

// Counts what this thread allocates; everything else as in the standard library. Not inline, because g++ would take the
// pairs of malloc() and free() inside for a mismatch.
[[gnu::noinline]] void* operator new(size_t size) {
  allocated_bytes += size;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace quern::formats {
namespace {

using namespace std::string_literals;

size_t campaign_size() {
  const char* wanted = std::getenv("QUERN_MUTATIONS");
  return wanted == nullptr ? 20'000 : std::strtoul(wanted, nullptr, 10);
}

// Calls read(input) with damaged inputs in memory that ends with them, for AddressSanitizer. It may allocate
// `bytes_per_byte` of the input, and `constant` bytes. At least one must be
// readable, or the damage is so large that nothing but the first check is tested.
template <typename Read>
void expect_error_or_result(test::Mutator mutator, size_t bytes_per_byte, Read read, size_t constant = 65536) {
  size_t readable = 0;
  for (size_t i = 0; i < campaign_size(); ++i) {
    const std::string text = mutator.next();
    const auto copy = std::make_unique<char[]>(text.size());
    std::memcpy(copy.get(), text.data(), text.size());
    const size_t before = allocated_bytes;
    try {
      read(std::string_view(copy.get(), text.size()));
      ++readable;
    } catch (const Error&) {
    }
    ASSERT_LE(allocated_bytes - before, bytes_per_byte * text.size() + constant) << "input " << i;
  }
  EXPECT_GT(readable, 0u);
}

TEST(DamagedFiles, Gguf) {
  const std::vector<std::string> words = {"\0\0\0\0"s, "\xff\xff\xff\xff\xff\xff\xff\x7f"s, "\x09\0\0\0"s, "GGUF"s,
                                          "\x20\0\0\0\0\0\0\0"s};
  expect_error_or_result({{good_gguf()}, words, 7}, 64, [](std::string_view text) {
    const GgufContents contents = parse_gguf(std::as_bytes(std::span(text)), "a.gguf");
    std::vector<float> row(64);
    for (const GgufTensor& tensor : contents.tensors) {
      if (!is_convertible(tensor.type) || tensor.shape.back() > row.size()) continue;
      const auto out = std::span(row).first(tensor.shape.back());
      decode(tensor.type, tensor.bytes.first(encoded_bytes(tensor.type, out.size())), out);
    }
    size_t inside = 0;
    for (const GgufKey& key : contents.keys) inside += key.name.size() + key.bytes.size();
    if (inside > text.size()) std::abort();
  });
}

TEST(DamagedFiles, Index) {
  const std::vector<std::string> words = {"null", "{}",    "[]",         "\"../a\"", "\"a/b\"",
                                          "-1",   "1e999", "weight_map", "\\u0000"};
  expect_error_or_result({{hf_index()}, words, 8}, 200, [](std::string_view text) {
    for (const auto& [tensor, file] : parse_weight_index(text, "index.json")) {
      if (file.find('/') != std::string::npos || file.empty()) std::abort();
    }
  });
}

TEST(DamagedFiles, Config) {
  const std::vector<std::string> words = {"null",   "true",     "-1",    "0",    "1e999", "18446744073709551616",
                                          "[]",     "{}",       "1.5",   "\"\"", "yarn",  "llama3",
                                          "linear", "65536",    "qwen3", "gpt2", "1e-30", "128",
                                          "false",  "\"swish\""};
  std::vector<std::string> good;
  for (const std::string& text : hf_configs()) good.push_back(text);
  expect_error_or_result({good, words, 9}, 400, [](std::string_view text) {
    const HfConfig found = parse_hf_config(text, "config.json");
    nn::check(found.model);
    for (const int32_t id : found.tokens.eos) {
      if (id < 0 || static_cast<size_t>(id) >= found.model.vocabulary) std::abort();
    }
  });
}

TEST(DamagedFiles, AdapterConfig) {
  const std::vector<std::string> words = {"null", "true",  "-1",  "0",    "1e999",    "18446744073709551616",
                                          "[]",   "{}",    "1.5", "\"\"", "\"LORA\"", "layers_to_transform",
                                          "1025", "false", "[0]", "[1,9]"};
  std::vector<std::string> good;
  for (const auto& [name, model] : test::adapted_models()) {
    nlohmann::json config = test::peft_files(model, {.rank = 2}).config;
    config["layers_to_transform"] = {0, 1};
    good.push_back(json_text(config));
  }
  const nn::ModelConfig llama = test::adapted_models()[1].second;
  expect_error_or_result({good, words, 10}, 400, [&](std::string_view text) {
    const PeftConfig found = parse_peft_config(text, "adapter_config.json", llama);
    if (found.adapters.rank == 0 || found.adapters.rank > nn::kMaxAdapterRank) std::abort();
    for (const size_t block : found.blocks) {
      if (block >= llama.layers) std::abort();
    }
    found.covers("model.layers.0.self_attn.q_proj", 0);
  });
}

// The values are read too. Building the model costs memory that the file's size has no part in.
TEST(DamagedFiles, Adapters) {
  const std::vector<std::string> words = {"lora_A", "lora_B",    "\"F16\"",   "\"BF16\"",
                                          "[2,32]", "self_attn", "layers",    "\"U8\"",
                                          "[]",     "-1",        "\"shape\"", "18446744073709551615"};
  const nn::ModelConfig llama = test::adapted_models()[1].second;
  const test::TemporaryFolder root;
  test::peft_files(llama, {.rank = 2, .targets = {"q_proj"}}).write(root / "peft");
  const std::filesystem::path file = root / "peft/adapter_model.safetensors";
  const std::string whole = read_file(file, 1 << 20);
  const auto read = [&](std::string_view text) {
    std::ofstream(file, std::ios::binary | std::ios::trunc)
        .write(text.data(), static_cast<std::streamsize>(text.size()));
    const AdapterSource source = open_peft_folder(root / "peft", llama);
    for (const TensorSource& tensor : source.tensors) {
      std::vector<float> values(tensor.size());
      tensor.read(0, values);
    }
    source.check_intact();
  };
  expect_error_or_result({{whole}, words, 11}, 64, read, 1 << 20);
}

}  // namespace
}  // namespace quern::formats
