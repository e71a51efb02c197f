#include "cli/suggest.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/synonyms.h"
#include "core/text.h"

namespace quern::cli {
namespace {

struct Synonym {
  std::string_view words;    // of other programs, separated by spaces
  std::string_view meaning;  // ours
};

// The first meaning that the command has is suggested, so a word may stand in several lines.
constexpr Synonym kFlags[] = {
    {"o out out_dir output output_dir save_dir log_dir", "--out"},
    {"o out out_dir output output_dir save_dir log_dir name", "--run"},
    {"m model model_path ckpt checkpoint ckpt_path load path", "--run"},
    {"continue resume_from resume_from_checkpoint", "--resume"},
    {"init_from finetune pretrained from_pretrained", "--from"},
    {"c cfg config_file", "--config"},
    {"s", "--set"},
    {"t", "--threads"},
    {"p text start input message", "--prompt"},
    {"system_prompt sys", "--system"},
    {"template jinja", "--chat-template"},
    {"f file input_file", "--prompt-file"},
    {"n max_tokens max_length length num_tokens n_predict", "--tokens"},
    {"num_return_sequences n_samples count repeat", "--samples"},
    {"topk k", "--top-k"},
    {"topp nucleus", "--top-p"},
    {"minp", "--min-p"},
    {"repetition_penalty penalty frequency_penalty presence_penalty", "--repeat-penalty"},
    {"repeat_last_n penalty_range", "--repeat-window"},
    {"r stop_string stop_strings stop_sequence reverse_prompt until", "--stop"},
    {"overwrite replace yes y", "--force"},
    {"type model_type algorithm", "--kind"},
    {"dump_config show_config", "--print-config"},
    {"V", "--version"},
};

constexpr Synonym kCommands[] = {
    {"sample infer inference predict complete write", "generate"},
    {"talk converse conversation ask repl interactive", "chat"},
    {"evaluate evaluation validate test score perplexity ppl", "eval"},
    {"fit finetune fine-tune pretrain learn resume run start", "train"},
    {"benchmark benchmarks perf speed", "bench"},
    {"encode tokenise tokenizer tok prepare preprocess", "tokenize"},
    {"ls list", "runs"},
    {"show describe status inspect stat cpu machine", "info"},
    {"plot summary summarize log history compare loss", "report"},
    {"memory estimate mem dry-run", "plan"},
    {"rerun replay-step debug", "rerun-step"},
};

bool contains_word(std::string_view words, std::string_view word) {
  return fmt::format(" {} ", words).find(fmt::format(" {} ", word)) != std::string::npos;
}

std::string normalized(std::string_view flag) {
  std::string word(flag.substr(std::min(flag.find_first_not_of('-'), flag.size())));
  std::replace(word.begin(), word.end(), '-', '_');
  return word;
}

std::string as_flag(std::string_view word) {
  std::string flag = "--" + std::string(word);
  std::replace(flag.begin() + 2, flag.end(), '_', '-');
  return flag;
}

// A flag for the setting if the command has one: --rate for optimizer.rate; otherwise --set, if it has that. Settings
// of self-play mean nothing to other commands.
std::string flag_of(const std::string& setting, const CommandFlags& command) {
  if (setting.starts_with("selfplay.") && command.command != "quern selfplay") return {};
  std::string own = as_flag(setting.substr(setting.find('.') + 1));
  if (command.has(own)) return own;
  return command.has("--set") ? fmt::format("--set {}=VALUE", setting) : std::string();
}

std::string for_setting(std::string_view word, const CommandFlags& command, train::Match match) {
  train::SettingAdvice advice = train::advise_setting(word, match);
  if (!advice.setting.empty()) {
    advice.setting = flag_of(advice.setting, command);
    if (advice.setting.empty()) return {};
  }
  return advice.text();
}

std::string of_another_command(std::string_view flag, std::span<const CommandFlags> others) {
  for (const CommandFlags& other : others) {
    if (other.has(flag)) return fmt::format("; did you mean `{} {}`?", other.command, flag);
  }
  return {};
}

std::string nearest_flag(std::string_view found, const CommandFlags& command) {
  const std::string_view near =
      nearest(found, std::vector<std::string_view>(command.flags.begin(), command.flags.end()));
  return near.empty() ? std::string() : fmt::format("; did you mean {}?", near);
}

}  // namespace

bool CommandFlags::has(std::string_view flag) const {
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

std::string suggest_flag(std::string_view found, const CommandFlags& command, std::span<const CommandFlags> others) {
  const std::string word = normalized(found.substr(0, found.find('=')));
  const std::string flag = as_flag(word);
  if (command.has(flag)) return fmt::format("; did you mean {}?", flag);  // one dash instead of two
  for (const Synonym& synonym : kFlags) {
    const bool meant = contains_word(synonym.words, word) && command.has(synonym.meaning);
    if (meant) return fmt::format("; did you mean {}?", synonym.meaning);
  }
  std::string text = for_setting(word, command, train::Match::kExact);
  if (text.empty() && word.size() > 1) text = of_another_command(flag, others);
  if (text.empty() && word.size() > 1) text = nearest_flag(flag, command);
  if (text.empty() && word.size() > 1) text = for_setting(word, command, train::Match::kNear);
  return text;
}

std::string suggest_command(std::string_view found, std::span<const std::string> commands) {
  if (found == "help") return "; did you mean --help?";
  if (found == "version") return "; did you mean --version?";
  for (const Synonym& synonym : kCommands) {
    const bool exists = std::find(commands.begin(), commands.end(), synonym.meaning) != commands.end();
    if (exists && contains_word(synonym.words, found)) return fmt::format("; did you mean {}?", synonym.meaning);
  }
  return train::did_you_mean(found, std::vector<std::string_view>(commands.begin(), commands.end()));
}

}  // namespace quern::cli
