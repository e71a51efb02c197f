// The input of a board network: a linear layer of the planes of each square, and a learned vector per square.
#pragma once

#include <cstddef>
#include <string>

#include "nn/layers/linear.h"

namespace quern::nn {

struct BoardInputSpec {
  std::string planes;   // name of the linear layer, which has no bias: the squares' vectors contain one
  std::string squares;  // of the table of squares
  size_t plane_count, square_count, width;
};

class BoardInput {
 public:
  BoardInput(Declaration& model, const BoardInputSpec& spec);

  // x (rows, width) of the batch's planes (sequences, planes, squares): this member's rows are complete. Overwrites
  // work.wide. The members synchronize before they read each other's planes.
  void forward(const Pass& pass, float* x) const;
  // Adds, in turn, the gradient of both parameters, from work.dx. Overwrites work.wide. The planes have no gradient.
  void backward(const Pass& pass) const;

 private:
  void read_planes(const Pass& pass) const;
  void add_squares(const Pass& pass) const;

  size_t planes_, squares_, width_;
  Linear linear_;
  ParameterId table_;  // (squares, width)
};

}  // namespace quern::nn
