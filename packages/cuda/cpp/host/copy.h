// Copies and fills that kernels of other families use, and operands as a kernel wants them.
#pragma once
#include "host/launch.h"

namespace plait::cuda {

// `from` broadcasts to the shape of `to`; dtypes and strides may differ. The memory does not
// overlap, or is the same. A tensor of the CPU has one element.
plait_status copy_tensor(const plait_call *c, const DLTensor *to, const DLTensor *from);

// `value`, rounded to the dtype of `to`, for all elements; it may be a 0-d tensor.
plait_status fill_tensor(const plait_call *c, const DLTensor *to, const plait_value &value);
plait_status fill_tensor(const plait_call *c, const DLTensor *to, int64_t value);

// The element of a 0-d tensor of the CPU. `parts` has room for those of a complex number.
void read_number(const DLTensor *t, plait_value *to, double *parts);

// Writes 0, 1, 2 and so on.
plait_status number_elements(const plait_call *c, int64_t *to, int64_t n);

// The strides of a tensor in C order, in elements.
inline void dense_strides(const DLTensor *t, int64_t *strides) {
  int64_t step = 1;
  for (int d = t->ndim - 1; d >= 0; d--) {
    strides[d] = step;
    step *= t->shape[d];
  }
}

// Whether elements lie at multiples of their size, as kernels that move whole elements need it. A
// complex tensor that is a view of real numbers may not.
inline bool is_aligned(const DLTensor *t) {
  return reinterpret_cast<uintptr_t>(t->data) % uintptr_t(size_of(kind(t->dtype))) == 0;
}

// The parts of complex numbers as an array of twice as many real ones.
struct Parts {
  DLTensor t;
  int64_t shape[PLAIT_MAX_DIMS + 1], strides[PLAIT_MAX_DIMS + 1];
  explicit Parts(const DLTensor *z) : t(*z) {
    for (int d = 0; d < z->ndim; d++) shape[d] = z->shape[d], strides[d] = 2 * z->strides[d];
    shape[z->ndim] = 2, strides[z->ndim] = 1;
    t.ndim = z->ndim + 1;
    t.dtype = DLDataType{kDLFloat, uint8_t(z->dtype.bits / 2), 1};
    t.shape = shape;
    t.strides = strides;
  }
  Parts(const Parts &) = delete;
  Parts &operator=(const Parts &) = delete;
};

// An operand in memory of the device: the tensor itself, or a copy. A 0-d tensor of the CPU is
// always copied; others are if they are not aligned, must be in C order, or have another dtype.
class Operand {
 public:
  plait_status take(const plait_call *c, const DLTensor *t);        // any strides
  plait_status take_dense(const plait_call *c, const DLTensor *t);  // in C order
  plait_status take_as(const plait_call *c, const DLTensor *t, DLDataType dtype);  // in C order
  const DLTensor *tensor() const { return &tensor_; }
  template <class T = void>
  const T *data() const {
    return static_cast<const T *>(tensor_.data);
  }

 private:
  DLTensor tensor_{};
  int64_t strides_[PLAIT_MAX_DIMS + 1];
  DeviceWorkspace space_;
};

// A result in C order: its own memory, or other memory that `finish` copies from.
class DenseResult {
 public:
  plait_status take(const plait_call *c, const DLTensor *t);
  plait_status finish(const plait_call *c) const;
  template <class T = void>
  T *data() const {
    return static_cast<T *>(tensor_.data);
  }

 protected:
  plait_status allocate(const plait_call *c);
  const DLTensor *to_ = nullptr;
  DLTensor tensor_{};

 private:
  int64_t strides_[PLAIT_MAX_DIMS + 1];
  DeviceWorkspace space_;
};

// What is written in part: the tensor itself, with any strides, or an aligned copy of its values
// that `finish` copies back.
class AlignedTarget : public DenseResult {
 public:
  plait_status take(const plait_call *c, const DLTensor *t);
  const DLTensor *tensor() const { return &tensor_; }
};

// Makes elements of up to 16 bytes of several neighbouring ones, where all operands of a finished
// plan allow it. Returns their size.
inline int join_elements(Plan *p, int item) {
  const int last = p->ndim - 1;
  uint64_t all = uint64_t(p->size[last]) * uint64_t(item);
  for (int k = 0; k < p->operands; k++) {
    if (p->stride[k][last] != item) return item;
    all |= reinterpret_cast<uintptr_t>(p->data[k]);
    for (int d = 0; d < last; d++) all |= uint64_t(p->stride[k][d]);
  }
  int wide = 16;
  while (all % uint64_t(wide)) wide /= 2;
  if (wide <= item) return item;
  p->size[last] /= wide / item;
  p->numel /= wide / item;
  for (int k = 0; k < p->operands; k++) p->stride[k][last] = wide;
  return wide;
}

inline plait_status too_many_dimensions(const plait_call *c) {
  return PLAIT_FAIL(c, PLAIT_NOT_IMPLEMENTED,
                    "operands of more than %d dimensions that cannot be merged have no kernel", 12);
}

}  // namespace plait::cuda
