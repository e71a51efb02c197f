// The implementation of the public Tokenizer.
#pragma once

#include <quern/tokenizer.h>

#include <memory>
#include <utility>

#include "data/tokenizer.h"

namespace quern {

// The tokenizer may be part of a model, which it then keeps alive.
class Tokenizer::Impl {
 public:
  explicit Impl(std::shared_ptr<const data::Tokenizer> its_tokenizer) : tokenizer(std::move(its_tokenizer)) {}

  std::shared_ptr<const data::Tokenizer> tokenizer;
};

}  // namespace quern
