#include "evaluate/base_model.h"

#include <system_error>
#include <vector>

#include "checkpoint/folder.h"
#include "checkpoint/tensor_refs.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/files.h"

namespace quern::train {

namespace fs = std::filesystem;

checkpoint::Checkpoint open_base(const fs::path& folder) {
  const fs::path base = folder / kBaseFolder;
  const std::vector<uint64_t> steps = checkpoint::list_steps(base);
  if (steps.size() == 1) {
    return checkpoint::Checkpoint(base / checkpoint::directory_name(steps.front()), checkpoint::Parts::kWeights);
  }
  throw Error("[run] {}: expected the model that the adapters of this run belong to, found {} checkpoints",
              base.string(), steps.size());
}

void load_base(const fs::path& folder, nn::LanguageModel& model) {
  open_base(folder).load({checkpoint::base_refs(model), {}});
}

void link_base(const fs::path& checkpoint, const fs::path& folder) {
  const fs::path base = folder / kBaseFolder, target = base / checkpoint.filename();
  create_folders(base);
  AtomicDirectory directory(target);
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoint)) {
    if (entry.path().filename() == "optimizer.safetensors" || !entry.is_regular_file()) continue;
    const fs::path to = directory.temporary() / entry.path().filename();
    std::error_code code;
    fs::create_hard_link(entry.path(), to, code);
    if (code) fs::copy_file(entry.path(), to, code);
    if (code) throw Error("[run] {}: cannot be copied to {}: {}", entry.path().string(), base.string(), code.message());
  }
  directory.commit();
}

}  // namespace quern::train
