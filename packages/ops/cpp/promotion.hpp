// Type promotion by category, as PyTorch documents it: tensors with dimensions decide before 0-d
// tensors, those before numbers; the later levels count only if their category is higher. One
// function for all operators.
#pragma once
#include <plait/plait.hpp>

namespace plait::ops {

enum class Category : uint8_t { boolean, integer, floating, complex };
inline Category category(DType d) {
  switch (d.code) {
    case kDLBool: return Category::boolean;
    case kDLInt:
    case kDLUInt: return Category::integer;
    case kDLComplex: return Category::complex;
    default: return Category::floating;
  }
}

// Sets of dtypes that operators compute in, see plait_ops/spec.py
enum class Group : uint8_t {
  any,
  all,
  arithmetic,
  numeric,
  inexact,
  floating,
  integral,
  integer,
  boolean
};
Group group_of(const char *name);
inline bool in_group(DType d, Group g) {
  if (is_float8(d)) return g == Group::any;  // whose kernels decline what they cannot compute
  const Category c = category(d);
  switch (g) {
    case Group::any: return true;
    case Group::all: return c != Category::complex;
    case Group::arithmetic: return c != Category::boolean;
    case Group::numeric: return c == Category::integer || c == Category::floating;
    case Group::inexact: return c >= Category::floating;
    case Group::floating: return c == Category::floating;
    case Group::integral: return c <= Category::integer;
    case Group::integer: return c == Category::integer;
    default: return c == Category::boolean;
  }
}
DType real_dtype(DType d);  // the dtype of a complex dtype's parts; other dtypes are unchanged
DType complex_dtype(DType d);  // with parts of float32, or of float64 if `d` is that wide
// "must be an integer dtype; got float32"
std::string not_in_group(DType d, Group g);

// The default dtype: the runtime's, after `take_default_dtype` has set its address.
DType default_dtype();
void take_default_dtype(const plait_runtime *runtime);

DType number_dtype(const plait_value &number);  // bool, int64, the default dtype or its complex
// false if no dtype holds both (uint64 and a signed integer)
bool promote_types(DType a, DType b, DType *out);

class Promotion {
 public:
  void add(const plait_value &v) {
    if (v.tag == PLAIT_TENSOR)
      add(v.u.t);
    else
      join(2, number_dtype(v));
  }
  void add(const plait_tensor *t) {
    join(t->flags & PLAIT_TENSOR_WRAPPED_NUMBER ? 2 : t->dl.ndim == 0, t->dl.dtype);
  }
  bool conflict() const { return conflict_; }
  std::string why() const;
  DType result() const;

 private:
  void join(int level, DType d);
  bool has_[3] = {false, false, false}, conflict_ = false;
  DType level_[3], a_, b_;
};

}  // namespace plait::ops
