// Dirichlet noise, which makes a search try moves that the network would not.
#pragma once

#include <span>

#include "selfplay/random_words.h"

namespace quern::selfplay {

// From the gamma distribution of this shape, which must be above 0, and scale 1; at least the smallest normal number.
double draw_gamma(double shape, RandomWords& words);

// From the symmetric Dirichlet distribution: shares that sum to 1.
void draw_dirichlet(double alpha, std::span<double> shares, RandomWords& words);

}  // namespace quern::selfplay
