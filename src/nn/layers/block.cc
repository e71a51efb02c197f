#include "nn/layers/block.h"

#include <string>

namespace quern::nn {

Block::Block(Declaration& model, const BlockSpec& spec, size_t index)
    : name_(spec.name),
      index_(index),
      width_(spec.norm1.width),
      norm1_(model, model.activations.block, spec.norm1),
      attention_(model, spec.attention),
      norm2_(model, model.activations.block, spec.norm2),
      feed_forward_(model, spec.feed_forward) {}

void Block::forward(const Pass& pass, const BlockEnds& ends) const {
  Workspace& work = pass.work;
  const SavedSet& saved = work.block(index_);
  float *stream = work.stream.data(), *entry = work.entry(index_);
  norm1_.forward(pass, saved, ends.add_delta ? stream : nullptr, entry);
  pass.member.meet();
  attention_.forward(pass, saved);
  norm2_.forward(pass, saved, entry, stream, attention_.output_name());
  pass.member.meet();
  feed_forward_.forward(pass, saved, ends.output);
}

void Block::backward(const Pass& pass) const {
  const SavedSet& saved = pass.work.block(index_);
  feed_forward_.backward(pass, saved, norm2_);
  norm2_.backward(pass, saved);
  attention_.backward(pass, saved, norm1_);
  norm1_.backward(pass, saved);
}

void Block::show_input_gradient(const Pass& pass, const std::string& input) const {
  pass.show("gradient of " + input, pass.work.dx.data(), pass.rows() * width_);
}

void BlockStack::forward(const Pass& pass) const {
  for (size_t i = 0; i < blocks_.size(); ++i) blocks_[i].forward(pass, {.add_delta = i > 0});
}

// Recomputes the activations of blocks first ... last, which other blocks have overwritten, from the saved entry of the
// first.
void BlockStack::forward_again(const Pass& pass, size_t first, size_t last) const {
  Pass again = pass;
  again.again = true;
  for (size_t i = first; i <= last; ++i) blocks_[i].forward(again, {.add_delta = i > first, .output = i < last});
}

void BlockStack::backward(const Pass& pass) const {
  size_t available = pass.work.first_of_group(blocks_.size() - 1);  // the lowest block whose activations are stored
  for (size_t i = blocks_.size(); i-- > 0;) {
    if (i < available) {
      available = pass.work.first_of_group(i);
      forward_again(pass, available, i);
    }
    blocks_[i].backward(pass);
    if (pass.watch != nullptr)
      blocks_[i].show_input_gradient(pass, i == 0 ? "embedding" : "block " + blocks_[i - 1].name());
  }
}

}  // namespace quern::nn
