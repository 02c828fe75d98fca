// The elements of a list of tensors, one after the other in C order.
#ifndef PLAIT_COLLECTIVES_STREAM_HPP
#define PLAIT_COLLECTIVES_STREAM_HPP
#include <algorithm>
#include <cstdint>
#include <vector>

#include "../plait.hpp"

namespace plait::collectives {
namespace streaming {

template <bool reading>
void copy(char *element, char *packed, uint64_t bytes) {
  if (reading)
    std::memcpy(packed, element, bytes);
  else
    std::memcpy(element, packed, bytes);
}

// Elements [at, at + count) of one tensor, by whole rows of the last dimension where they are
// dense.
template <bool reading>
void move_strided(const plait_tensor *t, uint64_t item, uint64_t at, uint64_t count, char *packed) {
  const int last = t->dl.ndim - 1;
  int64_t index[PLAIT_MAX_DIMS];
  uint64_t rest = at;
  for (int i = last; i >= 0; i--) {
    index[i] = int64_t(rest % uint64_t(t->dl.shape[i]));
    rest /= uint64_t(t->dl.shape[i]);
  }
  const bool dense = t->dl.strides[last] == 1;
  while (count) {
    int64_t offset = 0;
    for (int i = 0; i <= last; i++) offset += index[i] * t->dl.strides[i];
    char *element = static_cast<char *>(t->dl.data) + offset * int64_t(item);
    const uint64_t run = dense ? std::min(count, uint64_t(t->dl.shape[last] - index[last])) : 1;
    copy<reading>(element, packed, run * item);
    packed += run * item;
    count -= run;
    index[last] += int64_t(run);
    for (int i = last; i > 0 && index[i] == t->dl.shape[i]; i--) {
      index[i] = 0;
      index[i - 1]++;
    }
  }
}

}  // namespace streaming

class Stream {
 public:
  Stream() = default;
  Stream(plait_tensor *const *tensors, uint32_t n) : tensors_(tensors, tensors + n) {
    for (const plait_tensor *t : tensors_) {
      total_ += uint64_t(numel(t));
      item_ = uint64_t(itemsize(t->dl.dtype));
    }
  }
  uint64_t elements() const { return total_; }
  void read(uint64_t at, uint64_t count, char *to) const { move<true>(at, count, to); }
  void write(uint64_t at, uint64_t count, const char *from) const {
    move<false>(at, count, const_cast<char *>(from));
  }
  // Where elements [at, at + count) lie, if they lie one behind the other; else nullptr.
  char *place(uint64_t at, uint64_t count) const {
    for (const plait_tensor *t : tensors_) {
      const auto n = uint64_t(numel(t));
      if (at >= n) {
        at -= n;
        continue;
      }
      if (at + count > n || !is_contiguous(t)) return nullptr;
      return static_cast<char *>(t->dl.data) + at * item_;
    }
    return nullptr;
  }

 private:
  template <bool reading>
  void move(uint64_t at, uint64_t count, char *packed) const {
    for (plait_tensor *t : tensors_) {
      const auto n = uint64_t(numel(t));
      if (at >= n) {
        at -= n;
        continue;
      }
      const uint64_t m = std::min(count, n - at);
      if (is_contiguous(t))
        streaming::copy<reading>(static_cast<char *>(t->dl.data) + at * item_, packed, m * item_);
      else
        streaming::move_strided<reading>(t, item_, at, m, packed);
      packed += m * item_;
      count -= m;
      at = 0;
      if (!count) return;
    }
  }
  std::vector<plait_tensor *> tensors_;
  uint64_t total_ = 0, item_ = 1;
};

}  // namespace plait::collectives
#endif  // PLAIT_COLLECTIVES_STREAM_HPP
