#include <cblas.h>

#include <sstream>
#include <string>

#include "benchmarks/peers/parts.h"

namespace quern::bench {
namespace {

void sgemm(bool ta, bool tb, size_t M, size_t N, size_t K, const float* a, size_t lda, const float* b, size_t ldb,
           float* c, size_t ldc) {
  const auto integer = [](size_t x) { return static_cast<blasint>(x); };
  cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, integer(M), integer(N),
              integer(K), 1.0f, a, integer(lda), b, integer(ldb), 0.0f, c, integer(ldc));
}

// openblas_get_config() starts "OpenBLAS 0.3.21 NO_LAPACKE ...".
const char* blas_name() {
  static const std::string name = [] {
    std::istringstream config(openblas_get_config());
    std::string library, version;
    config >> library >> version;
    return library + " " + version + " " + openblas_get_corename();
  }();
  return name.c_str();
}

}  // namespace

void fill_blas(Peers& peers) {
  openblas_set_num_threads(1);
  peers.sgemm = sgemm;
  peers.blas_name = blas_name;
}

}  // namespace quern::bench
