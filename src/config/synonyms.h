// "Did you mean": the names of settings and values that people know from other programs, and typing errors.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace quern::train {

struct SettingAdvice {
  std::string setting;  // "optimizer.rate"; empty if there is no such setting
  std::string hint;     // a sentence about the difference; may be empty

  bool empty() const { return setting.empty() && hint.empty(); }
  // "; did you mean optimizer.rate?", the hint, or both. Empty if both are.
  std::string text() const;
};

// The setting that `word` is likely to mean: a name without its table or with another one ("train.rate"), a name of
// other programs ("lr", "n_layer"), in any case and with - for _. kExact stops there; kNear also finds misspelled ones.
enum class Match : bool { kExact, kNear };
SettingAdvice advise_setting(std::string_view word, Match match = Match::kNear);

// The allowed value that `word` is likely to mean: "fp32" for "float32", "true" for "yes"; empty if there is none.
std::string_view advise_value(std::string_view word, std::span<const std::string_view> allowed);

// "; did you mean fp32?" for the above, or empty.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> allowed);

}  // namespace quern::train
