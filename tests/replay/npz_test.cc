#include "replay/npz.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

#include "core/files.h"
#include "core/process_memory.h"
#include "replay/row_block.h"
#include "replay/snapshot_file.h"
#include "rows.h"
#include "support/child_process.h"
#include "support/message.h"
#include "support/mutation.h"
#include "support/temporary_folder.h"

namespace quern::replay {
namespace {

using test::counting;
using test::numbers_in;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

ReplayBuffer small_buffer(uint64_t capacity, bool prioritised = false) {
  return ReplayBuffer::create(test::small_schema(), test::options_for(capacity, prioritised));
}

// Runs Python with `script`, in which `file(name)` is a path in the folder.
int run_python(const test::TemporaryFolder& folder, const std::string& script) {
  write_file(folder.path() / "script.py",
             "import sys, numpy as np\nfile = lambda name: sys.argv[1] + '/' + name\n" + script);
  const std::string command =
      "/usr/bin/python3 -B '" + (folder.path() / "script.py").native() + "' '" + folder.path().native() + "'";
  return std::system(command.c_str());
}

bool numpy_is_there() { return std::system("/usr/bin/python3 -c 'import numpy' 2> /dev/null") == 0; }

TEST(Npz, EveryKindOfColumnRoundTripsBitForBit) {
  const test::TemporaryFolder folder;
  const Schema schema = test::schema_of_all();
  const uint64_t block = block_rows(schema);
  for (const uint64_t rows : {uint64_t{0}, uint64_t{1}, block, 2 * block + 7}) {
    auto buffer = ReplayBuffer::create(schema, test::options_for(rows + 1));
    test::add_rows(buffer, 0, rows);
    const SnapshotResult exported = export_npz(buffer, folder.path() / "a.npz");
    EXPECT_EQ(exported.rows, rows);
    EXPECT_EQ(exported.bytes, std::filesystem::file_size(folder.path() / "a.npz"));
    auto back = ReplayBuffer::create(schema, test::options_for(rows + 5));
    EXPECT_EQ(import_npz(back, folder.path() / "a.npz").rows, rows);
    EXPECT_EQ(numbers_in(back), counting(0, rows)) << rows;
  }
  EXPECT_EQ(test::names_in(folder.path()), std::set<std::string>{"a.npz"});
}

TEST(Npz, ImportAppendsAndASmallerBufferGetsTheNewestRows) {
  const test::TemporaryFolder folder;
  auto buffer = small_buffer(3000);
  test::add_rows(buffer, 10, 3010);
  export_npz(buffer, folder.path() / "a.npz");
  for (const uint64_t capacity : {1, 99, 2999, 3000}) {
    auto smaller = small_buffer(capacity);
    const SnapshotResult imported = import_npz(smaller, folder.path() / "a.npz");
    EXPECT_EQ(imported.rows, capacity);
    EXPECT_EQ(imported.skipped, 3000 - capacity);
    EXPECT_EQ(numbers_in(smaller), counting(3010 - capacity, 3010));
  }
  auto larger = small_buffer(3005);
  test::add_rows(larger, 0, 10);
  import_npz(larger, folder.path() / "a.npz");
  EXPECT_EQ(numbers_in(larger), counting(5, 3010));
}

TEST(Npz, PrioritiesRoundTrip) {
  const test::TemporaryFolder folder;
  auto buffer = small_buffer(50, true);
  for (uint64_t i = 0; i < 50; ++i) {
    const auto priority = static_cast<float>(i) / 3;
    test::add_row(buffer, i, &priority);
  }
  export_npz(buffer, folder.path() / "a.npz");
  auto back = small_buffer(50, true);
  import_npz(back, folder.path() / "a.npz");
  for (uint64_t slot = 0; slot < 50; ++slot) {
    const auto expected = static_cast<double>(buffer.tree()->get(slot));
    EXPECT_NEAR(static_cast<double>(back.tree()->get(slot)), expected, 1 + expected * 1e-6);
  }
  auto plain = small_buffer(50);
  import_npz(plain, folder.path() / "a.npz");
  EXPECT_EQ(numbers_in(plain), counting(0, 50));
}

TEST(Npz, NumpyReadsOurs) {
  if (!numpy_is_there()) GTEST_SKIP() << "there is no NumPy";
  const test::TemporaryFolder folder;
  auto buffer = ReplayBuffer::create(test::schema_of_all(), test::options_for(100, true));
  test::add_rows(buffer, 0, 130);
  export_npz(buffer, folder.path() / "a.npz");
  EXPECT_EQ(run_python(folder, R"(
z = np.load(file('a.npz'))
assert z['number'].tolist() == list(range(30, 130))
assert z['__ids__'].dtype == np.uint64 and z['__ids__'].tolist() == list(range(30, 130))
assert z['__priorities__'].dtype == np.float32 and np.allclose(z['__priorities__'], 1, atol=1e-6)
for name in ('bool', 'int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32', 'int64', 'uint64', 'float16', 'float32', 'float64'):
    a = z['raw_' + name]
    assert a.dtype == np.dtype(name) and a.shape == (100, 3, 7), (name, a.dtype, a.shape)
assert z['bits_float32'].dtype == np.float32 and set(np.unique(z['bits_float32'])) == {0, 1}
assert z['sparse_float32'].shape == (100, 300) and (z['sparse_float32'].view(np.uint32) != 0).sum() > 100
assert len(z.files) == 18 + 2, z.files
import zipfile
assert zipfile.ZipFile(file('a.npz')).testzip() is None
)"),
            0);
}

// Our arrays, written again by NumPy, must load to the same rows, stored, deflated and in other versions of the
// header.
TEST(Npz, WeReadNumpys) {
  if (!numpy_is_there()) GTEST_SKIP() << "there is no NumPy";
  const test::TemporaryFolder folder;
  auto buffer = ReplayBuffer::create(test::schema_of_all(), test::options_for(100));
  test::add_rows(buffer, 0, 100);
  export_npz(buffer, folder.path() / "a.npz");
  ASSERT_EQ(run_python(folder, R"(
z = dict(np.load(file('a.npz')))
np.savez(file('stored.npz'), **z)
np.savez_compressed(file('deflated.npz'), **z)
import io, zipfile
with zipfile.ZipFile(file('versions.npz'), 'w') as out:
    for name, a in z.items():
        text = io.BytesIO()
        np.lib.format.write_array(text, a, version=(2 if len(name) % 2 else 3, 0))
        out.writestr(name + '.npy', text.getvalue())
    out.comment = b'PK\x05\x06 is no end here'
with open(file('streamed.npz'), 'wb') as raw:
    class Pipe:
        def write(self, data): return raw.write(data)
        def flush(self): pass
    with zipfile.ZipFile(Pipe(), 'w') as out:
        for name, a in z.items():
            with out.open(name + '.npy', 'w', force_zip64=True) as entry: np.lib.format.write_array(entry, a)
)"),
            0);
  for (const char* name : {"a.npz", "stored.npz", "deflated.npz", "versions.npz", "streamed.npz"}) {
    auto back = ReplayBuffer::create(test::schema_of_all(), test::options_for(100));
    EXPECT_EQ(import_npz(back, folder.path() / name).rows, 100u) << name;
    EXPECT_EQ(numbers_in(back), counting(0, 100)) << name;
  }
}

TEST(Npz, MismatchIsNamedAndNothingIsWritten) {
  if (!numpy_is_there()) GTEST_SKIP() << "there is no NumPy";
  const test::TemporaryFolder folder;
  ASSERT_EQ(run_python(folder, R"(
good = dict(number=np.arange(5, dtype=np.uint64), planes=np.zeros((5, 70), np.float32), bits=np.zeros((5, 70), np.float32),
            policy=np.zeros((5, 100), np.float16))
def save(name, **changes):
    np.savez(file(name), **{k: v for k, v in (good | changes).items() if v is not None})
save('missing', planes=None)
save('extra', other=np.zeros(5))
save('dtype', planes=np.zeros((5, 70)))
save('shape', planes=np.zeros((5, 71), np.float32))
save('rows', policy=np.zeros((4, 100), np.float16))
save('order', planes=np.asfortranarray(np.zeros((5, 70), np.float32)))
save('endian', planes=np.zeros((5, 70), '>f4'))
save('object', planes=np.array(['x'], object))
save('fields', planes=np.zeros(5, 'f4,i4'))
save('number', planes=np.float32(1))
bad = np.zeros((5, 70), np.float32); bad[3, 60] = -0.0
save('bits', bits=bad)
many = np.zeros((5, 100), np.float16); many[4, 10:16] = 1
save('many', policy=many)
save('priority', __priorities__=np.array([1, 1, -1, 1, 1], np.float32))
save('priorities', __priorities__=np.zeros((5, 2), np.float32))
save('text', __priorities__=np.zeros(5, np.int32))
)"),
            0);
  auto buffer = small_buffer(10, true);
  const auto message = [&](const char* name) {
    return test::message_of([&] { import_npz(buffer, folder.path() / (std::string(name) + ".npz")); });
  };
  const std::pair<const char*, const char*> cases[] = {
      {"missing", "array 'planes': expected in the file, found none"},
      {"extra", "expected the arrays number, planes, bits, policy, found 'other.npy'"},
      {"dtype", "array 'planes': expected float32 (70) per row, found float64 (70)"},
      {"shape", "array 'planes': expected float32 (70) per row, found float32 (71)"},
      {"rows", "array 'policy': expected 5 rows as in 'number', found 4"},
      {"order", "array 'planes': expected an array in C order"},
      {"endian", ">f4"},
      {"object", "|O"},
      {"fields", "structured"},
      {"number", "array 'planes': expected rows, found a single number"},
      {"bits", "array 'bits': row 3: expected zeros and ones, found something else at element 60"},
      {"many", "array 'policy': row 4: expected at most 5 values other than zero, found something else at element 15"},
      {"priority", "-1"},
      {"priorities", "array '__priorities__': expected float32 or float64 () per row, found float32 of shape (5, 2)"},
      {"text", "found int32"},
  };
  for (const auto& [name, expected] : cases) EXPECT_TRUE(has(message(name), expected)) << name << ": " << message(name);
  EXPECT_EQ(buffer.ring().window().end, 0u);
}

// A killed export left the snapshot that it works from under a name that no later export looked for.
TEST(Npz, LeftoversOfAKilledExportAreRemovedByTheNext) {
  const test::TemporaryFolder folder;
  auto buffer = small_buffer(3000);
  test::add_rows(buffer, 0, 3000);
  std::mt19937 random(7);
  std::set<std::string> left;
  for (int round = 0; round < 20; ++round) {
    const pid_t child = test::start_child([&] {
      for (;;) export_npz(buffer, folder.path() / "a.npz");
      return 0;
    });
    std::this_thread::sleep_for(std::chrono::microseconds(2000 + random() % 20'000));
    kill(child, SIGKILL);
    ASSERT_EQ(test::wait_for(child), 128 + SIGKILL);
    left.merge(test::names_in(folder.path()));
  }
  left.erase("a.npz");
  EXPECT_GT(left.size(), 0u);  // some were killed in the middle
  export_npz(buffer, folder.path() / "a.npz");
  EXPECT_EQ(test::names_in(folder.path()), std::set<std::string>{"a.npz"});
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // whose own memory grows with what is read

// Bytes that body() occupies at most beyond those before it, in a process of its own.
template <typename Body>
uint64_t peak_of(Body body) {
  constexpr size_t kUnit = size_t{1} << 20;
  const int megabytes = test::run_in_child([&] {
    forget_peak_resident_bytes();
    const uint64_t before = resident_bytes();
    body();
    return static_cast<int>(std::min<uint64_t>(99, (peak_resident_bytes() - before) / kUnit));
  });
  return static_cast<uint64_t>(megabytes) * kUnit;
}

// Rows that are small as they are stored were all values at once: a sparse buffer of 0.8 MB took 3 GB. What is read
// from the file does not stay in memory either.
TEST(Npz, MemoryUseIsBoundedForLargeValues) {
  const test::TemporaryFolder folder;
  constexpr size_t kElements = size_t{1} << 19, kRows = 48;  // 2 MiB a row, 96 MiB in all
  const Schema schema({{"policy", DType::kF32, {kElements}, Encoding::kSparse, 3},
                       {"planes", DType::kF32, {kElements / 8}, Encoding::kBits, 0}});
  auto buffer = ReplayBuffer::create(schema, test::options_for(kRows));
  std::vector<float> policy(kElements), planes(kElements / 8, 1.0f);
  for (size_t row = 0; row < kRows; ++row) {
    policy[row * 100] = static_cast<float>(row + 1);
    const std::byte* const columns[] = {std::as_bytes(std::span(policy)).data(),
                                        std::as_bytes(std::span(planes)).data()};
    buffer.add(columns, 1);
    policy[row * 100] = 0;
  }
  EXPECT_LT(peak_of([&] { export_npz(buffer, folder.path() / "a.npz"); }), uint64_t{24} << 20);
  EXPECT_GT(std::filesystem::file_size(folder.path() / "a.npz"), kRows * kElements * 4);
  EXPECT_LT(peak_of([&] {
              auto back = ReplayBuffer::create(schema, test::options_for(kRows));
              import_npz(back, folder.path() / "a.npz");
            }),
            uint64_t{24} << 20);
}

#endif

// As a float it would be 0, and its row never drawn; or infinite, which the message said was found.
TEST(Npz, PrioritiesOutsideOfFloats) {
  if (!numpy_is_there()) GTEST_SKIP() << "there is no NumPy";
  const test::TemporaryFolder folder;
  auto buffer = small_buffer(2, true);
  test::add_rows(buffer, 0, 2);
  export_npz(buffer, folder.path() / "a.npz");
  ASSERT_EQ(run_python(folder, R"(
z = dict(np.load(file('a.npz')))
np.savez(file('small.npz'), **{**z, '__priorities__': np.array([1e-300, 0.0])})
np.savez(file('large.npz'), **{**z, '__priorities__': np.array([1e300, 0.0])})
)"),
            0);
  auto back = small_buffer(2, true);
  EXPECT_TRUE(has(test::message_of([&] { import_npz(back, folder.path() / "large.npz"); }), "found 1e+300"));
  import_npz(back, folder.path() / "small.npz");
  EXPECT_EQ(back.tree()->get(0), 1u);
  EXPECT_EQ(back.tree()->get(1), 0u);
}

// At any moment of an import: an Error that says so, and never a row of zeros.
TEST(Npz, FileTruncatedDuringImportIsAnError) {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "a.npz";
  const Schema schema({{.name = "x", .dtype = DType::kU64, .shape = {64}}});
  constexpr uint64_t kRows = 10'000;
  auto buffer = ReplayBuffer::create(schema, test::options_for(kRows));
  const std::vector<uint64_t> ones(kRows * 64, 1);
  const std::byte* const column = reinterpret_cast<const std::byte*>(ones.data());
  buffer.add({&column, 1}, kRows);
  int refused = 0;
  for (int i = 0; i < 40; ++i) {
    export_npz(buffer, path);
    auto back = ReplayBuffer::create(schema, test::options_for(kRows));
    std::string message;
    std::thread import([&] { message = test::message_of([&] { import_npz(back, path); }); });
    std::this_thread::sleep_for(std::chrono::microseconds(200 * i));
    std::filesystem::resize_file(path, static_cast<uintmax_t>(i) * 100'003);
    import.join();
    if (message != "no error") {
      ++refused;  // a file that is short from the beginning is no archive
      EXPECT_TRUE(has(message, "was truncated while in use") || has(message, "expected")) << message;
    }
    std::vector<uint64_t> row(64);
    std::byte* const out = reinterpret_cast<std::byte*>(row.data());
    for (uint64_t id = 0; id < back.size(); ++id) {
      ASSERT_TRUE(back.read(id, {&out, 1}));
      ASSERT_EQ(row, std::vector<uint64_t>(64, 1)) << "row " << id << " of " << back.size() << ": " << message;
    }
  }
  EXPECT_GT(refused, 0);
}

// NumPy takes the last of two members with one name, other programs the first.
TEST(Npz, DuplicateArraysAndInvalidIdsAreRefused) {
  if (!numpy_is_there()) GTEST_SKIP() << "there is no NumPy";
  const test::TemporaryFolder folder;
  ASSERT_EQ(run_python(folder, R"(
import io, warnings, zipfile
warnings.simplefilter('ignore')
def npz(name, *arrays):
  with zipfile.ZipFile(file(name), 'w') as archive:
    for member, array in arrays:
      data = io.BytesIO()
      np.save(data, array)
      archive.writestr(member + '.npy', data.getvalue())
x = np.arange(3, dtype=np.uint64)
npz('twice.npz', ('x', x), ('x', x + 1))
npz('ids_twice.npz', ('x', x), ('__ids__', x), ('__ids__', x))
npz('float_ids.npz', ('x', x), ('__ids__', x.astype(np.float64)))
npz('few_ids.npz', ('x', x), ('__ids__', x[:2]))
npz('good.npz', ('x', x), ('__ids__', x))
)"),
            0);
  auto buffer = ReplayBuffer::create(Schema({{.name = "x", .dtype = DType::kU64}}), test::options_for(8));
  const auto message = [&](const char* name) {
    return test::message_of([&] { import_npz(buffer, folder.path() / name); });
  };
  EXPECT_TRUE(has(message("twice.npz"), "array 'x': expected once in the file, found twice")) << message("twice.npz");
  EXPECT_TRUE(has(message("ids_twice.npz"), "array '__ids__': expected once in the file, found twice"));
  EXPECT_TRUE(has(message("float_ids.npz"), "array '__ids__': expected uint64 or int64 () per row, found float64"));
  EXPECT_TRUE(has(message("few_ids.npz"), "array '__ids__': expected 3 rows as in 'x', found 2"));
  EXPECT_EQ(buffer.size(), 0u);
  EXPECT_EQ(message("good.npz"), "no error");
}

TEST(Npz, ReservedArrayNamesAreNotColumns) {
  const test::TemporaryFolder folder;
  auto buffer = ReplayBuffer::create(Schema({{"__ids__", DType::kF32, {}, Encoding::kRaw, 0}}), test::options_for(1));
  EXPECT_TRUE(has(test::message_of([&] { export_npz(buffer, folder.path() / "a.npz"); }), "found '__ids__'"));
}

TEST(Npz, ExportFromASnapshotIsTheSameFile) {
  const test::TemporaryFolder folder;
  auto buffer = small_buffer(100, true);
  test::add_rows(buffer, 0, 120);
  save_snapshot(buffer, folder.path() / "s");
  export_npz(buffer, folder.path() / "a.npz");
  export_npz(folder.path() / "s", folder.path() / "b.npz");
  EXPECT_EQ(read_file(folder.path() / "a.npz", 1 << 24), read_file(folder.path() / "b.npz", 1 << 24));
}

// Sizes and checksums cover all contents, so that what is damaged is refused, or is a byte that says nothing (a date, a
// version); and then the rows are whole.
TEST(Npz, DamageIsDetectedOrHarmless) {
  const test::TemporaryFolder folder;
  auto buffer = small_buffer(3, true);
  test::add_rows(buffer, 0, 3);
  export_npz(buffer, folder.path() / "a.npz");
  std::vector<std::string> good = {read_file(folder.path() / "a.npz", 1 << 24)};
  if (numpy_is_there()) {
    ASSERT_EQ(run_python(folder, "np.savez_compressed(file('c.npz'), **np.load(file('a.npz')))"), 0);
    good.push_back(read_file(folder.path() / "c.npz", 1 << 24));
  }
  test::Mutator mutator(good, {"PK\1\2", "PK\3\4", std::string("PK\5\6\0\0\0\0", 8), "(3, 70)", std::string(4, '\xFF')},
                        7);
  size_t refused = 0;
  auto back = small_buffer(10, true);
  for (int i = 0; i < 12'000; ++i) {
    write_file(folder.path() / "d.npz", mutator.next());
    const std::string message = test::message_of([&] { import_npz(back, folder.path() / "d.npz"); });
    if (message != "no error") {
      ASSERT_EQ(back.ring().window().end, 0u) << message;
      ++refused;
      continue;
    }
    ASSERT_EQ(numbers_in(back), counting(0, 3));
    back = small_buffer(10, true);
  }
  EXPECT_GT(refused, 8000u);
}

}  // namespace
}  // namespace quern::replay
