// Profile regions of a worker, other than the operations of a model.
#pragma once

#include "quern/profile.h"

namespace quern {

inline const Region kTurnWait("waiting for a turn");    // to add to a gradient
inline const Region kTeamWait("waiting for the team");  // between operations
inline const Region kWorkWait("waiting for work");      // between tasks
inline const Region kRankWait("waiting for ranks");     // for weights that they update
inline const Region kOther("other");                    // time within a task that belongs to no other region

}  // namespace quern
