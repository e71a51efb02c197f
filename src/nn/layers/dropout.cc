#include "nn/layers/dropout.h"

#include "nn/regions.h"

namespace quern::nn {

kernels::Dropout dropout_of(const Pass& pass, Purpose purpose, size_t block, size_t sequence) {
  return {.rate = pass.dropout,
          .stream = {.seed = pass.batch.seed,
                     .purpose = purpose,
                     .layer = static_cast<uint16_t>(block),
                     .step = pass.batch.step,
                     .sequence = pass.batch.first_sequence + static_cast<uint32_t>(sequence)}};
}

void apply_dropout(const Pass& pass, const DropoutSite& site, size_t width, const float* x, float* out) {
  const float rate = site.rate.value_or(pass.dropout);
  if (rate == 0.0f && x == out) return;
  const Timed timed(kDropout, element_bytes(pass, width, 8), layer_tag(site.block));
  const size_t n = pass.batch.T * width;
  const Range mine = pass.member.part(n, 64);  // the unit of the random stream
  for (size_t s = 0; s < pass.batch.sequences; ++s) {
    const size_t at = s * n + mine.begin;
    const RandomStream stream = dropout_of(pass, site.purpose, site.block, s).stream;
    kernels::dropout({rate, stream}, x + at, out + at, mine.size(), mine.begin);
  }
}

void drop_branch(const Pass& pass, const DropoutSite& site, size_t width) {
  pass.member.meet();
  if (pass.dropout == 0.0f) return;
  apply_dropout(pass, site, width, pass.work.delta.data(), pass.work.delta.data());
  pass.member.meet();
}

const float* branch_gradient(const Pass& pass, const DropoutSite& site, size_t width) {
  if (pass.dropout == 0.0f) return pass.work.dx.data();
  apply_dropout(pass, site, width, pass.work.dx.data(), pass.work.dbranch.data());
  pass.member.meet();
  return pass.work.dbranch.data();
}

}  // namespace quern::nn
