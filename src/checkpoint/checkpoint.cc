#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <set>
#include <system_error>
#include <utility>

#include "checkpoint/folder.h"
#include "core/error.h"
#include "core/files.h"
#include "core/text.h"

namespace quern::checkpoint {
namespace {

namespace fs = std::filesystem;
using safetensors::Dtype;
using safetensors::Stamp;
using safetensors::Tensor;

constexpr const char* kModel = "model.safetensors";
constexpr const char* kAdapters = "adapter_model.safetensors";  // as PEFT calls it
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr const char* kConfig = "config.json";
constexpr const char* kState = "state.json";
constexpr size_t kMaxStateBytes = 1 << 20;

std::vector<Tensor> tensors_of(std::span<const TensorRef> refs) {
  std::vector<Tensor> tensors;
  for (const TensorRef& ref : refs) {
    tensors.push_back({ref.name, Dtype::kF32, ref.shape, std::as_bytes(ref.values), ref.read});
  }
  return tensors;
}

// A file of a checkpoint that is being written: its current and its final path.
struct Target {
  fs::path now, later;
};

Stamp write_tensors(const Target& target, std::span<const Tensor> tensors) {
  FileWriter file(target.now, target.later);
  const Stamp stamp = safetensors::write(file, tensors, {{"format", "pt"}});  // transformers requires this key
  file.close();
  return stamp;
}

Stamp write_text(const Target& target, std::string_view text) {
  FileWriter file(target.now, target.later);
  file.write(text);
  file.close();
  Sha256 hash;
  hash.update(std::as_bytes(std::span(text)));
  return {text.size(), hash.finish()};
}

// Of a file that another function writes.
Stamp write_by(const Target& target, const std::function<void(const fs::path&)>& write) {
  write(target.now);
  const MappedFile file(target.now);
  Sha256 hash;
  hash.update(file.bytes());
  file.check_intact();
  return {file.bytes().size(), hash.finish()};
}

// Calls visit(piece) for a mapped file's bytes, a few megabytes at a time, and releases the visited pages: otherwise a
// resumed run would need memory for its weights and moments twice.
template <typename Visit>
void go_through(std::span<const std::byte> bytes, Visit visit) {
  constexpr size_t kPiece = size_t{4} << 20;
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(kPiece, bytes.size()));
    visit(piece);
    MappedFile::release(piece);
    bytes = bytes.subspan(piece.size());
  }
}

std::string describe(const std::vector<size_t>& shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

// Opens a file and verifies its size and then its digest, which reads it once.
MappedFile open_stamped(const fs::path& folder, const StateFile& state, const std::string& name) {
  const fs::path path = folder / name;
  const auto stamp = state.files.find(name);
  if (stamp == state.files.end()) {
    throw Error("[checkpoint] {}: expected an entry for {} in files, found none", (folder / kState).native(), name);
  }
  MappedFile file(path);
  if (file.bytes().size() != stamp->second.bytes) {
    throw Error("[checkpoint] {}: expected {} bytes, found {}", path.native(), stamp->second.bytes,
                file.bytes().size());
  }
  file.expect_sequential();
  Sha256 hash;
  go_through(file.bytes(), [&](std::span<const std::byte> piece) { hash.update(piece); });
  file.check_intact();
  if (const Sha256Digest found = hash.finish(); found != stamp->second.sha256) {
    throw Error("[checkpoint] {}: expected SHA-256 {}, found {}: the file was changed", path.native(),
                to_hex(stamp->second.sha256), to_hex(found));
  }
  return file;
}

// The tensor of the same name, which must have the same shape and dtype. `what` the file contains: a model or an
// optimizer.
const Tensor& find_same(const fs::path& path, std::string_view what, const safetensors::File& file,
                        const Tensor& wanted) {
  const Tensor* found = file.find(wanted.name);
  if (found == nullptr) {
    throw Error("[checkpoint] {}: contains a different {}: expected tensor {} of shape {}, found none of that name",
                path.native(), what, in_quotes(wanted.name), describe(wanted.shape));
  }
  if (found->shape != wanted.shape || found->dtype != wanted.dtype) {
    throw Error("[checkpoint] {}: contains a different {}: tensor {}: expected {} {}, found {} {}", path.native(), what,
                in_quotes(wanted.name), dtype_name(wanted.dtype), describe(wanted.shape), dtype_name(found->dtype),
                describe(found->shape));
  }
  return *found;
}

// Every wanted tensor must exist with the same shape and dtype, and the file must not contain others.
void check_same(const fs::path& path, std::string_view what, const safetensors::File& file,
                std::span<const Tensor> wanted) {
  for (const Tensor& tensor : wanted) find_same(path, what, file, tensor);
  if (file.tensors().size() == wanted.size()) return;
  for (const Tensor& tensor : file.tensors()) {
    const bool known =
        std::any_of(wanted.begin(), wanted.end(), [&](const Tensor& w) { return w.name == tensor.name; });
    if (!known) {
      throw Error("[checkpoint] {}: contains a different {}: expected {} tensors, found {}, among them {}",
                  path.native(), what, wanted.size(), file.tensors().size(), in_quotes(tensor.name));
    }
  }
}

void copy_all(const safetensors::File& file, std::span<const TensorRef> refs) {
  for (const TensorRef& ref : refs) {
    const Tensor* tensor = file.find(ref.name);
    assert(tensor != nullptr && tensor->bytes.size() == ref.values.size_bytes());
    std::byte* to = std::as_writable_bytes(ref.values).data();
    go_through(tensor->bytes, [&](std::span<const std::byte> piece) {
      std::memcpy(to, piece.data(), piece.size());
      to += piece.size();
    });
  }
  file.check_intact();
}

template <typename Update>
std::string hash_by_name(std::vector<std::pair<std::string_view, std::span<const std::byte>>> tensors, Update update) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Sha256 hash;
  for (const auto& [name, bytes] : tensors) update(hash, bytes);
  return to_hex(hash.finish());
}

// A replaced checkpoint is removed; one to which the user has added files is renamed instead.
void set_aside_if_foreign(const fs::path& path) {
  if (!has_foreign_files(path)) return;
  fs::path aside;
  for (int number = 1; aside.empty() || fs::exists(fs::symlink_status(aside)); ++number) {
    aside = path.native() + fmt::format(".replaced-{}", number);
  }
  fs::rename(path, aside);
}

}  // namespace

bool has_foreign_files(const fs::path& path) {
  std::set<std::string> known = {kModel, kAdapters, kOptimizer, kConfig, kState};
  try {
    for (const auto& [name, stamp] : read_state(path).files) known.insert(name);
  } catch (const Error&) {
    // Damaged: only the files that every checkpoint has are known.
  }
  std::error_code ignored;
  const fs::file_status status = fs::symlink_status(path, ignored);
  if (!fs::is_directory(status)) return fs::exists(status);
  for (fs::directory_iterator entry(path, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
    if (!known.contains(entry->path().filename().native()) || entry->is_directory(ignored)) return true;
  }
  return false;
}

fs::path save(const fs::path& folder, const Tensors& tensors, const RunState& state, std::string_view config,
              std::span<const ExtraFile> extras) {
  create_folders(folder);
  remove_leftovers(folder);

  fs::path path = folder / directory_name(state.step);
  AtomicDirectory directory(path);
  const auto target = [&](const char* name) { return Target{directory.temporary() / name, path / name}; };
  StateFile file{state, {}};
  const char* weights = tensors.adapters ? kAdapters : kModel;
  file.files[weights] = write_tensors(target(weights), tensors_of(tensors.weights));
  file.files[kOptimizer] = write_tensors(target(kOptimizer), tensors_of(tensors.optimizer));
  file.files[kConfig] = write_text(target(kConfig), config);
  for (const ExtraFile& extra : extras) {
    const Target there = target(extra.name.c_str());
    file.files[extra.name] = extra.write             ? write_by(there, extra.write)
                             : extra.tensors.empty() ? write_text(there, extra.text)
                                                     : write_tensors(there, extra.tensors);
  }
  write_text(target(kState), to_json(file));
  set_aside_if_foreign(path);
  directory.commit();
  return path;
}

StateFile read_state(const fs::path& folder) {
  const fs::path path = folder / kState;
  StateFile file = parse_state(read_file(path, kMaxStateBytes), path.native());
  const std::optional<uint64_t> step = step_of(folder);
  if (step && *step != file.state.step) {
    throw Error("[checkpoint] {}: step: expected {} from the directory name, found {}", path.native(), *step,
                file.state.step);
  }
  return file;
}

// safetensors::File checks the format.
safetensors::File open_tensors(const fs::path& folder, const StateFile& state, const std::string& name) {
  open_stamped(folder, state, name);
  return safetensors::File(folder / name);
}

std::string read_text(const fs::path& folder, const StateFile& state, const std::string& name) {
  const MappedFile file = open_stamped(folder, state, name);
  return file.read([&] { return std::string(file.text()); });
}

fs::path verified_file(const fs::path& folder, const StateFile& state, const std::string& name) {
  open_stamped(folder, state, name);
  return folder / name;
}

Checkpoint::Checkpoint(const fs::path& path, Parts parts) : Checkpoint(path, parts, read_state(path)) {}

Checkpoint::Checkpoint(fs::path path, Parts parts, const StateFile& file)
    : path_(std::move(path)),
      state_(file.state),
      adapters_(file.files.contains(kAdapters)),
      model_(open_tensors(path_, file, adapters_ ? kAdapters : kModel)) {
  if (parts != Parts::kWeights) optimizer_.emplace(open_tensors(path_, file, kOptimizer));
  if (parts != Parts::kEveryFile) return;
  for (const auto& [name, stamp] : file.files) {
    if (name != kOptimizer && name != (adapters_ ? kAdapters : kModel)) verified_file(path_, file, name);
  }
}

const Tensor& Checkpoint::at(const std::string& name, const std::vector<size_t>& shape) const {
  return find_same(weights_path(), "model", model_, {name, Dtype::kF32, shape, {}});
}

fs::path Checkpoint::weights_path() const { return path_ / (adapters_ ? kAdapters : kModel); }

void Checkpoint::load(const Tensors& tensors) const {
  check_same(weights_path(), "model", model_, tensors_of(tensors.weights));
  const bool with_optimizer = !tensors.optimizer.empty();
  assert(!with_optimizer || optimizer_);
  if (with_optimizer) check_same(path_ / kOptimizer, "optimizer", *optimizer_, tensors_of(tensors.optimizer));
  copy_all(model_, tensors.weights);
  if (with_optimizer) copy_all(*optimizer_, tensors.optimizer);
}

std::string weights_hash(std::span<const TensorRef> weights) {
  std::vector<std::pair<std::string_view, std::span<const std::byte>>> tensors;
  for (const TensorRef& ref : weights) tensors.emplace_back(ref.name, std::as_bytes(ref.values));
  return hash_by_name(std::move(tensors), [](Sha256& hash, std::span<const std::byte> bytes) { hash.update(bytes); });
}

std::string weights_hash(const safetensors::File& model) {
  std::vector<std::pair<std::string_view, std::span<const std::byte>>> tensors;
  for (const Tensor& tensor : model.tensors()) tensors.emplace_back(tensor.name, tensor.bytes);
  std::string hash = hash_by_name(std::move(tensors), [](Sha256& sum, std::span<const std::byte> bytes) {
    go_through(bytes, [&](std::span<const std::byte> piece) { sum.update(piece); });
  });
  model.check_intact();
  return hash;
}

}  // namespace quern::checkpoint
