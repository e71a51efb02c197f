// A list of observers that acts as one.
#pragma once

#include <initializer_list>
#include <vector>

#include "run/observer.h"

namespace quern::train {

// Forwards every call to each observer, in order. The observers must outlive this object.
class Observers : public Observer {
 public:
  Observers() = default;
  Observers(std::initializer_list<Observer*> observers) : observers_(observers) {}
  void add(Observer& observer) { observers_.push_back(&observer); }

  void on_preparing(std::string_view what, uint64_t done, uint64_t total) override {
    call(&Observer::on_preparing, what, done, total);
  }
  void on_start(const RunStart& start) override { call(&Observer::on_start, start); }
  void on_settings(const SettingsReport& settings) override { call(&Observer::on_settings, settings); }
  void on_step(const StepReport& report) override { call(&Observer::on_step, report); }
  void on_health(const HealthReport& report) override { call(&Observer::on_health, report); }
  void on_incident(const IncidentReport& report) override { call(&Observer::on_incident, report); }
  void on_validation(uint64_t step, double loss) override { call(&Observer::on_validation, step, loss); }
  void on_selfplay(const SelfplayReport& report) override { call(&Observer::on_selfplay, report); }
  void on_rating(const RatingReport& report) override { call(&Observer::on_rating, report); }
  void on_sample(const SampleReport& report) override { call(&Observer::on_sample, report); }
  void on_weights(uint64_t step, std::span<const NamedValues> weights) override {
    call(&Observer::on_weights, step, weights);
  }
  void on_checkpoint(uint64_t step, const std::filesystem::path& path) override {
    call(&Observer::on_checkpoint, step, path);
  }
  void on_step_end(uint64_t step) override { call(&Observer::on_step_end, step); }
  void on_end(const RunEnd& end) override { call(&Observer::on_end, end); }
  void on_warning(const std::string& text) override { call(&Observer::on_warning, text); }
  void on_note(const std::string& text) override { call(&Observer::on_note, text); }

 private:
  template <typename Function, typename... Arguments>
  void call(Function function, const Arguments&... arguments) {
    for (Observer* observer : observers_) (observer->*function)(arguments...);
  }

  std::vector<Observer*> observers_;
};

}  // namespace quern::train
