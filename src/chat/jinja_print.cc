#include "chat/jinja_print.h"

#include <cmath>

#include "chat/jinja_text.h"

namespace quern::chat {
namespace {

// The shortest digits that give the same number, with ".0" for whole ones, as Python shows them.
std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  std::string text = fmt::format("{}", number);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

class Printer {
 public:
  explicit Printer(Budget& budget) : budget_(budget) {}

  void print(const Value& value) {
    budget_.step();
    if (const Text* text = value.text()) {
      append_text(*text);
    } else if (const Sequence* sequence = value.sequence()) {
      print_sequence(*sequence);
    } else if (const Dict* dict = value.dict()) {
      print_dict(*dict);
    } else if (const Namespace* names = value.names()) {
      print_namespace(*names);
    } else {
      append(scalar(value));
    }
  }

  std::string take() { return std::move(text_); }

 private:
  void append(std::string_view text) {
    budget_.allocate(text.size());
    text_ += text;
  }

  void append_text(const Text& text) {
    budget_.allocate(text.bytes.size());
    append(text.is_markup ? "Markup(" + repr_text(text.bytes) + ")" : repr_text(text.bytes));
  }

  std::string scalar(const Value& value) const {
    if (value.is_undefined()) return "Undefined";
    if (value.is_none()) return "None";
    if (value.is_bool()) return is_true(value) ? "True" : "False";
    if (const auto integer = value.integer()) return fmt::format("{}", *integer);
    if (const auto number = value.number()) return number_text(*number);
    budget_.fail("a value of type '{}' cannot be printed", value.type());
  }

  void print_items(const Values& items) {
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) append(", ");
      print(items[i]);
    }
  }

  void print_sequence(const Sequence& sequence) {
    switch (sequence.kind) {
      case SequenceKind::kList:
        return print_between("[", sequence.items, "]");
      case SequenceKind::kTuple:
        return print_between("(", sequence.items, sequence.items.size() == 1 ? ",)" : ")");
      case SequenceKind::kKeys:
        return print_between("dict_keys([", sequence.items, "])");
      case SequenceKind::kValues:
        return print_between("dict_values([", sequence.items, "])");
      case SequenceKind::kItems:
        return print_between("dict_items([", sequence.items, "])");
      case SequenceKind::kRange:
        if (sequence.printed.empty()) budget_.fail("a slice of a range cannot be printed");
        return append(sequence.printed);
      case SequenceKind::kIterator:
        break;
    }
    budget_.fail("an iterator cannot be printed; the filter 'list' makes a list of it");
  }

  void print_between(std::string_view before, const Values& items, std::string_view after) {
    append(before);
    print_items(items);
    append(after);
  }

  void print_dict(const Dict& dict) {
    append("{");
    for (size_t i = 0; i < dict.entries().size(); ++i) {
      if (i > 0) append(", ");
      print(dict.entries()[i].first);
      append(": ");
      print(dict.entries()[i].second);
    }
    append("}");
  }

  // Namespaces are the only values that can contain themselves.
  void print_namespace(const Namespace& names) {
    if (++namespaces_ > kMaxNamespaces) budget_.fail("namespaces are nested more than {} levels deep", kMaxNamespaces);
    append("<Namespace ");
    print_dict(names.attributes);
    append(">");
    --namespaces_;
  }

  static constexpr size_t kMaxNamespaces = 8;  // each may contain a value of kMaxValueDepth levels

  Budget& budget_;
  std::string text_;
  size_t namespaces_ = 0;
};

}  // namespace

std::string to_text(Budget& budget, const Value& value) {
  if (value.is_undefined()) return "";
  if (const Text* text = value.text()) return budget.allocate(text->bytes.size()), text->bytes;
  Printer printer(budget);
  printer.print(value);
  return printer.take();
}

}  // namespace quern::chat
