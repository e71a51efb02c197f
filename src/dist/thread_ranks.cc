#include "dist/thread_ranks.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <thread>

#include "core/error.h"
#include "dist/request_table.h"

namespace quern::dist {
namespace {

// A message on its way. Belongs to the sender, which reuses it once it is taken.
enum class Stage : int { kPosted, kCopied, kTaken };
struct Message {
  size_t from = 0;
  uint32_t tag = 0;
  std::span<const std::byte> data;
  Message* next = nullptr;
  std::atomic<Stage> stage{Stage::kTaken};
};

}  // namespace

class ThreadRanks::Rank : public Communicator {
 public:
  Rank(ThreadRanks& all, size_t rank) : all_(all), rank_(rank) {}

  size_t rank() const override { return rank_; }
  size_t size() const override { return all_.ranks_.size(); }

  Request send(size_t to, uint32_t tag, std::span<const std::byte> data) override {
    const Request id = requests_.take();
    Pending& pending = requests_[id];
    pending.receives = false;
    pending.message.from = rank_;
    pending.message.tag = tag;
    pending.message.data = data;
    pending.message.stage.store(Stage::kPosted, std::memory_order_relaxed);
    all_.ranks_[to]->post(&pending.message);
    return id;
  }

  Request receive(size_t from, uint32_t tag, std::span<std::byte> data) override {
    const Request id = requests_.take();
    Pending& pending = requests_[id];
    pending.receives = true;
    pending.message.from = from;
    pending.message.tag = tag;
    pending.out = data;
    pending.complete = false;
    posted_.push_back(id);
    return id;
  }

  bool done(Request request) override {
    if (all_.aborted_.load(std::memory_order_acquire)) {
      withdraw();
      throw Error("[dist] another rank has failed");
    }
    const Pending& pending = requests_[request];
    if (pending.receives) {
      deliver();
      if (!pending.complete) return false;
    } else if (pending.message.stage.load(std::memory_order_acquire) != Stage::kTaken) {
      return false;
    }
    requests_.give_back(request);
    return true;
  }

  void abort() noexcept override { all_.aborted_.store(true, std::memory_order_release); }

 private:
  struct Pending {
    bool receives = false;
    Message message;  // of a receive: only sender and tag
    std::span<std::byte> out;
    bool complete = false;  // of a receive
  };

  // Called by the sender.
  void post(Message* message) {
    message->next = inbox_.load(std::memory_order_relaxed);
    while (
        !inbox_.compare_exchange_weak(message->next, message, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }

  // Gives every message to the oldest receive that waits for it. If receives chose a message when they are asked, two
  // with the same tag could exchange theirs.
  void deliver() {
    collect();
    std::erase_if(arrived_, [&](Message* message) {
      const auto found = std::find_if(posted_.begin(), posted_.end(), [&](Request id) {
        const Message& wanted = requests_[id].message;
        return wanted.from == message->from && wanted.tag == message->tag;
      });
      if (found == posted_.end()) return false;
      Stage posted = Stage::kPosted;
      if (!message->stage.compare_exchange_strong(posted, Stage::kCopied, std::memory_order_acquire)) return true;
      Pending& receive = requests_[*found];
      posted_.erase(found);
      assert(message->data.size() == receive.out.size());
      std::memcpy(receive.out.data(), message->data.data(), receive.out.size());
      receive.complete = true;
      message->stage.store(Stage::kTaken, std::memory_order_release);
      return true;
    });
  }

  // The data of this rank's messages is about to go: no other rank may begin to copy it.
  void withdraw() {
    for (Pending& pending : requests_.all()) {
      Stage posted = Stage::kPosted;
      if (pending.receives || pending.message.stage.compare_exchange_strong(posted, Stage::kTaken)) continue;
      while (pending.message.stage.load(std::memory_order_acquire) == Stage::kCopied) std::this_thread::yield();
    }
  }

  // Moves the inbox, newest first, to the end of arrived_, oldest first.
  void collect() {
    const size_t before = arrived_.size();
    for (Message* m = inbox_.exchange(nullptr, std::memory_order_acquire); m != nullptr; m = m->next) {
      arrived_.push_back(m);
    }
    std::reverse(arrived_.begin() + static_cast<std::ptrdiff_t>(before), arrived_.end());
  }

  ThreadRanks& all_;
  size_t rank_;
  RequestTable<Pending> requests_;
  std::vector<Request> posted_;  // receives in their order
  std::vector<Message*> arrived_;
  std::atomic<Message*> inbox_{nullptr};
};

ThreadRanks::ThreadRanks(size_t ranks) {
  for (size_t rank = 0; rank < ranks; ++rank) ranks_.push_back(std::make_unique<Rank>(*this, rank));
}

ThreadRanks::~ThreadRanks() = default;

Communicator& ThreadRanks::operator[](size_t rank) { return *ranks_[rank]; }

}  // namespace quern::dist
