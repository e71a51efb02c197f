#include "chat.h"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>

#include "arguments.h"
#include "core/error.h"
#include "core/json.h"
#include "formats/chat_template_files.h"
#include "generate/chat_model.h"
#include "generation_arguments.h"
#include "model_docs.h"
#include "numbers.h"
#include "texts.h"

namespace quern::python {
namespace {

using train::TrainedModel;
using Json = nlohmann::ordered_json;

constexpr const char* kMessages = "[chat] messages";

std::string field_of(const py::dict& message, const char* name) {
  if (!message.contains(name) || !py::isinstance<py::str>(message[name])) {
    throw Error("{}: expected \"role\" and \"content\" with a str each, found {}", kMessages, shown(message));
  }
  return text_from(message[name], kMessages);
}

Json messages_from(const py::object& messages) {
  const bool is_list = py::isinstance<py::list>(messages) || py::isinstance<py::tuple>(messages);
  if (!is_list || py::len(messages) == 0) {
    throw Error("{}: expected a list of messages such as {{\"role\": \"user\", \"content\": \"Hello\"}}, found {}",
                kMessages, shown(messages));
  }
  Json all = Json::array();
  for (const py::handle one : messages) {
    const py::dict message = dict_from(one, kMessages);
    all.push_back({{"role", field_of(message, "role")}, {"content", field_of(message, "content")}});
  }
  return all;
}

chat::ChatTemplate template_from(const TrainedModel& trained, const py::object& chosen) {
  const std::string name = chosen.is_none() ? "" : path_from(chosen, "[chat] chat_template").string();
  std::optional<chat::ChatTemplate> found = formats::choose_chat_template(name, trained.folder);
  if (found) return std::move(*found);
  throw Error("[chat] {}: expected a chat template, found none; choose chat_template=\"chatml\" or a file",
              trained.folder.string());
}

std::string answer(const TrainedModel& trained, const Json& messages, const chat::ChatTemplate& chat_template,
                   const ChatOptions& options) {
  const py::gil_scoped_release unlocked;
  ChatModel model(*trained.model, trained.needed_tokenizer(), chat_template, options);
  return model
      .answer(messages, 0,
              [](const std::string&) {
                check_signals();
                return true;
              })
      .text;
}

}  // namespace

void bind_chat(py::class_<TrainedModel, std::shared_ptr<TrainedModel>>& model) {
  const GenerateOptions usual;
  model.def(
      "chat",
      [](const std::shared_ptr<TrainedModel>& trained, const py::object& messages, const py::object& chat_template,
         const py::object& tokens, py::object temperature, py::object top_k, py::object top_p, py::object min_p,
         py::object repeat_penalty, py::object repeat_window, py::object seed, const py::object& threads) {
        const SamplingArguments sampling{temperature, top_k, top_p, min_p, repeat_penalty, repeat_window, seed};
        const ChatOptions options{.generate = {.max_tokens = token_limit_from(tokens),
                                               .sampling = sampling_from(sampling),
                                               .end_tokens = trained->end_tokens},
                                  .threads = threads_from(threads),
                                  .on_block = [](size_t, size_t) { check_signals(); }};
        return answer(*trained, messages_from(messages), template_from(*trained, chat_template), options);
      },
      kChatDoc, py::arg("messages"), py::kw_only(), py::arg("chat_template") = py::none(),
      py::arg("tokens") = usual.max_tokens, py::arg("temperature") = usual.sampling.temperature,
      py::arg("top_k") = usual.sampling.top_k, py::arg("top_p") = usual.sampling.top_p,
      py::arg("min_p") = usual.sampling.min_p, py::arg("repeat_penalty") = usual.sampling.repeat_penalty,
      py::arg("repeat_window") = usual.sampling.repeat_window, py::arg("seed") = usual.sampling.seed,
      py::arg("threads") = py::none());
}

}  // namespace quern::python
