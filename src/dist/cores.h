// Which cores a rank uses.
#pragma once

#include "dist/communicator.h"

namespace quern::dist {

// Gives this process its share of the cores, so that ranks on one machine do not compete for them: mpirun binds one or
// two ranks to a single core each by default, and more of them to the same cores. Ranks that may use the same cores
// divide them; a rank that has some of its own, as by the control groups of a cluster, keeps them. All ranks call it,
// before they start threads.
void claim_cores(Communicator& ranks);

}  // namespace quern::dist
