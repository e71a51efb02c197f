#include "core/error.h"

#include "core/text.h"

namespace quern {

Error::Error(const std::string& message) : std::runtime_error(printable(message)) {}

}  // namespace quern
