#include "config/config_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "core/byte_size.h"
#include "core/team.h"
#include "nn/models/model_config.h"

namespace quern::train {
namespace {

constexpr uint64_t kMany = 1'000'000'000;  // the random streams use 32-bit step and sequence numbers
constexpr uint64_t kMaxSeed = UINT64_MAX;

// In the order of the enumerations in nn/layers/kinds.h.
constexpr std::array<std::string_view, 4> kFamilies = {"gpt2", "llama", "qwen2", "qwen3"};
constexpr std::array<std::string_view, 3> kRotaryScalings = {"none", "linear", "llama3"};
constexpr std::array<std::string_view, 2> kNorms = {"layernorm", "rmsnorm"};
constexpr std::array<std::string_view, 2> kPositions = {"learned", "rotary"};
constexpr std::array<std::string_view, 2> kActivations = {"gelu", "relu2"};
constexpr std::array<std::string_view, 2> kOptimizers = {"adamw", "muon"};
constexpr std::array<std::string_view, 4> kSchedules = {"cosine", "linear", "constant", "wsd"};
constexpr std::array<std::string_view, 3> kTokenizers = {"byte", "char", "bpe"};
constexpr std::array<std::string_view, 3> kSamplings = {"random", "epoch", "stream"};
constexpr std::array<std::string_view, 5> kEncodings = {"utf-8", "utf-16", "latin-1", "windows-1252", "bytes"};
constexpr std::array<std::string_view, 3> kPrecisions = {"fp32", "bf16", "fp16"};
constexpr std::array<std::string_view, 3> kPolicies = {"stop", "skip", "rollback"};
constexpr std::array<std::string_view, 2> kDataFormats = {"text", "chat"};
constexpr std::array<std::string_view, 4> kRecomputations = {"auto", "none", "every-layer", "sqrt"};
constexpr std::array<std::string_view, 3> kGames = {"tictactoe", "connect4", "chess"};
constexpr std::array<std::string_view, 2> kFlags = {"true", "false"};

// Accessor of a nested member, as a function with an address.
template <auto kTable, auto kMember>
auto& reach(RunConfig& config) {
  return config.*kTable.*kMember;
}

template <auto kTable, auto kMember>
constexpr WholeField whole(uint64_t min, uint64_t max) {
  return {reach<kTable, kMember>, min, max};
}
template <auto kTable, auto kMember>
constexpr RealField real(double min, double max) {
  return {reach<kTable, kMember>, min, max};
}
template <auto kTable, auto kMember>
constexpr FlagField flag() {
  return {reach<kTable, kMember>};
}
template <auto kTable, auto kMember>
constexpr ChoiceField choice(std::span<const std::string_view> names) {
  using Enum = std::remove_reference_t<decltype(std::declval<RunConfig&>().*kTable.*kMember)>;
  return {[](const RunConfig& config) { return static_cast<size_t>(config.*kTable.*kMember); },
          [](RunConfig& config, size_t i) { config.*kTable.*kMember = static_cast<Enum>(i); }, names};
}
template <auto kTable, auto kMember>
constexpr ListField list() {
  return {reach<kTable, kMember>};
}

constexpr TextField recompute() {
  return {[](const RunConfig& config) { return to_text(config.train.recompute); },
          [](RunConfig& config, std::string_view text) {
            const auto parsed = parse_recompute(text);
            if (parsed) config.train.recompute = *parsed;
            return parsed.has_value();
          },
          "auto, none, every-layer, sqrt or interval=K", kRecomputations};
}

// A word, or a file: whatever has a / in it or ends in .json. "./name" names any other file.
constexpr TextField tokenizer() {
  return {[](const RunConfig& config) { return tokenizer_text(config.data); },
          [](RunConfig& config, std::string_view text) {
            const auto found = std::find(kTokenizers.begin(), kTokenizers.end(), text);
            const bool word = found != kTokenizers.end();
            const bool file = text.find('/') != std::string_view::npos || text.ends_with(".json");
            if (!word && (!file || text.find('\0') != std::string_view::npos)) return false;
            config.data.tokenizer = word ? tokenizer_kind(text) : TokenizerKind::kFile;
            config.data.tokenizer_file = word ? std::string() : std::string(text);
            return true;
          },
          "byte, char, bpe, or a path such as ./tokenizer.json", kTokenizers};
}

constexpr TextField memory() {
  return {[](const RunConfig& config) { return exact_bytes(config.train.memory); },
          [](RunConfig& config, std::string_view text) {
            const auto parsed = parse_bytes(text);
            if (parsed) config.train.memory = *parsed;
            return parsed.has_value();
          },
          "a size such as 512M or 1.5G; 0: no limit"};
}

constexpr TextField init_from() {
  return {[](const RunConfig& config) { return config.init.from; },
          [](RunConfig& config, std::string_view text) {
            config.init.from = text;
            return text.find('\0') == std::string_view::npos;
          },
          "RUN, RUN@best, RUN@STEP or a checkpoint; empty: none"};
}

constexpr TextField weights_hash() {
  return {[](const RunConfig& config) { return config.init.weights_hash; },
          [](RunConfig& config, std::string_view text) {
            config.init.weights_hash = text;
            return text.empty() ||
                   (text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos);
          },
          "64 hexadecimal digits; empty: any"};
}

constexpr TextField chat_template() {
  return {[](const RunConfig& config) { return config.data.chat_template; },
          [](RunConfig& config, std::string_view text) {
            config.data.chat_template = text;
            return text.find('\0') == std::string_view::npos;
          },
          "chatml, or a file with a Jinja template; empty: the model's own"};
}

constexpr TextField game() {
  return {[](const RunConfig& config) { return config.selfplay.game; },
          [](RunConfig& config, std::string_view text) {
            const bool own = text.starts_with(kOwnGamePrefix) && is_game_name(text.substr(kOwnGamePrefix.size()));
            const bool known = text.empty() || text == kOwnPositions || own ||
                               std::find(kGames.begin(), kGames.end(), text) != kGames.end();
            if (known) config.selfplay.game = text;
            return known;
          },
          "tictactoe, connect4 or chess; empty: none", kGames};
}

constexpr TextField game_sizes() {
  return {[](const RunConfig& config) { return config.selfplay.sizes; },
          [](RunConfig& config, std::string_view text) {
            config.selfplay.sizes = text;
            return text.size() <= 200 &&
                   text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_=0123456789 ") == std::string_view::npos;
          },
          "planes=P rows=R columns=C actions=A max_moves=M"};
}

constexpr TextField sample_prompt() {
  return {[](const RunConfig& config) { return config.log.sample_prompt; },
          [](RunConfig& config, std::string_view text) {
            if (text.size() > 4000 || text.find('\0') != std::string_view::npos) return false;
            config.log.sample_prompt = text;
            return true;
          },
          "a text of at most 4000 bytes"};
}

constexpr TextField json_field() {
  return {[](const RunConfig& config) { return config.data.field; },
          [](RunConfig& config, std::string_view text) {
            if (text.empty() || text.size() > 1000 || text.find('\0') != std::string_view::npos) return false;
            config.data.field = text;
            return true;
          },
          "the name of a field, as text or meta.body"};
}

using C = RunConfig;
constexpr auto kModel = &C::model;
constexpr auto kTrain = &C::train;
constexpr auto kLora = &C::lora;
constexpr auto kOptimizer = &C::optimizer;
constexpr auto kData = &C::data;
constexpr auto kCheckpoint = &C::checkpoint;
constexpr auto kLog = &C::log;
constexpr auto kDiagnostics = &C::diagnostics;
constexpr auto kSelfplay = &C::selfplay;

constexpr Field kFields[] = {
    {"model", "family", "Architecture: GPT-2 or one of its variants below, Llama, Qwen2 or Qwen3.",
     choice<kModel, &C::Model::family>(kFamilies)},
    {"model", "layers", "Number of transformer blocks.", whole<kModel, &C::Model::layers>(1, nn::kMaxLayers)},
    {"model", "heads", "Attention heads per block; must divide the width, unless head_dim is set.",
     whole<kModel, &C::Model::heads>(1, nn::kMaxWidth)},
    {"model", "width", "Model width (embedding dimension).", whole<kModel, &C::Model::width>(1, nn::kMaxWidth)},
    {"model", "context", "Context length in tokens.", whole<kModel, &C::Model::context>(1, nn::kMaxContext)},
    {"model", "vocabulary", "Rows of the token table, at least the tokenizer's vocabulary size; 0: the same size.",
     whole<kModel, &C::Model::vocabulary>(0, nn::kMaxVocabulary)},
    {"model", "dropout", "Fraction of activations set to zero during training.",
     real<kModel, &C::Model::dropout>(0.0, 0.95)},
    {"model", "max_context",
     "Maximum number of positions, for generating longer texts than those of training; 0: the same as context.",
     whole<kModel, &C::Model::max_context>(0, nn::kMaxContext)},
    {"model", "inner_width",
     "Width of the feed-forward layers; 0: 4 x width, or for Llama 8/3 x width, rounded up to a multiple of 32.",
     whole<kModel, &C::Model::inner_width>(0, nn::kMaxInnerWidth)},
    {"model", "kv_heads", "Llama, Qwen: heads of keys and values, a divisor of heads; 0: as many as heads.",
     whole<kModel, &C::Model::kv_heads>(0, nn::kMaxWidth)},
    {"model", "head_dim", "Llama, Qwen: width of a head; 0: width / heads.",
     whole<kModel, &C::Model::head_dim>(0, nn::kMaxWidth)},
    {"model", "attention_bias", "Llama, Qwen3: biases in attention; Qwen2 always has those of queries, keys, values.",
     flag<kModel, &C::Model::attention_bias>()},
    {"model", "mlp_bias", "Llama: biases of the feed-forward layers.", flag<kModel, &C::Model::mlp_bias>()},
    {"model", "norm_epsilon", "Added to the variance or the mean square before the root.",
     real<kModel, &C::Model::norm_epsilon>(1e-12, 1.0)},
    {"model", "rope_base", "Rotary positions: base of the frequencies (rope_theta).",
     real<kModel, &C::Model::rope_base>(1.0, 1e12)},
    {"model", "rope_scaling", "Rotary positions: how frequencies are scaled for long contexts.",
     choice<kModel, &C::Model::rope_scaling>(kRotaryScalings)},
    {"model", "rope_factor", "linear, llama3: what frequencies are divided by.",
     real<kModel, &C::Model::rope_factor>(1e-3, 1e6)},
    {"model", "rope_low_frequency", "llama3: frequencies with fewer periods in the original context are divided.",
     real<kModel, &C::Model::rope_low_frequency>(1e-3, 1e6)},
    {"model", "rope_high_frequency", "llama3: frequencies with more periods in the original context are unchanged.",
     real<kModel, &C::Model::rope_high_frequency>(1e-3, 1e6)},
    {"model", "rope_original_context", "llama3: the context before scaling.",
     whole<kModel, &C::Model::rope_original_context>(1, nn::kMaxContext)},
    {"model", "norm", "GPT-2: LayerNorm with weight and bias, or RMS norm without parameters.",
     choice<kModel, &C::Model::norm>(kNorms)},
    {"model", "positions", "GPT-2: learned, a table added to the embedding, or rotary, which rotates queries and keys.",
     choice<kModel, &C::Model::positions>(kPositions)},
    {"model", "activation", "GPT-2: of the feed-forward layer; relu2: max(x, 0) squared.",
     choice<kModel, &C::Model::activation>(kActivations)},
    {"model", "qk_norm", "GPT-2: RMS norm of each head's queries and keys.", flag<kModel, &C::Model::qk_norm>()},
    {"model", "zero_projections",
     "Start with zeros in the projections into the residual stream, and in an output matrix of its own.",
     flag<kModel, &C::Model::zero_projections>()},
    {"model", "embedding_deviation",
     "Standard deviation of the token table at the start; 0.3 helps a tied model to copy names and words.",
     real<kModel, &C::Model::embedding_deviation>(0.0001, 10.0)},
    {"model", "tied_output", "Use the token table as the output matrix; false: a matrix of its own.",
     flag<kModel, &C::Model::tied_output>()},
    {"model", "logit_cap", "GPT-2: soft cap of the logits: z becomes cap * tanh(z / cap); 0: none.",
     real<kModel, &C::Model::logit_cap>(0.0, 1e6)},

    {"train", "steps", "Number of weight updates.", whole<kTrain, &C::Train::steps>(0, kMany)},
    {"train", "batch", "Sequences per round.", whole<kTrain, &C::Train::batch>(1, 1'000'000)},
    {"train", "accumulation",
     "Rounds per update (gradient accumulation): k rounds of n sequences are bit-identical to one of k x n.",
     whole<kTrain, &C::Train::accumulation>(1, 1'000'000)},
    {"train", "lanes",
     "Parts of a step whose gradients are summed separately, then added by a fixed tree; 0: enough for all ranks.",
     whole<kTrain, &C::Train::lanes>(0, kMaxLanes)},
    {"train", "seed", "Seed of all random numbers. Put values of 2^63 and above in quotation marks.",
     whole<kTrain, &C::Train::seed>(0, kMaxSeed)},
    {"train", "precision",
     "Storage format of matrices for products and of activations for backward; arithmetic and gradients are fp32.",
     choice<kTrain, &C::Train::precision>(kPrecisions)},
    {"train", "recompute", "Activations to recompute in backward. Does not affect the result.", recompute()},
    {"train", "memory", "Memory limit of the run. Does not affect the result.", memory()},
    {"train", "threads", "Worker threads; 0: all cores. Does not affect the result.",
     whole<kTrain, &C::Train::threads>(0, kMaxThreads)},
    {"train", "pin", "Pin each thread to one core. For machines that run nothing else.",
     flag<kTrain, &C::Train::pin>()},
    {"train", "validation_interval",
     "Steps between evaluations on held-out text, in addition to one at every checkpoint; 0: only at the end.",
     whole<kTrain, &C::Train::validation_interval>(0, kMany)},
    {"train", "validation_batches", "Batches per evaluation; 0: all of the held-out text.",
     whole<kTrain, &C::Train::validation_batches>(0, kMany)},

    {"train", "freeze",
     "Parameters that are not trained, by parts of their names, as in [\"wte\", \"h.0\"]; empty: none.",
     list<kTrain, &C::Train::freeze>()},

    {"lora", "rank", "Low-rank adapters (LoRA): their rank. The rest of the model is not trained; 0: train all of it.",
     whole<kLora, &C::Lora::rank>(0, nn::kMaxAdapterRank)},
    {"lora", "alpha", "Scale of adapters, which is alpha / rank.", real<kLora, &C::Lora::alpha>(1e-6, 1e6)},
    {"lora", "dropout", "Dropout of the input of adapters.", real<kLora, &C::Lora::dropout>(0.0, 0.99)},
    {"lora", "rslora", "Rank-stabilized: the scale is alpha / sqrt(rank).", flag<kLora, &C::Lora::rslora>()},
    {"lora", "targets", "Linear layers with an adapter, as in [\"q_proj\", \"v_proj\"]; all: all but the output.",
     list<kLora, &C::Lora::targets>()},

    {"optimizer", "kind", "Update rule. muon: Muon for the matrices of the blocks, AdamW for all other parameters.",
     choice<kOptimizer, &C::Optimizer::kind>(kOptimizers)},
    {"optimizer", "rate", "Learning rate after warm-up.", real<kOptimizer, &C::Optimizer::rate>(0.0, 10.0)},
    {"optimizer", "min_rate",
     "Learning rate at the last step; not used by the constant schedule. If not given, a lower rate makes it rate / "
     "10.",
     real<kOptimizer, &C::Optimizer::min_rate>(0.0, 10.0)},
    {"optimizer", "warmup", "Steps over which the learning rate rises from 0.",
     whole<kOptimizer, &C::Optimizer::warmup>(0, kMany)},
    {"optimizer", "schedule",
     "Learning rate schedule after warm-up; wsd (warm-up, stable, decay): constant, then linear to min_rate.",
     choice<kOptimizer, &C::Optimizer::schedule>(kSchedules)},
    {"optimizer", "cooldown", "wsd: fraction of the steps, at the end, over which the learning rate falls.",
     real<kOptimizer, &C::Optimizer::cooldown>(0.0, 1.0)},
    {"optimizer", "beta1", "AdamW: decay of the running mean of gradients.",
     real<kOptimizer, &C::Optimizer::beta1>(0.0, 0.999999)},
    {"optimizer", "beta2", "AdamW: decay of the running mean of squared gradients.",
     real<kOptimizer, &C::Optimizer::beta2>(0.0, 0.999999)},
    {"optimizer", "epsilon", "AdamW: added to the square root of the mean of squared gradients.",
     real<kOptimizer, &C::Optimizer::epsilon>(1e-30, 1.0)},
    {"optimizer", "weight_decay", "Decay of matrices towards 0, multiplied by their learning rate.",
     real<kOptimizer, &C::Optimizer::weight_decay>(0.0, 100.0)},
    {"optimizer", "clip", "Gradient clipping: maximum gradient norm over all weights; 0: no clipping.",
     real<kOptimizer, &C::Optimizer::clip>(0.0, 1e9)},
    {"optimizer", "matrix_rate", "Muon: learning rate of matrices after warm-up; follows the schedule of rate.",
     real<kOptimizer, &C::Optimizer::matrix_rate>(0.0, 10.0)},
    {"optimizer", "momentum", "Muon: decay of the running mean of gradients.",
     real<kOptimizer, &C::Optimizer::momentum>(0.0, 0.999999)},
    {"optimizer", "momentum_warmup", "Muon: updates over which the momentum rises from 0.85.",
     whole<kOptimizer, &C::Optimizer::momentum_warmup>(0, kMany)},

    {"data", "paths",
     "Text files, directories of text files, JSON Lines files, or token shards; empty: generated stories.",
     list<kData, &C::Data::paths>()},
    {"data", "stories_bytes", "Size of the generated stories in bytes.",
     whole<kData, &C::Data::stories_bytes>(1000, 100'000'000'000)},
    {"data", "tokenizer", "What a token is: a byte, a character, or a word piece learned from the text.", tokenizer()},
    {"data", "vocabulary", "Vocabulary size of bpe: 256 bytes, the learned tokens and <|endoftext|>.",
     whole<kData, &C::Data::vocabulary>(256, 1'000'000)},
    {"data", "validation_fraction", "Fraction of the text that is held out, taken from its end.",
     real<kData, &C::Data::validation_fraction>(0.0, 0.9)},
    {"data", "sampling",
     "random: anywhere. epoch: every block once per epoch. stream: in order, tokenized during training.",
     choice<kData, &C::Data::sampling>(kSamplings)},
    {"data", "encoding", "Encoding of text files. utf-8 includes UTF-16 with a byte order mark; bytes: unchecked.",
     choice<kData, &C::Data::encoding>(kEncodings)},
    {"data", "field", "The field of JSON Lines with the text; a dot stands for a field of a field.", json_field()},
    {"data", "shuffle", "Streams: sequences in a window that is shuffled, held in memory twice; 0: in order.",
     whole<kData, &C::Data::shuffle>(0, 1'000'000)},
    {"data", "sources",
     "Instead of paths, a mixture: each sequence is drawn by weight, as from [\"books/ 3\", \"code/ 1\"].",
     list<kData, &C::Data::sources>()},
    {"data", "broadcast",
     "Of several ranks, only rank 0 reads the text and sends the others their sequences. Does not affect the result.",
     flag<kData, &C::Data::broadcast>()},

    {"data", "format",
     "chat: JSON Lines with conversations, of which the assistant's turns are trained; text: anything else.",
     choice<kData, &C::Data::format>(kDataFormats)},
    {"data", "packing", "chat: several short conversations share a sequence, without seeing each other.",
     flag<kData, &C::Data::packing>()},
    {"data", "epochs", "chat: how often each conversation is used; 0: as often as there are steps.",
     whole<kData, &C::Data::epochs>(0, 1'000'000)},
    {"data", "chat_template", "chat: how conversations are written; resuming keeps what the run has.", chat_template()},

    {"checkpoint", "interval", "Steps between checkpoints; 0: only at the end.",
     whole<kCheckpoint, &C::Checkpoint::interval>(0, kMany)},
    {"checkpoint", "keep", "Number of most recent checkpoints to keep.",
     whole<kCheckpoint, &C::Checkpoint::keep>(1, kMany)},
    {"checkpoint", "keep_best", "Also keep the checkpoint with the lowest validation loss.",
     flag<kCheckpoint, &C::Checkpoint::keep_best>()},

    {"log", "interval", "Steps between lines in metrics.jsonl, and between points in TensorBoard.",
     whole<kLog, &C::Log::interval>(1, kMany)},
    {"log", "tensorboard", "Also write TensorBoard event files, to the subdirectory tensorboard of the run.",
     flag<kLog, &C::Log::tensorboard>()},
    {"log", "histogram_interval", "Steps between histograms of all weights in TensorBoard; 0: none.",
     whole<kLog, &C::Log::histogram_interval>(0, kMany)},
    {"log", "sample_interval", "Steps between texts that the model writes, for the dashboard; 0: none.",
     whole<kLog, &C::Log::sample_interval>(0, kMany)},
    {"log", "sample_prompt", "What these texts continue, or answer; empty: a line feed, or a question of the data.",
     sample_prompt()},

    {"diagnostics", "health_interval",
     "Steps between gradient statistics of every tensor; 0: never. Does not affect the result.",
     whole<kDiagnostics, &C::Diagnostics::health_interval>(0, kMany)},
    {"diagnostics", "spike_z",
     "A loss this many standard deviations above the previous ones is an incident; 0: only if not finite.",
     real<kDiagnostics, &C::Diagnostics::spike_z>(0.0, 1e6)},
    {"diagnostics", "policy", "After an incident: stop, skip the update, or roll back to the last checkpoint.",
     choice<kDiagnostics, &C::Diagnostics::policy>(kPolicies)},
    {"diagnostics", "incident_limit", "Maximum number of incidents to skip or roll back; one more stops the run.",
     whole<kDiagnostics, &C::Diagnostics::incident_limit>(0, kMany)},

    {"selfplay", "game", "The board game to learn, as `quern selfplay GAME` sets it.", game()},
    {"selfplay", "sizes",
     "Of a game that is written in Python (python:NAME), or of its positions, as the package records them.",
     game_sizes()},
    {"selfplay", "synchronous",
     "Weights are published at fixed numbers of games, so that a run has one result; false: as fast as possible.",
     flag<kSelfplay, &C::Selfplay::synchronous>()},
    {"selfplay", "processes", "Actors: processes instead of threads, for synchronous=false; 0: threads.",
     whole<kSelfplay, &C::Selfplay::processes>(0, 1024)},
    {"selfplay", "generation_games", "Games that are played with the same weights.",
     whole<kSelfplay, &C::Selfplay::generation_games>(1, 100'000'000)},
    {"selfplay", "generation_steps", "Weight updates after each generation of games.",
     whole<kSelfplay, &C::Selfplay::generation_steps>(1, 100'000'000)},
    {"selfplay", "lag", "Generations by which the weights that play are older than those being trained; 1: no waiting.",
     whole<kSelfplay, &C::Selfplay::lag>(0, 16)},
    {"selfplay", "rows", "Positions in the replay buffer.", whole<kSelfplay, &C::Selfplay::rows>(1, kMany)},
    {"selfplay", "samples_per_row", "How often a position is trained on, for synchronous=false; 0: no limit.",
     real<kSelfplay, &C::Selfplay::samples_per_row>(0.0, 1e6)},
    {"selfplay", "symmetries", "Train positions as seen under a random symmetry of the game.",
     flag<kSelfplay, &C::Selfplay::symmetries>()},
    {"selfplay", "value_weight", "Weight of the loss of win, draw and loss, beside that of the moves.",
     real<kSelfplay, &C::Selfplay::value_weight>(0.0, 1000.0)},
    {"selfplay", "games_at_once", "Games of each actor, whose positions are evaluated together.",
     whole<kSelfplay, &C::Selfplay::games_at_once>(1, 65'536)},
    {"selfplay", "cache", "Evaluations that each actor remembers. Does not affect the result.",
     whole<kSelfplay, &C::Selfplay::cache>(0, kMany)},
    {"selfplay", "simulations", "Of a full search, which adds a position to the replay buffer.",
     whole<kSelfplay, &C::Selfplay::simulations>(1, 1'000'000)},
    {"selfplay", "cheap_simulations", "Of the other searches.",
     whole<kSelfplay, &C::Selfplay::cheap_simulations>(1, 1'000'000)},
    {"selfplay", "full_share", "Share of the moves with a full search.",
     real<kSelfplay, &C::Selfplay::full_share>(0.001, 1.0)},
    {"selfplay", "c_puct", "How far a search trusts the network's moves against the values that it finds.",
     real<kSelfplay, &C::Selfplay::c_puct>(0.0, 1000.0)},
    {"selfplay", "fpu_reduction", "How much worse than its position an unvisited move is taken to be.",
     real<kSelfplay, &C::Selfplay::fpu_reduction>(0.0, 2.0)},
    {"selfplay", "reuse_tree", "Keep what a search found about the move that was made.",
     flag<kSelfplay, &C::Selfplay::reuse_tree>()},
    {"selfplay", "noise_share", "Share of Dirichlet noise in the moves at the root of a full search.",
     real<kSelfplay, &C::Selfplay::noise_share>(0.0, 1.0)},
    {"selfplay", "noise_alpha", "Concentration of that noise; about 10 / (usual number of legal moves).",
     real<kSelfplay, &C::Selfplay::noise_alpha>(0.001, 1000.0)},
    {"selfplay", "temperature", "First moves of a game are drawn by visits ^ (1 / temperature).",
     real<kSelfplay, &C::Selfplay::temperature>(0.01, 100.0)},
    {"selfplay", "temperature_moves", "How many; later ones are the most visited.",
     whole<kSelfplay, &C::Selfplay::temperature_moves>(0, 100'000)},
    {"selfplay", "opening_share", "Share of the games that begin with random moves, for more varied positions.",
     real<kSelfplay, &C::Selfplay::opening_share>(0.0, 1.0)},
    {"selfplay", "opening_moves", "Of these games: the number of random moves is drawn from 0 to this.",
     whole<kSelfplay, &C::Selfplay::opening_moves>(0, 100'000)},
    {"selfplay", "winning_share", "Share of the games that begin in a random game, where a move wins at once.",
     real<kSelfplay, &C::Selfplay::winning_share>(0.0, 1.0)},
    {"selfplay", "resign_below", "Resign below this expected result, from -1 (loss) to 1; -1: never.",
     real<kSelfplay, &C::Selfplay::resign_below>(-1.0, 0.0)},
    {"selfplay", "resign_share", "Share of the games in which a player may resign.",
     real<kSelfplay, &C::Selfplay::resign_share>(0.0, 1.0)},
    {"selfplay", "root_value_share", "Share of the search's result, instead of the game's, in the outcome to learn.",
     real<kSelfplay, &C::Selfplay::root_value_share>(0.0, 1.0)},
    {"selfplay", "rating_interval", "Generations between ratings of the network; 0: never. Does not affect the result.",
     whole<kSelfplay, &C::Selfplay::rating_interval>(0, kMany)},
    {"selfplay", "rating_games",
     "Games of a rating, against the network at the rating before. Does not affect the result.",
     whole<kSelfplay, &C::Selfplay::rating_games>(0, 1'000'000)},

    {"dist", "check_interval",
     "Steps between comparisons of the weights of all ranks; 0: never. Does not affect the result.",
     whole<&C::dist, &C::Dist::check_interval>(0, kMany)},

    {"init", "from", "The trained model that a new run starts from, as --from sets it.", init_from()},
    {"init", "weights_hash", "The weights hash of that model, recorded when the run starts.", weights_hash()},
};

}  // namespace

std::string_view family_name(nn::Family family) { return kFamilies[static_cast<size_t>(family)]; }

std::string_view precision_name(Precision precision) { return kPrecisions[static_cast<size_t>(precision)]; }

std::vector<std::string_view> tokenizer_kind_names() { return {kTokenizers.begin(), kTokenizers.end()}; }

TokenizerKind tokenizer_kind(std::string_view name) {
  return static_cast<TokenizerKind>(std::find(kTokenizers.begin(), kTokenizers.end(), name) - kTokenizers.begin());
}

std::string tokenizer_text(const RunConfig::Data& data) {
  if (data.tokenizer == TokenizerKind::kFile) return data.tokenizer_file;
  return std::string(kTokenizers[static_cast<size_t>(data.tokenizer)]);
}

std::string_view policy_name(Policy policy) { return kPolicies[static_cast<size_t>(policy)]; }

std::span<const Field> fields() { return kFields; }

std::span<const std::string_view> words_of(const Field& field) {
  if (const auto* choice = std::get_if<ChoiceField>(&field.kind)) return choice->names;
  if (const auto* text = std::get_if<TextField>(&field.kind)) return text->words;
  if (std::holds_alternative<FlagField>(field.kind)) return kFlags;
  return {};
}

std::string join_choices(std::span<const std::string_view> names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

std::string allowed_values(const Field& field) {
  struct Visitor {
    std::string operator()(const WholeField& f) const { return fmt::format("{} to {}", f.min, f.max); }
    std::string operator()(const RealField& f) const { return fmt::format("{} to {}", f.min, f.max); }
    std::string operator()(const FlagField&) const { return "true or false"; }
    std::string operator()(const ChoiceField& f) const { return join_choices(f.names); }
    std::string operator()(const TextField& f) const { return std::string(f.form); }
    std::string operator()(const ListField&) const { return {}; }
  };
  return std::visit(Visitor{}, field.kind);
}

}  // namespace quern::train
