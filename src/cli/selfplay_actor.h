// The actor process that `quern selfplay --processes` starts: `quern selfplay-actor --run DIR --launch N`. It is not
// for people, so it has no help.
#pragma once

namespace quern::cli {

inline constexpr const char* kActorCommand = "selfplay-actor";

bool names_actor(int argc, char** argv);  // whether the first argument is that command
int run_actor_program(int argc, char** argv);

}  // namespace quern::cli
