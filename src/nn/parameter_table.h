// The parameters of a model: its layers declare them, then they are laid out as one buffer. Weights, gradient and the
// optimizer's states share the layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace quern::nn {

// Identifies a parameter in its table.
enum class ParameterId : uint32_t {};

// The values of a parameter before the first step.
struct Initial {
  enum class Kind : uint8_t { kConstant, kNormal, kUniform };
  Kind kind = Kind::kConstant;
  double value = 0;  // the constant, the standard deviation, or the bound

  static Initial constant(double value) { return {Kind::kConstant, value}; }
  static Initial normal(double deviation) { return {Kind::kNormal, deviation}; }
  static Initial uniform(double bound) { return {Kind::kUniform, bound}; }  // from -bound to bound
};

// How matrix products use a parameter, which decides the packed copies that Weights keeps of it.
enum class Product : uint8_t {
  kNone,
  kInOut,  // (in, out): forward is x W
  kOutIn,  // (out, in): forward is x W^T
};

struct ParameterSpec {
  std::string name;           // "h.0.attn.c_attn.weight"
  std::vector<size_t> shape;  // as stored in files
  Initial initial = {};
  bool decay = false;     // whether weight decay applies
  bool trainable = true;  // if false: no segment, no gradient, no optimizer state
  bool lookup = false;    // whether rows are looked up by index, so that its gradient is added row by row
  Product product = Product::kNone;
  bool hidden = false;   // a matrix between hidden layers: neither an embedding nor the output projection
  size_t parts = 1;      // matrices with the same inputs that are stored side by side, as for queries, keys and values
  bool adapter = false;  // of a low-rank adapter: saved and loaded without the model that it adapts
};

struct Parameter : ParameterSpec {
  size_t offset = 0;         // floats from the start of the buffer; 64-byte aligned
  size_t size = 0;           // floats
  size_t first_segment = 0;  // in ParameterTable::segments()
  size_t segments = 0;       // 0 if not trainable

  bool is_matrix() const { return shape.size() > 1; }
  size_t rows() const { return is_matrix() ? shape[0] : 1; }
  size_t width() const { return size / rows(); }
  // Whether it is both an embedding and a matrix of a product, such as a token table tied to the output projection.
  bool tied() const { return lookup && product != Product::kNone; }
};

// A parameter, or a block of complete rows of a large matrix: the unit of ownership while gradients are added, and the
// unit of the gradient norm, the update and packing. Only the layout determines the cut, never the number of threads.
struct Segment {
  size_t offset, size;  // floats, as in Parameter
  ParameterId parameter;
  size_t row, rows;  // of a matrix; a vector is one row
  bool decay;
};
inline constexpr size_t kSegmentFloats = size_t{64} << 10;  // 256 KiB: the four arrays that AdamW touches fit in L2
inline constexpr size_t kSegmentRows = 48;                  // rows are a multiple of this: segments share no panel of
                                                            // packed weights

class ParameterTable {
 public:
  ParameterId add(ParameterSpec spec);
  // Declares that products use the parameter as well, as when the output projection is tied to the token table.
  void use_in_product(ParameterId id, Product product);
  // The parameter is not trained.
  void freeze(ParameterId id);
  // Ends the declaration. Trainable parameters come first in the buffer, in the order of declaration, so that gradient
  // and optimizer states have the same offsets as the weights and end at trainable_size().
  void lay_out();

  const Parameter& operator[](ParameterId id) const { return parameters_[static_cast<size_t>(id)]; }
  const std::vector<Parameter>& all() const { return parameters_; }  // in the order of declaration
  size_t largest_segment() const;                                    // floats
  const std::vector<Segment>& segments() const { return segments_; }
  size_t size() const { return size_; }  // floats of a buffer of all parameters, including alignment gaps
  size_t trainable_size() const { return trainable_size_; }
  size_t count() const { return count_; }  // number of parameters
  size_t trainable_count() const;          // of those that are trained
  bool has_adapters() const;

 private:
  void place(Parameter& parameter);
  void cut(ParameterId id);

  std::vector<Parameter> parameters_;
  std::vector<Segment> segments_;
  size_t size_ = 0, trainable_size_ = 0, count_ = 0;
};

// Fills `weights` (table.size()) with the initial values. Each parameter draws from its own stream, so the values
// depend only on the seed and the parameter's position in the table.
void initialise(const ParameterTable& table, uint64_t seed, std::span<float> weights);

}  // namespace quern::nn
