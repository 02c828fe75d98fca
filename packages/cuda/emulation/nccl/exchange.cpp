#include "emulation/nccl/exchange.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>

namespace plait::cuda::nccl::emulation {
namespace {

constexpr int kMostRanks = 64;
constexpr size_t kRing = 64 << 10;
constexpr double kPatience = 60;  // seconds to wait for other ranks
const char kMagic[8] = "emnccl1";

struct Name {  // in a UniqueId: a file of a process
  char magic[8];
  int32_t process, file;
};

// Bytes on their way from one rank to another.
struct Ring {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> taken;
  char data[kRing];

  size_t put(const char *from, size_t n) {
    const uint64_t at = written.load(std::memory_order_relaxed);
    const uint64_t room = kRing - (at - taken.load(std::memory_order_acquire));
    n = std::min({n, size_t(room), size_t(kRing - at % kRing)});
    memcpy(data + at % kRing, from, n);
    written.store(at + n, std::memory_order_release);
    return n;
  }
  size_t take(char *to, size_t n) {
    const uint64_t at = taken.load(std::memory_order_relaxed);
    const uint64_t there = written.load(std::memory_order_acquire) - at;
    n = std::min({n, size_t(there), size_t(kRing - at % kRing)});
    memcpy(to, data + at % kRing, n);
    taken.store(at + n, std::memory_order_release);
    return n;
  }
};

void pause_for(long microseconds) {
  const timespec pause = {0, microseconds * 1000};
  nanosleep(&pause, nullptr);
}
double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

}  // namespace

struct SharedMemory {
  std::atomic<int32_t> joined;
  std::atomic<int32_t> device[kMostRanks];  // plus one; 0: the rank has not come
  Ring rings[1];                            // size x size: [from][to]
};

namespace {

size_t bytes_for(int size) { return sizeof(SharedMemory) + sizeof(Ring) * size_t(size * size); }

// The messages to or from one rank.
class Line {
 public:
  void add(const Message &m) { messages_.push_back(m); }
  bool is_empty() const { return messages_.empty(); }

  // Each moves what can be moved now, and returns whether that was anything.
  bool send(Ring &ring) {
    return move(true, [&](char *data, size_t n) { return ring.put(data, n); });
  }
  bool receive(Ring &ring) {
    return move(false, [&](char *data, size_t n) { return ring.take(data, n); });
  }
  // Whether a message came that is not expected, and that of another function.
  bool differs() const { return differs_; }
  bool is_of_other_function() const { return differs_ && head_.what != own_.what; }

 private:
  struct Head {  // it goes before the bytes of a message
    uint64_t what, bytes;
  };
  template <class F>
  bool move(bool sends, F &&step) {
    bool moved = false;
    while (!messages_.empty() && !differs_) {
      const Message &m = messages_.front();
      if (!at_) own_ = {m.what, m.bytes};
      if (!at_ && sends) head_ = own_;
      const bool in_head = at_ < sizeof head_;
      char *const data =
          in_head ? reinterpret_cast<char *>(&head_) + at_ : m.data + (at_ - sizeof head_);
      const size_t left = in_head ? sizeof head_ - at_ : m.bytes - (at_ - sizeof head_);
      const size_t n = left ? step(data, left) : 0;
      moved |= n > 0;
      at_ += n;
      if (at_ == sizeof head_ && memcmp(&head_, &own_, sizeof own_)) differs_ = true;
      if (at_ == sizeof head_ + m.bytes) {
        messages_.pop_front();
        at_ = 0;
        moved = true;
      } else if (!n) {
        break;
      }
    }
    return moved;
  }
  std::deque<Message> messages_;
  Head own_{}, head_{};
  size_t at_ = 0;
  bool differs_ = false;
};

}  // namespace

bool Exchange::make(UniqueId *id) {
  const int file = memfd_create("nccl", MFD_CLOEXEC);
  if (file < 0) return false;
  Name name{};
  memcpy(name.magic, kMagic, sizeof kMagic);
  name.process = getpid(), name.file = file;
  *id = UniqueId{};
  memcpy(id->bytes, &name, sizeof name);
  return true;
}

std::shared_ptr<Exchange> Exchange::join(const UniqueId &id, int size, int rank, int device,
                                         std::string *error) {
  const auto fail = [&](const std::string &text) {
    *error = text;
    return nullptr;
  };
  Name name;
  memcpy(&name, id.bytes, sizeof name);
  if (memcmp(name.magic, kMagic, sizeof kMagic)) return fail("the identity is not one of NCCL");
  if (size < 1 || size > kMostRanks || rank < 0 || rank >= size)
    return fail("the rank is outside of the communicator");
  const bool is_own = name.process == getpid();
  const std::string path =
      "/proc/" + std::to_string(name.process) + "/fd/" + std::to_string(name.file);
  const int file = is_own ? name.file : open(path.c_str(), O_RDWR | O_CLOEXEC);
  const size_t bytes = bytes_for(size);
  void *memory = MAP_FAILED;
  if (file >= 0 && ftruncate(file, off_t(bytes)) == 0)
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file >= 0 && !is_own) close(file);
  if (memory == MAP_FAILED) return fail("the memory of the communicator cannot be opened");
  auto *shared = static_cast<SharedMemory *>(memory);
  std::shared_ptr<Exchange> result(new Exchange(shared, bytes, size, rank));
  shared->device[rank] = device + 1;
  shared->joined++;
  const double until = now() + kPatience;
  while (shared->joined < size && now() < until) pause_for(200);
  if (is_own) close(file);  // all have it open
  if (shared->joined < size) return fail("a rank did not come");
  for (int a = 0; a < size; a++)
    for (int b = 0; b < a; b++)
      if (shared->device[a] == shared->device[b])
        return fail("Duplicate GPU detected : rank " + std::to_string(a) + " and rank " +
                    std::to_string(b) + " both on CUDA device " +
                    std::to_string(shared->device[a] - 1));
  return result;
}

Exchange::~Exchange() { munmap(memory_, bytes_); }

bool Exchange::run(const std::vector<Message> &sends, const std::vector<Message> &receives) {
  const auto n = size_t(size_);
  std::vector<Line> out(n), in(n);
  for (const Message &m : sends) out[size_t(m.peer)].add(m);
  for (const Message &m : receives) in[size_t(m.peer)].add(m);
  Ring *const rings = memory_->rings;
  for (double last = now();;) {
    bool moved = false, empty = true;
    for (int r = 0; r < size_; r++) {
      Line &to = out[size_t(r)], &from = in[size_t(r)];
      moved |= to.send(rings[rank_ * size_ + r]);
      moved |= from.receive(rings[r * size_ + rank_]);
      if (from.is_of_other_function()) error_ = kInvalidUsage;
      empty = empty && to.is_empty() && from.is_empty();
    }
    if (empty) return true;
    if (stopped_) return false;
    if (moved)
      last = now();
    else
      pause_for(now() - last < 0.01 ? 20 : 1000);
  }
}

}  // namespace plait::cuda::nccl::emulation
