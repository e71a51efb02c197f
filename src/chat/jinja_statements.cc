// Execution of statements.
#include "chat/jinja_statements.h"

#include <algorithm>

#include "chat/jinja_print.h"
#include "chat/jinja_rendering.h"

namespace quern::chat {

Flow Statement::run(Rendering& rendering) const {
  const Rendering::Level level(rendering);
  rendering.at_line(line);
  return execute(rendering);
}

Flow run_block(const Block& block, Rendering& rendering) {
  for (const StatementPtr& statement : block) {
    const Flow flow = statement->run(rendering);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Flow Data::execute(Rendering& rendering) const {
  rendering.write(text);
  return Flow::kNext;
}

Flow Print::execute(Rendering& rendering) const {
  const Value value = expression->value(rendering);
  rendering.at_line(line);
  value.text() ? rendering.write(value.text()->bytes) : rendering.write(to_text(rendering, value));
  return Flow::kNext;
}

Flow If::execute(Rendering& rendering) const {
  for (const Branch& branch : branches) {
    if (!branch.condition || is_true(branch.condition->value(rendering))) return run_block(branch.block, rendering);
  }
  return Flow::kNext;
}

void Target::assign(Rendering& rendering, const Value& value) const {
  if (!attribute.empty()) {
    const Value object = rendering.find(name);
    if (!object.names()) rendering.fail("cannot assign to an attribute of '{}', which is not a namespace", name);
    object.names()->attributes.set(rendering, Value(attribute), value);
  } else if (!name.empty()) {
    rendering.assign(name, value);
  } else {
    const Values items = items_of(rendering, value);
    if (items.size() != parts.size()) rendering.fail("expected {} values, found {}", parts.size(), items.size());
    for (size_t i = 0; i < parts.size(); ++i) parts[i].assign(rendering, items[i]);
  }
}

Values For::select_items(Rendering& rendering) const {
  const Value iterated = items->value(rendering);
  rendering.at_line(line);
  Values found = items_of(rendering, iterated);
  if (!condition) return found;
  Values selected;
  for (Value& item : found) {
    const Rendering::NewScope scope(rendering);
    target.assign(rendering, item);
    if (is_true(condition->value(rendering))) selected.push_back(std::move(item));
  }
  return selected;
}

Flow For::execute(Rendering& rendering) const {
  const auto found = std::make_shared<const Values>(select_items(rendering));
  if (found->empty()) {
    const Rendering::NewScope scope(rendering);
    return run_block(otherwise, rendering);
  }
  const size_t depth = depth_of(rendering, *found) + 1;
  for (size_t i = 0; i < found->size(); ++i) {
    rendering.step(4);  // a new scope takes as long as four evaluations
    const Rendering::NewScope scope(rendering);
    rendering.assign("loop", Value(std::make_shared<const Loop>(Loop{found, i, depth})));
    target.assign(rendering, (*found)[i]);
    if (run_block(body, rendering) == Flow::kBreak) break;
  }
  return Flow::kNext;
}

Flow Set::execute(Rendering& rendering) const {
  const Value value = expression->value(rendering);
  rendering.at_line(line);
  target.assign(rendering, value);
  return Flow::kNext;
}

Flow Captured::execute(Rendering& rendering) const {
  std::string text;
  {
    const Rendering::NewScope scope(rendering);
    Rendering::Capture capture(rendering);
    run_block(body, rendering);
    text = capture.take();
  }
  Value value = make_text(rendering, std::move(text));
  for (const auto& filter : filters) value = filter->apply(rendering, value);
  rendering.at_line(line);
  if (has_target) {
    target.assign(rendering, value);
  } else {
    rendering.write(to_text(rendering, value));
  }
  return Flow::kNext;
}

Flow Scoped::execute(Rendering& rendering) const {
  Values values;
  for (const auto& [target, expression] : variables) values.push_back(expression->value(rendering));
  const Rendering::NewScope scope(rendering);
  for (size_t i = 0; i < values.size(); ++i) variables[i].first.assign(rendering, values[i]);
  return run_block(body, rendering);
}

Flow Macro::execute(Rendering& rendering) const {
  const auto call_here = [this, scope = rendering.capture_scope()](Rendering& caller, const Arguments& arguments) {
    const Rendering::Level level(caller);
    const Rendering::NewScope inner(caller, scope);
    return call(caller, arguments);
  };
  rendering.assign(name, Value(std::make_shared<const Callable>(Callable{call_here})));
  return Flow::kNext;
}

Value Macro::call(Rendering& rendering, const Arguments& arguments) const {
  bind(rendering, arguments);
  Rendering::Capture capture(rendering);
  run_block(body, rendering);
  return make_text(rendering, capture.take());
}

void Macro::bind(Rendering& rendering, const Arguments& arguments) const {
  const size_t given = arguments.positional.size();
  if (given > parameters.size()) {
    rendering.fail("the macro '{}' takes at most {} arguments, found {}", name, parameters.size(), given);
  }
  for (const auto& [keyword, value] : arguments.keywords) {
    const auto found = std::find(parameters.begin(), parameters.end(), keyword);
    const auto position = static_cast<size_t>(found - parameters.begin());
    if (found == parameters.end()) rendering.fail("the macro '{}' has no parameter '{}'", name, keyword);
    if (position < given) rendering.fail("the macro '{}' is given its parameter '{}' twice", name, keyword);
    rendering.assign(*found, value);
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    const bool is_keyword = std::any_of(arguments.keywords.begin(), arguments.keywords.end(),
                                        [&](const auto& keyword) { return keyword.first == parameters[i]; });
    if (is_keyword) continue;
    rendering.assign(parameters[i], i < given ? arguments.positional[i] : default_of(rendering, i));
  }
}

Value Macro::default_of(Rendering& rendering, size_t parameter) const {
  const size_t without = parameters.size() - defaults.size();
  if (parameter >= without) return defaults[parameter - without]->value(rendering);
  return Value::undefined(fmt::format("parameter '{}' was not provided", parameters[parameter]));
}

}  // namespace quern::chat
