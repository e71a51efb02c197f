#include "nn/layers/norm.h"

#include <algorithm>

#include "kernels/layernorm.h"
#include "kernels/rmsnorm.h"

namespace quern::nn {

Norm::Norm(Declaration& model, SavedPlan& saved, const NormSpec& spec)
    : name_(spec.name),
      width_(spec.width),
      kind_(spec.kind),
      epsilon_(spec.epsilon),
      regions_(&spec.regions),
      tag_(layer_tag(spec.block)) {
  if (kind_ == NormKind::kLayernorm || spec.weighted) {
    weight_ = model.parameters.add({.name = name_ + ".weight", .shape = {width_}, .initial = Initial::constant(1)});
  }
  if (kind_ == NormKind::kLayernorm) bias_ = model.parameters.add({.name = name_ + ".bias", .shape = {width_}});
  normal_ = saved.add(width_, model.activations.storage);
  reciprocal_ = saved.add(1, kernels::DType::kF32);
}

void Norm::run(const Pass& pass, const float* x, float* sum, Range rows, const SavedTensor& normal,
               float* reciprocal) const {
  if (kind_ == NormKind::kRmsnorm) return run_rmsnorm(pass, x, sum, rows, normal, reciprocal);
  run_layernorm(pass, x, sum, rows, normal, reciprocal);
}

void Norm::run_layernorm(const Pass& pass, const float* x, float* sum, Range rows, const SavedTensor& normal,
                         float* reciprocal) const {
  const size_t at = rows.begin * width_;
  const float *weight = weight_of(pass), *bias = pass.weights.at(*bias_);
  float* out = pass.work.inner.data() + at;
  const kernels::LayernormSaved saved{normal.data, normal.type, reciprocal};
  if (x == nullptr) {
    kernels::layernorm_forward(sum + at, weight, bias, out, saved, rows.size(), width_, epsilon_);
  } else {
    kernels::residual_layernorm_forward(x + at, pass.work.delta.data() + at, sum + at, weight, bias, out, saved,
                                        rows.size(), width_, epsilon_);
  }
}

void Norm::run_rmsnorm(const Pass& pass, const float* x, float* sum, Range rows, const SavedTensor& normal,
                       float* reciprocal) const {
  const size_t at = rows.begin * width_;
  float* out = pass.work.inner.data() + at;
  const kernels::RmsnormSaved saved{normal.data, normal.type, reciprocal};
  const kernels::RmsnormOptions options{.epsilon = epsilon_, .weight = weight_of(pass)};
  if (x == nullptr) {
    kernels::rmsnorm_forward(sum + at, out, saved, rows.size(), width_, options);
  } else {
    kernels::residual_rmsnorm_forward(x + at, pass.work.delta.data() + at, sum + at, out, saved, rows.size(), width_,
                                      options);
  }
}

void Norm::forward(const Pass& pass, const SavedSet& saved, const float* x, float* sum, std::string_view input) const {
  const Range mine = pass.member.part(pass.rows());
  const SavedTensor& normal = saved[normal_];
  const size_t bytes = (x == nullptr ? 8 : 16) + kernels::size_of(normal.type);
  const Timed timed(regions_->forward.of(pass.again), element_bytes(pass, width_, bytes), tag_);
  if (pass.gradient == nullptr) return run(pass, x, sum, mine, {nullptr, normal.type}, nullptr);
  run(pass, x, sum, mine, normal.at(mine.begin * width_), saved.floats(reciprocal_) + mine.begin);
  if (!input.empty()) pass.show(input, sum, pass.rows() * width_);
  pass.show(name_, normal, pass.rows() * width_);
}

void Norm::forward_rows(const Pass& pass, const float* x, float* sum, Range rows) const {
  run(pass, x, sum, rows, {nullptr, pass.weights.storage()}, nullptr);
}

void Norm::forward_again(const Pass& pass, const SavedSet& saved) const {
  const Range mine = pass.member.part(pass.rows());
  const size_t at = mine.begin * width_;
  const SavedTensor normal = saved[normal_].at(at);
  const Timed timed(regions_->forward.once_more, element_bytes(pass, width_, 4 + kernels::size_of(normal.type)), tag_);
  float* out = pass.work.inner.data() + at;
  if (kind_ == NormKind::kRmsnorm) {
    kernels::rmsnorm_apply(normal.data, normal.type, weight_of(pass), out, mine.size(), width_);
  } else {
    kernels::layernorm_apply(normal.data, normal.type, weight_of(pass), pass.weights.at(*bias_), out, mine.size(),
                             width_);
  }
  pass.member.meet();
}

void Norm::backward(const Pass& pass, const SavedSet& saved) const {
  {
    const SavedTensor& normal = saved[normal_];
    const Timed timed(regions_->backward, element_bytes(pass, width_, 12 + kernels::size_of(normal.type)), tag_);
    if (kind_ == NormKind::kRmsnorm && !trains(pass, weight_)) {
      backward_rmsnorm(pass, saved);
    } else if (pass.member.leads()) {
      kind_ == NormKind::kRmsnorm ? backward_weighted_rmsnorm(pass, saved) : backward_layernorm(pass, saved);
    }
  }
  pass.member.meet();
}

// Done by one member: rows are summed in order, and it takes less than a hundredth of a pass.
void Norm::backward_layernorm(const Pass& pass, const SavedSet& saved) const {
  const SavedTensor& normal = saved[normal_];
  float *dweight = enter(pass, weight_), *dbias = enter(pass, bias_);
  kernels::layernorm_backward({.saved = {normal.data, normal.type, saved.floats(reciprocal_)},
                               .weight = weight_of(pass),
                               .dout = pass.work.dinner.data(),
                               .dx = pass.work.dx.data(),
                               .dweight = dweight,
                               .dbias = dbias},
                              pass.rows(), width_);
  leave(pass, bias_);
  leave(pass, weight_);
}

bool Norm::trains(const Pass& pass, const std::optional<ParameterId>& vector) const {
  return vector && pass.parameter(*vector).trainable;
}

// The gradient of a vector, in its turn; null if it is not trained.
float* Norm::enter(const Pass& pass, const std::optional<ParameterId>& vector) const {
  if (!trains(pass, vector)) return nullptr;
  const Turn& turn = pass.batch.turn;
  float* values = pass.gradient->at(*vector, turn);
  pass.gradient->enter(pass.parameter(*vector).first_segment, turn, pass.member);
  if (turn.first) std::fill_n(values, width_, 0.0f);
  return values;
}

void Norm::leave(const Pass& pass, const std::optional<ParameterId>& vector) const {
  if (!trains(pass, vector)) return;
  pass.gradient->leave(pass.parameter(*vector).first_segment, pass.batch.turn);
  pass.show_gradient(*vector);
}

// By one member as well.
void Norm::backward_weighted_rmsnorm(const Pass& pass, const SavedSet& saved) const {
  const SavedTensor& normal = saved[normal_];
  float* dweight = enter(pass, weight_);
  kernels::rmsnorm_backward({.saved = {normal.data, normal.type, saved.floats(reciprocal_)},
                             .weight = weight_of(pass),
                             .dout = pass.work.dinner.data(),
                             .dx = pass.work.dx.data(),
                             .dweight = dweight},
                            pass.rows(), width_);
  leave(pass, weight_);
}

// Without a weight that is trained there is nothing to sum over rows: each member computes its own.
void Norm::backward_rmsnorm(const Pass& pass, const SavedSet& saved) const {
  const Range mine = pass.member.part(pass.rows());
  const size_t at = mine.begin * width_;
  const SavedTensor normal = saved[normal_].at(at);
  kernels::rmsnorm_backward({.saved = {normal.data, normal.type, saved.floats(reciprocal_) + mine.begin},
                             .weight = weight_of(pass),
                             .dout = pass.work.dinner.data() + at,
                             .dx = pass.work.dx.data() + at},
                            mine.size(), width_);
}

}  // namespace quern::nn
