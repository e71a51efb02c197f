// The signals that ask a run to save and end.
#pragma once

#include <atomic>

namespace quern::cli {

// From here on SIGINT (Ctrl-C), SIGTERM and SIGHUP (the terminal was closed) set the flag that is returned. SIGHUP
// stays ignored where it was, as under nohup. A second SIGINT ends the process at once, with exit code 130; the others
// may come as often as they like, since shells and service managers send them twice. SIGPIPE is ignored: output that
// nobody reads is no reason to lose a run.
const std::atomic<bool>& stop_on_signals();

}  // namespace quern::cli
