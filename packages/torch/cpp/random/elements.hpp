// The elements of a tensor in the order in which PyTorch's kernels visit them: that of memory.
#pragma once
#include <plait/half.h>
#include <plait/plait.hpp>

#include <algorithm>

namespace plait::pytorch {

inline int64_t numel(const DLTensor &t) {
  int64_t n = 1;
  for (int i = 0; i < t.ndim; i++) n *= t.shape[i];
  return n;
}

inline bool is_contiguous(const DLTensor &t) {
  int64_t stride = 1;
  for (int i = t.ndim; i-- > 0;) {
    if (t.shape[i] != 1 && t.strides[i] != stride) return false;
    stride *= t.shape[i];
  }
  return true;
}

// A tensor of the same shape whose elements lie in the order of their indices.
struct InOrder {
  int64_t strides[PLAIT_MAX_DIMS];
  DLTensor t;
  explicit InOrder(const DLTensor &like) : t(like) {
    int64_t stride = 1;
    for (int i = like.ndim; i-- > 0; stride *= like.shape[i]) strides[i] = stride;
    t.strides = strides;
  }
  InOrder(const InOrder &) = delete;
  InOrder &operator=(const InOrder &) = delete;
};

// The dimensions of several tensors of one shape, the innermost one first: that with the smallest
// stride in the first tensor.
class Walk {
 public:
  static constexpr int most = 4;

  template <class... Tensors>
  explicit Walk(const Tensors &...tensors) {
    const DLTensor *all[] = {&tensors...};
    n_ = sizeof...(tensors);
    const DLTensor &first = *all[0];
    for (int d = first.ndim; d-- > 0;) {
      if (first.shape[d] == 1) continue;
      int at = ndim_++;
      for (; at > 0 && first.strides[d] < strides_[at - 1][0]; at--) {
        shape_[at] = shape_[at - 1];
        std::copy(strides_[at - 1], strides_[at - 1] + most, strides_[at]);
      }
      shape_[at] = first.shape[d];
      for (int k = 0; k < n_; k++) strides_[at][k] = all[k]->strides[d];
    }
    count_ = numel(first);
  }

  // Calls `f(offsets)` for each element, with an offset in elements for each tensor.
  template <class F>
  void each(const F &f) const {
    int64_t index[PLAIT_MAX_DIMS] = {}, offset[most] = {};
    for (int64_t left = count_; left > 0; left--) {
      f(offset);
      for (int d = 0; d < ndim_; d++) {
        for (int k = 0; k < n_; k++) offset[k] += strides_[d][k];
        if (++index[d] < shape_[d]) break;
        for (int k = 0; k < n_; k++) offset[k] -= strides_[d][k] * shape_[d];
        index[d] = 0;
      }
    }
  }

 private:
  int n_, ndim_ = 0;
  int64_t shape_[PLAIT_MAX_DIMS], strides_[PLAIT_MAX_DIMS][most], count_;
};

// Elements of half precision compute as float.
struct Float16 {
  uint16_t bits;
  Float16() = default;
  Float16(float x) : bits(plait_float16_of_float(x)) {}  // NOLINT: as an arithmetic type
  operator float() const { return plait_float16_to_float(bits); }  // NOLINT
};
struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  BFloat16(float x) : bits(plait_bfloat16_of_float(x)) {}  // NOLINT
  operator float() const { return plait_bfloat16_to_float(bits); }  // NOLINT
};

template <class T>
struct Computes {  // the type in which elements compute
  using type = float;
};
template <>
struct Computes<double> {
  using type = double;
};

// Calls `f(T())` for the type of the elements; PLAIT_DECLINE for others.
template <class F>
plait_status for_floating(DLDataType d, const F &f) {
  switch (key(d)) {
    case key(dtype::float32): return f(float());
    case key(dtype::float64): return f(double());
    case key(dtype::float16): return f(Float16());
    case key(dtype::bfloat16): return f(BFloat16());
    default: return PLAIT_DECLINE;
  }
}
template <class F>
plait_status for_real(DLDataType d, const F &f) {
  switch (key(d)) {
    case key(dtype::bool_): return f(bool());
    case key(dtype::uint8): return f(uint8_t());
    case key(dtype::int8): return f(int8_t());
    case key(dtype::uint16): return f(uint16_t());
    case key(dtype::int16): return f(int16_t());
    case key(dtype::uint32): return f(uint32_t());
    case key(dtype::int32): return f(int32_t());
    case key(dtype::uint64): return f(uint64_t());
    case key(dtype::int64): return f(int64_t());
    default: return for_floating(d, f);
  }
}

}  // namespace plait::pytorch
