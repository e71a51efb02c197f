#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "benchmarks/peers/parts.h"

namespace quern::bench {
namespace {

using dnnl::memory;
using Forward = dnnl::layer_normalization_forward;
using Backward = dnnl::layer_normalization_backward;

constexpr float kEpsilon = 1e-5f;  // kLayernormEpsilon
const auto kFlags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;

memory::desc plain(const std::vector<size_t>& shape) {
  const memory::dims dims(shape.begin(), shape.end());
  return {dims, memory::data_type::f32, shape.size() == 2 ? memory::format_tag::ab : memory::format_tag::a};
}

// Primitives and memory objects of one shape, created in advance: a call only sets the addresses.
struct Layernorm {
  Layernorm(size_t rows, size_t C)
      : engine(dnnl::engine::kind::cpu, 0),
        stream(engine),
        forward_shape({dnnl::prop_kind::forward_training, plain({rows, C}), plain({rows}), kEpsilon, kFlags}, engine),
        backward_shape({dnnl::prop_kind::backward, plain({rows, C}), plain({rows, C}), plain({rows}), kEpsilon, kFlags},
                       engine, forward_shape),
        forward(forward_shape),
        backward(backward_shape) {
    for (const int name : {DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_DST}) make(name, {rows, C});
    for (const int name : {DNNL_ARG_MEAN, DNNL_ARG_VARIANCE}) make(name, {rows});
    for (const int name : {DNNL_ARG_SCALE, DNNL_ARG_SHIFT, DNNL_ARG_DIFF_SCALE, DNNL_ARG_DIFF_SHIFT}) make(name, {C});
  }

  void make(int name, const std::vector<size_t>& shape) { arguments[name] = memory(plain(shape), engine, nullptr); }
  void set(int name, const float* data) { arguments.at(name).set_data_handle(const_cast<float*>(data)); }

  dnnl::engine engine;
  dnnl::stream stream;
  Forward::primitive_desc forward_shape;
  Backward::primitive_desc backward_shape;
  Forward forward;
  Backward backward;
  std::unordered_map<int, memory> arguments;  // a primitive uses those it knows
};

void* create(size_t rows, size_t C) { return new Layernorm(rows, C); }
void destroy(void* handle) { delete static_cast<Layernorm*>(handle); }

void forward(void* handle, const float* x, const float* weight, const float* bias, float* out, float* mean,
             float* variance) {
  Layernorm& layernorm = *static_cast<Layernorm*>(handle);
  layernorm.set(DNNL_ARG_SRC, x);
  layernorm.set(DNNL_ARG_SCALE, weight);
  layernorm.set(DNNL_ARG_SHIFT, bias);
  layernorm.set(DNNL_ARG_DST, out);
  layernorm.set(DNNL_ARG_MEAN, mean);
  layernorm.set(DNNL_ARG_VARIANCE, variance);
  layernorm.forward.execute(layernorm.stream, layernorm.arguments);
  layernorm.stream.wait();
}

void backward(void* handle, const float* x, const float* weight, const float* bias, const float* dout,
              const float* mean, const float* variance, float* dx, float* dweight, float* dbias) {
  Layernorm& layernorm = *static_cast<Layernorm*>(handle);
  layernorm.set(DNNL_ARG_SRC, x);
  layernorm.set(DNNL_ARG_SCALE, weight);
  layernorm.set(DNNL_ARG_SHIFT, bias);
  layernorm.set(DNNL_ARG_DIFF_DST, dout);
  layernorm.set(DNNL_ARG_MEAN, mean);
  layernorm.set(DNNL_ARG_VARIANCE, variance);
  layernorm.set(DNNL_ARG_DIFF_SRC, dx);
  layernorm.set(DNNL_ARG_DIFF_SCALE, dweight);
  layernorm.set(DNNL_ARG_DIFF_SHIFT, dbias);
  layernorm.backward.execute(layernorm.stream, layernorm.arguments);
  layernorm.stream.wait();
}

const char* dnnl_name() {
  static const std::string name = [] {
    const dnnl_version_t& version = *dnnl_version();
    return "oneDNN " + std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
           std::to_string(version.patch);
  }();
  return name.c_str();
}

}  // namespace

void fill_layernorm(Peers& peers) {
  peers.layernorm_create = create;
  peers.layernorm_destroy = destroy;
  peers.layernorm_forward = forward;
  peers.layernorm_backward = backward;
  peers.dnnl_name = dnnl_name;
}

}  // namespace quern::bench
