// One value for all elements: fill_, full, zeros and ones.
#include "block/block.h"
#include "host/walk.h"

namespace plait::cuda {
namespace {

struct FillArgs {
  char *to;
  int64_t n;
  uint64_t pattern[2];  // the element, repeated
  Walk<1> walk;
};

#if PLAIT_KERNELS
template <class T>
PLAIT_DEVICE void fill_strided(Thread &t, const FillArgs &a) {
  T value;
  memcpy(&value, a.pattern, sizeof value);
  const auto to = t.global<T>(a.to);
  for (int64_t i = t.index(); i < a.n; i += t.stride()) {
    int64_t offset[1];
    a.walk.seek(i, offset);
    to.store(offset[0] / int64_t(sizeof(T)), value);
  }
}
#endif

PLAIT_DEVICE_KERNEL(fill_strided, FillArgs, 256, SIZES);

}  // namespace
}  // namespace plait::cuda

#if PLAIT_HOST
#include <plait/float8.h>

#include "host/copy.h"

namespace plait::cuda {
namespace {

plait_value number(int64_t i) {
  plait_value v{PLAIT_INT, 0, {0}};
  v.u.i = i;
  return v;
}

plait_status fill_(plait_call *c) { return fill_tensor(c, tensor(c, 0), c->in[1]); }
plait_status zero_(plait_call *c) { return fill_tensor(c, tensor(c, 0), number(0)); }
plait_status full(plait_call *c) { return fill_tensor(c, result(c), c->in[1]); }
plait_status zeros(plait_call *c) { return fill_tensor(c, result(c), number(0)); }
plait_status ones(plait_call *c) { return fill_tensor(c, result(c), number(1)); }

PLAIT_KERNEL("fill_", fill_);
PLAIT_KERNEL("zero_", zero_);
PLAIT_KERNEL("full", full);
PLAIT_KERNEL("full_like", full);
PLAIT_KERNEL("zeros", zeros);
PLAIT_KERNEL("zeros_like", zeros);
PLAIT_KERNEL("ones", ones);
PLAIT_KERNEL("ones_like", ones);

}  // namespace

void read_number(const DLTensor *t, plait_value *to, double *parts) {
  *to = plait_value{PLAIT_INT, 0, {0}};
  const auto real_number = [to](double x) { to->tag = PLAIT_FLOAT, to->u.f = x; };
  const auto complex_number = [to, parts](double re, double im) {
    parts[0] = re, parts[1] = im;
    to->tag = PLAIT_COMPLEX, to->u.fs = parts;
  };
  switch (kind(t->dtype)) {
    case Bool: to->u.i = *data<bool>(t); return;
    case U8: to->u.i = *data<uint8_t>(t); return;
    case I8: to->u.i = *data<int8_t>(t); return;
    case U16: to->u.i = *data<uint16_t>(t); return;
    case I16: to->u.i = *data<int16_t>(t); return;
    case U32: to->u.i = *data<uint32_t>(t); return;
    case I32: to->u.i = *data<int32_t>(t); return;
    case U64:
    case I64: to->u.i = *data<int64_t>(t); return;
    case F32: return real_number(double(*data<float>(t)));
    case F64: return real_number(*data<double>(t));
    case F16: return real_number(double(widen(*data<Half>(t))));
    case BF16: return real_number(double(widen(*data<BFloat>(t))));
    case F8E4M3: return real_number(double(plait_float8_e4m3fn_to_float(*data<uint8_t>(t))));
    case F8E4M3Z: return real_number(double(plait_float8_e4m3fnuz_to_float(*data<uint8_t>(t))));
    case F8E5M2: return real_number(double(plait_float8_e5m2_to_float(*data<uint8_t>(t))));
    case F8E5M2Z: return real_number(double(plait_float8_e5m2fnuz_to_float(*data<uint8_t>(t))));
    case F8E8M0: return real_number(double(plait_float8_e8m0fnu_to_float(*data<uint8_t>(t))));
    case C64: return complex_number(double(data<float>(t)[0]), double(data<float>(t)[1]));
    case C128: return complex_number(data<double>(t)[0], data<double>(t)[1]);
    default: return;
  }
}

plait_status fill_tensor(const plait_call *c, const DLTensor *to, int64_t value) {
  return fill_tensor(c, to, number(value));
}

plait_status fill_tensor(const plait_call *c, const DLTensor *to, const plait_value &value) {
  const Kind k = kind(to->dtype);
  if (k == Unknown) return PLAIT_DECLINE;
  if (numel(to) == 0) return PLAIT_OK;
  if (value.tag == PLAIT_TENSOR) return copy_tensor(c, to, &value.u.t->dl);
  if (!is_aligned(to)) {  // from one element that is
    DeviceWorkspace space;
    DLTensor one = *to;
    PLAIT_TRY(space.take(c, 16));
    one.data = space.data(), one.ndim = 0;
    PLAIT_TRY(fill_tensor(c, &one, value));
    return copy_tensor(c, to, &one);
  }
  FillArgs a{};
  const int item = size_of(k);
  unsigned char bytes[16] = {};
  store_number(k, value, bytes);
  bool is_uniform = true;  // all bytes are the same
  for (int i = 0; i < 16; i++) {
    bytes[i] = bytes[i % item];
    is_uniform &= bytes[i] == bytes[0];
  }
  memcpy(a.pattern, bytes, sizeof bytes);
  Plan p;
  p.add(to, item);
  p.finish();
  if (is_uniform && is_dense(p, &item)) return fill_bytes(c, p.data[0], bytes[0], p.numel * item);
  const int wide = join_elements(&p, item);
  a.to = p.data[0], a.n = p.numel;
  if (!make_walk(p, &a.walk)) return too_many_dimensions(c);
  return launch(c, fill_strided_kernel, instance_of_size(wide), a, blocks_for(c, a.n, 256), 256);
}

}  // namespace plait::cuda
#endif
