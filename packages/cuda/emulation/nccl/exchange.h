// Memory in which the ranks of a communicator meet and give each other bytes.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "host/nccl_types.h"

namespace plait::cuda::nccl::emulation {

struct SharedMemory;

// Bytes for another rank, or from it. Both ranks must give the same `what` and number of bytes.
struct Message {
  int peer;
  char *data;
  size_t bytes;
  uint64_t what;
};

class Exchange {
 public:
  // Makes the memory and its name, for the first rank to call `join`.
  static bool make(UniqueId *id);
  // Waits until all ranks have come. NULL after an error, which `*error` explains.
  static std::shared_ptr<Exchange> join(const UniqueId &id, int size, int rank, int device,
                                        std::string *error);
  ~Exchange();

  int size() const { return size_; }
  int rank() const { return rank_; }
  // Moves all messages; those to or from one rank go in order. Where messages differ it waits
  // until `stop`, as NCCL does; that also ends it otherwise.
  bool run(const std::vector<Message> &sends, const std::vector<Message> &receives);
  // kInvalidUsage when another rank called another function.
  Result error() const { return error_; }
  // `run` ends, in this process.
  void stop() { stopped_ = true; }

 private:
  Exchange(SharedMemory *memory, size_t bytes, int size, int rank)
      : memory_(memory), bytes_(bytes), size_(size), rank_(rank) {}
  SharedMemory *const memory_;
  const size_t bytes_;
  const int size_, rank_;
  std::atomic<bool> stopped_{false};
  std::atomic<int> error_{kSuccess};
};

}  // namespace plait::cuda::nccl::emulation
