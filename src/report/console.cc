#include "report/console.h"

#include <fmt/format.h>

#include "core/byte_size.h"
#include "core/clock.h"
#include "core/text.h"
#include "report/duration.h"
#include "report/numbers.h"
#include "report/plan_text.h"

namespace quern::report {
namespace {

constexpr double kRefresh = 0.1;     // seconds between updates of the line
constexpr double kForgetting = 0.9;  // decay per step of the displayed rate

}  // namespace

// A new activity is shown immediately, since it may take long without another call.
void Console::on_preparing(std::string_view what, uint64_t done, uint64_t total) {
  if (!options_.terminal) return;
  const double now = seconds_now();
  if (now - prepared_ < kRefresh && what == preparing_) return;
  prepared_ = now;
  preparing_ = what;
  out_.print("\r\033[K{}", printable(what));
  if (done > 0 && total > 0) out_.print(": {} %", 100 * done / total);
  out_.flush();
  open_line_ = true;
}

void Console::on_start(const train::RunStart& start) {
  start_ = start;
  limiter_ = Limiter(start.flops_per_token, utilisation_.peak_gflops());
  if (open_line_) out_.print("\r\033[K");
  open_line_ = false;
  print_size(start);
  if (start.plan != nullptr && options_.config != nullptr) {
    out_.print("{}\n{}", plan_summary(*start.plan, *options_.config), plan_table(*start.plan, *options_.config));
  }
  if (start.first_step > 1) out_.print("resuming at step {}\n", start.first_step);
  if (start.floor) {
    out_.print(
        "best achievable loss: {:.3f} on average over unseen text; memorized text and short samples can be lower\n",
        *start.floor);
  }
  out_.flush();
}

void Console::print_size(const train::RunStart& start) {
  const std::string trained =
      start.trainable == start.parameters ? "" : fmt::format(", {} of them trained", start.trainable);
  if (!start.game.empty()) {
    out_.print("{} parameters{}\n{}\n", start.parameters, trained, start.game);
    return;
  }
  if (start.chat.empty()) {
    out_.print("{} parameters{}; {}{} training tokens, {} held out, vocabulary {}\n", start.parameters, trained,
               start.estimated ? "about " : "", start.train_tokens, start.validation_tokens, start.vocabulary);
    return;
  }
  out_.print("{} parameters{}\n{}; {} tokens held out\n", start.parameters, trained, start.chat,
             start.validation_tokens);
  if (options_.config == nullptr) return;
  const train::RunConfig& config = *options_.config;
  const uint64_t tokens = config.sequences_per_step() * config.model.context;
  out_.print("{} sequences of {} tokens; {} steps of {}", start.rows, config.model.context, start.steps,
             config.sequences_per_step());
  // MFU of training on the machines that were measured: 0.6 to 0.85.
  const double flops = static_cast<double>((start.steps + 1 - start.first_step) * tokens) * start.flops_per_token;
  if (options_.peak_gflops > 0) out_.print(", about {}", duration(flops / (0.7e9 * options_.peak_gflops)));
  out_.print("\n");
}

void Console::on_settings(const train::SettingsReport& settings) {
  options_.interval = settings.config.log.interval;
  if (settings.change.empty()) return;
  finish();
  out_.print("{}\n", printable(settings.change));
  out_.flush();
}

// Empty without a peak. An impossible share is not shown: the peak is then unknown.
std::string Console::mfu_text(double tokens_per_s) {
  utilisation_.look_after(elapsed_);
  const std::optional<double> share = utilisation_.share(tokens_per_s * start_.flops_per_token * 1e-9);
  limiter_.set_peak(utilisation_.peak_gflops());
  if (share) return fmt::format("  MFU {:.0f} %", 100 * *share);
  return utilisation_.peak_gflops() > 0 ? "  MFU unknown (machine busy)" : "";
}

std::string Console::line(const train::StepReport& report) {
  const double rate = tokens_ / seconds_;
  std::string text = fmt::format("step {}/{}  loss {:.3f}", report.step, start_.steps, report.loss);
  if (validation_loss_) text += fmt::format("  validation {:.3f}", *validation_loss_);
  text += fmt::format("  {:.0f} tokens/s", rate);
  text += mfu_text(rate);
  if (!limiter_.name().empty()) text += fmt::format("  limit: {}", limiter_.name());
  const double left = static_cast<double>(start_.steps - report.step) * static_cast<double>(report.tokens) / rate;
  return text + fmt::format("  {} left", duration(left));
}

void Console::on_step(const train::StepReport& report) {
  loss_ = report.loss;
  if (!start_.game.empty()) return;  // shown with the games
  tokens_ = kForgetting * tokens_ + static_cast<double>(report.tokens);
  seconds_ = kForgetting * seconds_ + report.seconds;
  elapsed_ += report.seconds;
  limiter_.add(report);
  if (!report.finite && report.trouble == train::Trouble::kNone) {
    on_warning(fmt::format("step {}: the gradient is not finite; its update was skipped", report.step));
  }
  if (options_.terminal) {
    if (elapsed_ - shown_ < kRefresh && report.step != start_.steps) return;
    shown_ = elapsed_;
    out_.print("\r\033[K{}", line(report));
    open_line_ = true;
  } else if (report.step == start_.first_step || report.step % options_.interval == 0 || report.step == start_.steps) {
    out_.print("{}\n", line(report));
  }
  out_.flush();
}

void Console::on_incident(const train::IncidentReport& report) {
  const std::string done = report.action == train::Policy::kStop ? "stopped before its update"
                           : report.action == train::Policy::kSkip
                               ? "its update was skipped"
                               : fmt::format("back to step {}", report.resumed_after);
  on_warning(fmt::format("{}; {}", report.text, done));
  if (report.folder.empty()) return;
  out_.print("saved; to diagnose it, run `quern rerun-step {}`\n", printable(report.folder.string()));
}

void Console::on_validation(uint64_t step, double loss) {
  validation_loss_ = loss;
  if (!options_.terminal) out_.print("step {}/{}  validation {}\n", step, start_.steps, loss_text(loss));
}

void Console::on_end(const train::RunEnd& end) {
  finish();
  if (end.peak_bytes == 0) return;
  out_.print("memory: peak {}, planned {}\n", rounded_bytes(end.peak_bytes), rounded_bytes(end.planned_bytes));
}

std::string Console::line(const train::SelfplayReport& report) const {
  std::string text = fmt::format("step {}/{}", report.step, start_.steps);
  if (report.step > 0) text += fmt::format("  loss {:.3f}", loss_);
  text += fmt::format("  {} games", report.games);
  if (report.games_per_s > 0) text += fmt::format("  {:.1f} games/s", report.games_per_s);
  text += fmt::format("  {:.0f} positions/s  {:.0f} evaluations/s  buffer {}", report.moves_per_s,
                      report.evaluations_per_s, report.rows);
  if (elo_) text += fmt::format("  rating {:+.0f}", *elo_);
  if (report.seconds_left > 0) text += fmt::format("  {} left", duration(report.seconds_left));
  return text;
}

void Console::on_selfplay(const train::SelfplayReport& report) {
  if (options_.terminal) {
    out_.print("\r\033[K{}", line(report));
    open_line_ = true;
  } else if (report.complete) {
    out_.print("{}\n", line(report));
  }
  out_.flush();
}

void Console::on_rating(const train::RatingReport& report) {
  elo_ = report.elo;
  finish();
  out_.print("step {}: {:.1f} % of {} games against the network rated before; rating {:+.0f}\n", report.step,
             100 * report.score, report.games, report.elo);
  out_.flush();
}

void Console::on_warning(const std::string& text) {
  finish();
  out_.print("warning: {}\n", printable(text));
}

void Console::on_note(const std::string& text) {
  finish();
  out_.print("{}\n", printable(text));
}

void Console::finish() {
  if (open_line_) out_.print("\n");
  open_line_ = false;
  out_.flush();
}

}  // namespace quern::report
