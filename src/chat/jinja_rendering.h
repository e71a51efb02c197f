// The state of one rendering: variables, output, and what may still be used.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "chat/jinja_budget.h"
#include "chat/jinja_value.h"

namespace quern::chat {

// Names are views of the template or of the caller's variables, both of which outlive a rendering.
struct Scope {
  std::shared_ptr<const Scope> outer;
  std::unordered_map<std::string_view, Value> values;
};

class Rendering : public Budget {
 public:
  // `time`: what strftime_now() takes for the current time, in UTC; the real one if there is none.
  Rendering(const std::string& name, const nlohmann::ordered_json& variables,
            const std::optional<std::time_t>& time = std::nullopt);
  ~Rendering();
  Rendering(const Rendering&) = delete;
  Rendering& operator=(const Rendering&) = delete;

  // A variable, a function that every template has, or undefined.
  Value find(std::string_view name) const;
  void assign(std::string_view name, Value value) { scope_->values[name] = std::move(value); }

  void write(std::string_view text);
  std::string take_output() { return std::move(output_); }

  // Values that can refer to themselves are registered, because such a circle would never be freed: the end of the
  // rendering breaks it.
  Value make_namespace(Dict attributes);
  std::shared_ptr<Scope> capture_scope();

  // The date and time for strftime_now().
  std::tm now() const;

  // Variables that are assigned during its lifetime are dropped after it. Inside of `outer` if it is given.
  class NewScope {
   public:
    explicit NewScope(Rendering& rendering) : NewScope(rendering, rendering.scope_) {}
    NewScope(Rendering& rendering, std::shared_ptr<const Scope> outer);
    ~NewScope() { rendering_.scope_ = std::move(previous_); }
    NewScope(const NewScope&) = delete;
    NewScope& operator=(const NewScope&) = delete;

   private:
    Rendering& rendering_;
    std::shared_ptr<Scope> previous_;
  };

  // Collects what is written during its lifetime.
  class Capture {
   public:
    explicit Capture(Rendering& rendering) : rendering_(rendering) { std::swap(rendering.output_, text_); }
    ~Capture() { std::swap(rendering_.output_, text_); }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    std::string take() { return std::move(rendering_.output_); }

   private:
    Rendering& rendering_;
    std::string text_;  // what was written before
  };

  // Evaluations inside each other; fails if there are too many.
  class Level {
   public:
    explicit Level(Rendering& rendering) : rendering_(rendering) {
      rendering.step();
      if (rendering.level_ >= kMaxCallDepth) rendering.fail("calls are nested more than {} levels deep", kMaxCallDepth);
      ++rendering.level_;
    }
    ~Level() { --rendering_.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Rendering& rendering_;
  };

 private:
  std::shared_ptr<Scope> scope_ = std::make_shared<Scope>();
  std::string output_;
  std::optional<std::time_t> time_;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
  std::vector<std::shared_ptr<Scope>> captured_;
  size_t level_ = 0;
};

// The functions that every template can call: range(), namespace(), dict(), raise_exception(), strftime_now(). Returns
// undefined for other names.
Value find_function(const Budget& budget, std::string_view name);

// object.name and object[key].
Value attribute_of(Rendering& rendering, const Value& object, std::string_view name);
Value item_of(Rendering& rendering, const Value& object, const Value& key);

}  // namespace quern::chat
