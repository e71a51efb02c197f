// The workloads of `quern bench`: one function per file of this folder.
#pragma once

#include "benchmarks/harness.h"

namespace quern::bench {

void bench_gemm(Context& context);
void bench_adamw(Context& context);
void bench_layernorm(Context& context);
void bench_rmsnorm(Context& context);
void bench_attention(Context& context);
void bench_gelu(Context& context);
void bench_vector_ops(Context& context);
void bench_queue(Context& context);
void bench_replay(Context& context);
void bench_replay_episodes(Context& context);
void bench_replay_parallel(Context& context);
void bench_replay_snapshot(Context& context);
void bench_tokenize(Context& context);
void bench_selfplay(Context& context);
void bench_dashboard(Context& context);

}  // namespace quern::bench
