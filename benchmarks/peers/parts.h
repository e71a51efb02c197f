// The parts of the peers module, one file each, combined in module.cc.
#pragma once

#include "benchmarks/peers/peers.h"

namespace quern::bench {

void fill_blas(Peers& peers);
void fill_layernorm(Peers& peers);
QueuePeer mutex_queue();
QueuePeer tbb_queue();
QueuePeer moodycamel_queue();

}  // namespace quern::bench
