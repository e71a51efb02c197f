// The implementation of the public Model.
#pragma once

#include <quern/model.h>

#include <utility>

#include "evaluate/load.h"

namespace quern {

class Model::Impl {
 public:
  explicit Impl(train::TrainedModel&& its_model) : trained(std::move(its_model)) {}

  train::TrainedModel trained;
};

}  // namespace quern
