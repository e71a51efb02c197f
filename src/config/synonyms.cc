#include "config/synonyms.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "config/config_fields.h"
#include "core/text.h"

namespace quern::train {
namespace {

// Words of nanoGPT, llm.c, Hugging Face's Trainer, PyTorch Lightning and their users.
struct Synonym {
  std::string_view words;  // separated by spaces
  std::string_view setting;
  std::string_view hint = {};
};

constexpr Synonym kSettings[] = {
    {"lr learning_rate max_lr base_lr peak_lr", "optimizer.rate"},
    {"min_lr min_learning_rate final_lr", "optimizer.min_rate"},
    {"warmup_steps warmup_iters num_warmup_steps", "optimizer.warmup"},
    {"lr_scheduler lr_scheduler_type lr_schedule scheduler lr_decay", "optimizer.schedule"},
    {"wd decay l2", "optimizer.weight_decay"},
    {"grad_clip max_grad_norm clip_grad gradient_clip_val gradient_clipping", "optimizer.clip"},
    {"adam_beta1 b1", "optimizer.beta1"},
    {"adam_beta2 b2", "optimizer.beta2"},
    {"eps adam_epsilon adam_eps", "optimizer.epsilon"},
    {"n_layer n_layers num_layers num_hidden_layers depth", "model.layers"},
    {"n_head n_heads num_heads num_attention_heads", "model.heads"},
    {"n_embd n_embed embd embed_dim embedding_dim d_model dim hidden_size hidden_dim", "model.width"},
    {"block_size seq_len seq_length sequence_length max_seq_len max_length context_length context_size ctx n_ctx "
     "n_positions max_position_embeddings",
     "model.context"},
    {"num_key_value_heads n_kv_heads kv_head n_kv_head", "model.kv_heads"},
    {"intermediate_size n_inner ffn_dim ffn_width d_ff hidden_dim_ff", "model.inner_width"},
    {"model_type architecture arch", "model.family"},
    {"rope_theta theta rope_freq_base", "model.rope_base"},
    {"rms_norm_eps layer_norm_eps layer_norm_epsilon norm_eps", "model.norm_epsilon"},
    {"vocab_size vocab n_vocab", "data.vocabulary", "model.vocabulary sets the rows of the token table"},
    {"p_dropout drop resid_pdrop attn_pdrop", "model.dropout"},
    {"norm_type normalization rms_norm rmsnorm layer_norm layernorm", "model.norm"},
    {"rope rotary position_embedding position_embedding_type pos_emb", "model.positions"},
    {"act activation_function hidden_act act_fn", "model.activation"},
    {"use_qk_norm qknorm qk_layernorm", "model.qk_norm"},
    {"zero_init zero_init_residual", "model.zero_projections"},
    {"init_std initializer_range embedding_std embd_std embedding_init", "model.embedding_deviation"},
    {"tie_word_embeddings tie_embeddings tie_weights weight_tying tied_embeddings", "model.tied_output"},
    {"softcap soft_cap logit_softcap logits_soft_cap final_logit_softcapping", "model.logit_cap"},
    {"max_iters max_steps iters iterations num_iterations num_steps n_steps total_steps updates", "train.steps"},
    {"epochs num_epochs n_epochs num_train_epochs max_epochs", "train.steps",
     "one epoch takes (tokens of text) / (batch x context) steps; conversations have data.epochs"},
    {"batch_size per_device_train_batch_size micro_batch_size bs", "train.batch"},
    {"grad_accum grad_accum_steps gradient_accumulation gradient_accumulation_steps accumulate_grad_batches",
     "train.accumulation"},
    {"ranks n_ranks world_size num_lanes", "train.lanes"},
    {"random_seed manual_seed", "train.seed"},
    {"dtype mixed_precision amp torch_dtype", "train.precision"},
    {"gradient_checkpointing activation_checkpointing", "train.recompute"},
    {"num_threads n_threads num_workers workers cores jobs nproc", "train.threads"},
    {"eval_interval eval_steps eval_every val_interval val_check_interval", "train.validation_interval"},
    {"eval_iters val_batches limit_val_batches", "train.validation_batches"},
    {"data_dir data_path dataset train_file text_file", "data.paths"},
    {"tokenizer_file tokenizer_path tokenizer_name", "data.tokenizer"},
    {"val_split validation_split val_fraction test_size", "data.validation_fraction"},
    {"save_interval save_steps save_every checkpoint_interval checkpoint_every", "checkpoint.interval"},
    {"save_total_limit keep_checkpoints save_top_k", "checkpoint.keep"},
    {"log_interval logging_steps log_every log_every_n_steps", "log.interval"},
    {"tb wandb wandb_log report_to", "log.tensorboard"},
    {"device cuda gpu gpus mps accelerator", "", "Quern runs on CPUs; --threads N sets the number of cores"},
    {"compile", "", "Quern needs no compilation step"},
    {"optim optimizer_type optimizer_name", "optimizer.kind"},
    {"out_dir output_dir output save_dir", "", "the directory of the run is not a setting: use --run DIR"},
};

struct ValueSynonym {
  std::string_view words, value;
};

constexpr ValueSynonym kValues[] = {
    {"float32 float f32 32 single full", "fp32"},
    {"bfloat16 bfloat b16 brain 16", "bf16"},
    {"float16 half f16", "fp16"},
    {"character characters letter letters", "char"},
    {"gpt2 tiktoken sentencepiece subword word words", "bpe"},
    {"yes on 1 y t", "true"},
    {"no off 0 n f none", "false"},
    {"cos cosine_with_warmup", "cosine"},
    {"warmup_stable_decay trapezoidal trapezoid", "wsd"},
    {"rms rms_norm rmsn", "rmsnorm"},
    {"ln layer_norm", "layernorm"},
    {"rope", "rotary"},
    {"absolute", "learned"},
    {"gelu_new gelu_tanh gelu_pytorch_tanh", "gelu"},
    {"relu_squared squared_relu relusquared relu^2 relu_2", "relu2"},
    {"adam", "adamw"},
    {"const fixed", "constant"},
    {"shuffle shuffled", "random"},
    {"sequential streaming", "stream"},
    {"all full layer layers every", "every-layer"},
    {"off no never", "none"},
    {"gpt2-small gpt-2 124m", "gpt2"},
    {"nano micro mini", "tiny"},
};

bool contains_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

std::string lower(std::string_view word) {
  std::string text(word);
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// As names of settings are written: lower case, underscores.
std::string normalized(std::string_view word) {
  std::string text = lower(word);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

// Synonyms first: most who ask for epochs train on text, which data.epochs does not count.
std::optional<SettingAdvice> exact(std::string_view name) {
  for (const Synonym& synonym : kSettings) {
    if (contains_word(synonym.words, name)) {
      return SettingAdvice{std::string(synonym.setting), std::string(synonym.hint)};
    }
  }
  for (const Field& field : fields()) {
    if (field.name == name) return SettingAdvice{field.path(), {}};
  }
  return std::nullopt;
}

// Misspelled: the nearest of full names, of names without their table, and of synonyms.
SettingAdvice near(std::string_view path, std::string_view name) {
  std::vector<std::string> paths;
  for (const Field& field : fields()) paths.push_back(field.path());
  const std::string_view full = nearest(path, std::vector<std::string_view>(paths.begin(), paths.end()));
  if (!full.empty()) return {std::string(full), {}};
  std::vector<std::string_view> names;
  for (const Field& field : fields()) names.push_back(field.name);
  for (const Synonym& synonym : kSettings) {
    for (std::string_view words = synonym.words; !words.empty();) {
      const size_t end = std::min(words.find(' '), words.size());
      if (end > 3) names.push_back(words.substr(0, end));  // everything is near to a word of three letters
      words.remove_prefix(std::min(end + 1, words.size()));
    }
  }
  const std::string_view found = nearest(name, names);
  return found.empty() ? SettingAdvice{} : exact(found).value_or(SettingAdvice{});
}

}  // namespace

std::string SettingAdvice::text() const {
  if (setting.empty()) return hint.empty() ? std::string() : "; " + hint;
  return fmt::format("; did you mean {}?{}{}", setting, hint.empty() ? "" : " ", hint);
}

SettingAdvice advise_setting(std::string_view word, Match match) {
  const std::string path = normalized(word);
  const std::string_view name = std::string_view(path).substr(path.find('.') + 1);  // all of it without a dot
  if (const auto found = exact(name)) return *found;
  return match == Match::kExact ? SettingAdvice{} : near(path, name);
}

std::string_view advise_value(std::string_view word, std::span<const std::string_view> allowed) {
  const std::string text = lower(word);
  for (const std::string_view value : allowed) {
    if (value == text) return value;
  }
  for (const ValueSynonym& synonym : kValues) {
    const auto found = std::find(allowed.begin(), allowed.end(), synonym.value);
    if (found != allowed.end() && contains_word(synonym.words, text)) return *found;
  }
  return nearest(text, allowed);
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> allowed) {
  const std::string_view near = advise_value(word, allowed);
  return near.empty() ? std::string() : fmt::format("; did you mean {}?", near);
}

}  // namespace quern::train
