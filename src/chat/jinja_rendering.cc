#include "chat/jinja_rendering.h"

namespace quern::chat {

Rendering::Rendering(const std::string& name, const nlohmann::ordered_json& variables,
                     const std::optional<std::time_t>& time)
    : Budget(name), time_(time) {
  if (!variables.is_object()) fail("expected an object with variables, found {}", variables.type_name());
  for (const auto& entry : variables.get_ref<const nlohmann::ordered_json::object_t&>()) {
    scope_->values[entry.first] = make_value(*this, entry.second);
  }
}

Rendering::~Rendering() {
  for (const auto& names : namespaces_) names->attributes = Dict();
  for (const auto& scope : captured_) scope->values.clear();
}

std::tm Rendering::now() const {
  std::tm date{};
  if (time_) {
    gmtime_r(&*time_, &date);
  } else {
    const std::time_t current = std::time(nullptr);
    localtime_r(&current, &date);
  }
  return date;
}

Value Rendering::find(std::string_view name) const {
  for (const Scope* scope = scope_.get(); scope; scope = scope->outer.get()) {
    const auto found = scope->values.find(name);
    if (found != scope->values.end()) return found->second;
  }
  return find_function(*this, name);
}

void Rendering::write(std::string_view text) {
  allocate(text.size());
  if (text.size() > kMaxOutputBytes - output_.size()) fail("writes more than {} MiB", kMaxOutputBytes >> 20);
  output_ += text;
}

Value Rendering::make_namespace(Dict attributes) {
  allocate(sizeof(Namespace) + attributes.entries().size() * sizeof(Value) * 2);
  namespaces_.push_back(std::make_shared<Namespace>(Namespace{std::move(attributes)}));
  return Value(namespaces_.back());
}

std::shared_ptr<Scope> Rendering::capture_scope() {
  allocate(sizeof(Scope));
  captured_.push_back(scope_);
  return scope_;
}

Rendering::NewScope::NewScope(Rendering& rendering, std::shared_ptr<const Scope> outer)
    : rendering_(rendering), previous_(rendering.scope_) {
  rendering.scope_ = std::make_shared<Scope>();
  rendering.scope_->outer = std::move(outer);
}

}  // namespace quern::chat
