// The words of plait_ops/words/ in C++; translated shape functions, derivatives and decompositions
// call them. They have the meaning and the error texts of the Python versions; tests compare the
// two.
#pragma once
#include "fft_words.hpp"
#include "linear_words.hpp"
#include "scope.hpp"

namespace plait::ops {

// Validation.

void warn(const Scope &x, bool condition, const char *text);
void warn_of_freedom(const Scope &x, Ints shape, Ints dims, double correction);
void warn_of_real(const Scope &x, DType dtype, DType to);
int64_t wrap_dim(const Scope &x, const char *argument, int64_t dim, Ints shape);
int64_t wrap_index(const Scope &x, const char *argument, int64_t index, int64_t size);
void sizes(const Scope &x, const char *argument, Ints shape);
void max_dims(const Scope &x, const char *argument, int64_t ndim);
void require(const Scope &x, const char *argument, DType dtype, const char *group);
void in_range(const Scope &x, const char *argument, const plait_value &number, DType dtype);
bool number_fits(const plait_value &number, DType dtype);  // true for dtypes that are not integers
void fits(const Scope &x, const char *argument, const plait_value &number, DType dtype);
void fits_as_factor(const Scope &x, const char *argument, const plait_value &number, DType dtype);
void require_same(const Scope &x, const char *name_a, const plait_tensor *a, const char *name_b,
                  const plait_tensor *b);

// An argument's name as errors write it.
inline std::string quoted(const char *argument) { return std::string("`") + argument + "`"; }

// Shapes, from shapes.cpp.

inline Ints shape_of(const plait_tensor *t) { return {t->dl.shape, t->dl.ndim}; }
inline Ints strides_of(const plait_tensor *t) { return {t->dl.strides, t->dl.ndim}; }
int64_t numel(Ints shape);
inline int64_t numel(const Dims &shape) { return numel(Ints(shape)); }
inline int64_t numel(const Tensor &t) { return numel(shape_of(t.get())); }
using plait::numel;
Dims contiguous_strides(Ints shape);
Dims dense_strides(const plait_tensor *t);
Dims format_strides(const Scope &x, const char *memory_format, Ints shape, Ints preserved);
bool is_in_format(const Scope &x, const char *memory_format, const plait_tensor *t);
Dims broadcast(const Scope &x, const char *name_a, Ints a, const char *name_b, Ints b);
Dims reduce_dims(const Scope &x, const char *argument, const std::optional<Ints> &dims, Ints shape);
Dims reduced(Ints shape, Ints dims, bool keepdim);
Dims infer_size(const Scope &x, const char *argument, Ints size, Ints shape);
int64_t count_of(const Scope &x, plait_value start, plait_value end, plait_value step, bool whole);
int64_t slice_start(const std::optional<int64_t> &start, int64_t step, int64_t size);
int64_t slice_count(const std::optional<int64_t> &start, const std::optional<int64_t> &end,
                    int64_t step, int64_t size);
void gather_check(const Scope &x, const char *name, Ints shape, int64_t dim, const char *index_name,
                  const plait_tensor *index);
Dims index_shape(const Scope &x, const char *argument, Ints shape, Tensors indices);
int64_t windows(const Scope &x, Ints shape, int64_t at, int64_t size, int64_t stride,
                int64_t padding, int64_t dilation, bool ceil);
using plait::is_contiguous;
bool viewable(const plait_tensor *t, Ints shape);
Dims view_strides(const plait_tensor *t, Ints shape);

// Dtypes.

bool is_floating(DType dtype);
bool is_integral(DType dtype);
using plait::itemsize;
inline bool is_complex(DType dtype) { return dtype.code == kDLComplex; }
DType real_dtype(DType dtype);
DType complex_dtype(DType dtype);
DType wide_dtype(DType dtype);
DType dtype_of(const plait_value &number);
inline DType default_dtype(const Scope &x) { return *x.thread->runtime->default_dtype; }
DType accumulated(DType dtype);
DType promote_all(const Scope &x, const char *argument, Tensors tensors);
DType require_common(const Scope &x, const char *name_a, const plait_value &a, const char *name_b,
                     const plait_value &b);

// Values.

inline bool is_tensor(const plait_value &v) { return v.tag == PLAIT_TENSOR; }
inline bool is_number(const plait_value &v) {
  return v.tag >= PLAIT_BOOL && v.tag <= PLAIT_COMPLEX;
}
// An operand that may be a temporary; it keeps its value alive.
class Held {
 public:
  Held() : value_(none()) {}
  explicit Held(const plait_value &borrowed) : value_(borrowed) {}
  explicit Held(Tensor own) : own_(std::move(own)), value_(plait::value(own_)) {}
  Held(double re, double im) : value_{PLAIT_COMPLEX, 0, {0}}, parts_{re, im} {}
  plait_value get() const {
    plait_value v = value_;
    if (v.tag == PLAIT_COMPLEX) v.u.fs = parts_;
    return v;
  }

 private:
  Tensor own_;
  plait_value value_;
  double parts_[2] = {0, 0};
};
Held conjugate(const Scope &x, const plait_value &v);
inline bool has_values(const plait_tensor *t) { return t->dl.device.device_type != PLAIT_META; }
bool is_recorded(const Scope &x, plait_tensor *t);
bool is_unused(const Scope &x, const plait_tensor *gradient);
int64_t item(const Scope &x, plait_tensor *t);
Tensor sum_to(const Scope &x, plait_tensor *t, Ints shape);
Tensor to_dtype(const Scope &x, plait_tensor *t, DType dtype);

// Results of shape functions.

inline void result(const Scope &x, uint32_t i, Ints shape, DType dtype) {
  if (x.checking) return;
  check(x.thread->runtime->result(x.call, i, dtype, int32_t(shape.size()), shape.data()));
}
inline void result_as(const Scope &x, uint32_t i, Ints shape, DType dtype, Ints strides) {
  if (x.checking) return;
  check(x.thread->runtime->result_strided(x.call, i, dtype, int32_t(shape.size()), shape.data(),
                                          strides.data()));
}
void view(const Scope &x, uint32_t i, plait_tensor *base, Ints shape, Ints strides, int64_t offset);
// A view of the parts of complex numbers, or of pairs of parts as complex numbers; strides and
// `offset` count elements of `dtype`.
void view_parts(const Scope &x, uint32_t i, plait_tensor *base, DType dtype, Ints shape,
                Ints strides, int64_t offset);
inline void cast_argument(const Scope &x, uint32_t i, DType dtype) {
  if (x.checking) return;
  check(x.thread->runtime->cast(x.call, i, dtype));
}

}  // namespace plait::ops
