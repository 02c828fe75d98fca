// The elements of a list of tensors, one after the other in C order.
#pragma once
#include <plait/plait.hpp>

#include <vector>

namespace plait::multiprocessing {

class Stream {
 public:
  Stream() = default;
  Stream(plait_tensor *const *tensors, uint32_t n);
  uint64_t elements() const { return total_; }
  // the memory of elements [at, at + count) if they lie densely, or nullptr
  char *dense(uint64_t at, uint64_t count) const;
  void read(uint64_t at, uint64_t count, char *to) const { move<true>(at, count, to); }
  void write(uint64_t at, uint64_t count, const char *from) const {
    move<false>(at, count, const_cast<char *>(from));
  }

 private:
  template <bool reading>
  void move(uint64_t at, uint64_t count, char *packed) const;
  std::vector<plait_tensor *> tensors_;
  uint64_t total_ = 0, item_ = 1;
};

}  // namespace plait::multiprocessing
