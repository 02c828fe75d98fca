#ifndef PLAIT_OPTIM_CURSOR_HPP
#define PLAIT_OPTIM_CURSOR_HPP
#include <plait/plait.hpp>

namespace plait::optim {

// Walks a tensor in C order from a linear position on.
class Cursor {
 public:
  Cursor(const plait_tensor *t, int64_t start)
      : t_(t), at_(static_cast<char *>(t->dl.data)), size_(t->dl.dtype.bits / 8) {
    for (int d = t->dl.ndim - 1; d >= 0; d--) {
      index_[d] = start % t->dl.shape[d];
      start /= t->dl.shape[d];
      at_ += index_[d] * t->dl.strides[d] * size_;
    }
  }
  char *at() const { return at_; }
  void next() {
    for (int d = t_->dl.ndim - 1; d >= 0; d--) {
      at_ += t_->dl.strides[d] * size_;
      if (++index_[d] < t_->dl.shape[d]) return;
      at_ -= t_->dl.strides[d] * t_->dl.shape[d] * size_;
      index_[d] = 0;
    }
  }

 private:
  const plait_tensor *t_;
  char *at_;
  int64_t size_;
  int64_t index_[PLAIT_MAX_DIMS];
};

}  // namespace plait::optim
#endif  // PLAIT_OPTIM_CURSOR_HPP
