#include "stream.hpp"

#include <algorithm>

namespace plait::multiprocessing {
namespace {

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

}  // namespace

Stream::Stream(plait_tensor *const *tensors, uint32_t n) : tensors_(tensors, tensors + n) {
  for (const plait_tensor *t : tensors_) {
    total_ += uint64_t(numel(t));
    item_ = uint64_t(itemsize(t->dl.dtype));
  }
}

char *Stream::dense(uint64_t at, uint64_t count) const {
  for (plait_tensor *t : tensors_) {
    const auto n = uint64_t(numel(t));
    if (at < n)
      return count <= n - at && is_contiguous(t) ? static_cast<char *>(t->dl.data) + at * item_
                                                 : nullptr;
    at -= n;
  }
  return nullptr;
}

template <bool reading>
void Stream::move(uint64_t at, uint64_t count, char *packed) const {
  for (plait_tensor *t : tensors_) {
    const auto n = uint64_t(numel(t));
    if (at >= n) {
      at -= n;
      continue;
    }
    const uint64_t m = std::min(count, n - at);
    if (is_contiguous(t))
      copy<reading>(static_cast<char *>(t->dl.data) + at * item_, packed, m * item_);
    else
      move_strided<reading>(t, item_, at, m, packed);
    packed += m * item_;
    count -= m;
    at = 0;
    if (!count) return;
  }
}

template void Stream::move<true>(uint64_t, uint64_t, char *) const;
template void Stream::move<false>(uint64_t, uint64_t, char *) const;

}  // namespace plait::multiprocessing
