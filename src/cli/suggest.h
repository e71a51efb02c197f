// "Did you mean": what to type instead of an unknown flag or command.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quern::cli {

// The flags of a command, with their dashes.
struct CommandFlags {
  std::string command;  // as the user types it: "quern train"
  std::vector<std::string> flags;

  bool has(std::string_view flag) const;
};

// "; did you mean --rate?" for an unknown flag of a command, also if it is a setting (--set optimizer.clip=VALUE), a
// name of other programs (-o), or a flag of one of the `others`. Empty if nothing is near.
std::string suggest_flag(std::string_view found, const CommandFlags& command, std::span<const CommandFlags> others);

// "; did you mean generate?" for an unknown command. Empty if nothing is near.
std::string suggest_command(std::string_view found, std::span<const std::string> commands);

}  // namespace quern::cli
