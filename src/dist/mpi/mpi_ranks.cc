// Ranks by MPI: only point-to-point messages, so that no library decides on an order of additions. Built as a module of
// its own (dist/connect.h).
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "dist/communicator.h"
#include "dist/mpi/module.h"
#include "dist/request_table.h"

namespace quern::dist {
namespace {

constexpr int kExitCode = 2;

// Errors of MPI end the job: they cannot be recovered from, and the default handler says what they are.
class MpiRanks : public Communicator {
 public:
  MpiRanks() {
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    rank_ = static_cast<size_t>(rank);
    size_ = static_cast<size_t>(size);
  }
  MpiRanks(const MpiRanks&) = delete;
  MpiRanks& operator=(const MpiRanks&) = delete;
  ~MpiRanks() override { aborted_ ? MPI_Abort(MPI_COMM_WORLD, kExitCode) : MPI_Finalize(); }

  size_t rank() const override { return rank_; }
  size_t size() const override { return size_; }
  uint32_t max_tag() const override {
    int* value = nullptr;
    int found = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&value), &found);
    return found != 0 ? static_cast<uint32_t>(*value) : 32767;  // what the standard guarantees
  }

  Request send(size_t to, uint32_t tag, std::span<const std::byte> data) override {
    const Request id = requests_.take();
    for_pieces(
        data.size(),
        [&](size_t at, int bytes, MPI_Request& request) {
          MPI_Isend(data.data() + at, bytes, MPI_BYTE, static_cast<int>(to), static_cast<int>(tag), MPI_COMM_WORLD,
                    &request);
        },
        requests_[id]);
    return id;
  }

  Request receive(size_t from, uint32_t tag, std::span<std::byte> data) override {
    const Request id = requests_.take();
    for_pieces(
        data.size(),
        [&](size_t at, int bytes, MPI_Request& request) {
          MPI_Irecv(data.data() + at, bytes, MPI_BYTE, static_cast<int>(from), static_cast<int>(tag), MPI_COMM_WORLD,
                    &request);
        },
        requests_[id]);
    return id;
  }

  bool done(Request request) override {
    int flag = 0;
    std::vector<MPI_Request>& parts = requests_[request];
    MPI_Testall(static_cast<int>(parts.size()), parts.data(), &flag, MPI_STATUSES_IGNORE);
    if (flag == 0) return false;
    requests_.give_back(request);
    return true;
  }

  void abort() noexcept override { aborted_ = true; }

 private:
  // MPI counts in ints.
  template <typename F>
  static void for_pieces(size_t bytes, F begin, std::vector<MPI_Request>& requests) {
    constexpr size_t kPiece = size_t{1} << 30;
    requests.clear();
    for (size_t at = 0; at < bytes; at += kPiece) {
      requests.push_back(MPI_REQUEST_NULL);
      begin(at, static_cast<int>(std::min(kPiece, bytes - at)), requests.back());
    }
  }

  size_t rank_ = 0, size_ = 0;
  RequestTable<std::vector<MPI_Request>> requests_;  // the pieces of each
  std::atomic<bool> aborted_{false};
};

std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all(text, static_cast<size_t>(length));
  return all.substr(0, all.find_first_of(",\n"));
}

Communicator* connect_ranks() {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  return provided >= MPI_THREAD_SERIALIZED ? new MpiRanks : nullptr;
}

}  // namespace
}  // namespace quern::dist

extern "C" const quern::dist::MpiModule quern_mpi_module = {quern::dist::kMpiModuleVersion, quern::dist::connect_ranks,
                                                            quern::dist::library_version};
