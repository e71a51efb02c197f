// Signals that ask a run to save and stop.
#pragma once

#include <atomic>

namespace quern::cli {

// Installs handlers: SIGINT (Ctrl-C), SIGTERM, SIGHUP (terminal closed) and SIGUSR1 (which mpirun passes on without
// ending the job, and which SLURM can send before the time is up) set the returned flag. SIGHUP stays ignored
// if it already was, as under nohup. A second SIGINT terminates the process immediately with exit code 130. The other
// signals may repeat, since shells and service managers send them twice. SIGPIPE is ignored: a closed output pipe must
// not end a run.
const std::atomic<bool>& stop_on_signals();

}  // namespace quern::cli
