// What a worker's time goes to besides the operations of a model.
#pragma once

#include "quern/profile.h"

namespace quern {

inline const Region kTurnWait("waiting for a turn");    // to add to a gradient
inline const Region kTeamWait("waiting for the team");  // between operations
inline const Region kWorkWait("waiting for work");      // between tasks
inline const Region kOther("other");                    // of a task, in no other region

}  // namespace quern
