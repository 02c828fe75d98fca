// nextafter of float16 and bfloat16, whose neighbours are neighbours as integers.
#include "kernel/half.h"
#include "kernel/plan.h"

namespace plait::core {
namespace {

template <class H>
float wide(uint16_t bits) {
  float x;
  widen_run<H>(&x, &bits, 1);
  return x;
}

template <class H>
uint16_t next(uint16_t a, uint16_t b) {
  const float x = wide<H>(a), y = wide<H>(b);
  if (x != x) return a;
  if (y != y || x == y) return b;
  if (x == 0) return uint16_t((b & 0x8000) | 1);
  return (x < y) == (x > 0) ? uint16_t(a + 1) : uint16_t(a - 1);
}

template <class H>
void walk(const plait_call *c, const Plan &p) {
  const int last = p.ndim - 1;
  const int64_t n = p.size[last], to = p.stride[0][last], a = p.stride[1][last],
                b = p.stride[2][last];
  parallel_ranges(c, p.numel / n, kSerial / n + 1, [&](int64_t begin, int64_t end) {
    int64_t at[PLAIT_MAX_DIMS + 1];
    char *q[kMaxOperands];
    p.seek(begin * n, at, q);
    for (int64_t row = begin; row < end; row++, p.next_row(at, q))
      for (int64_t i = 0; i < n; i++)
        *reinterpret_cast<uint16_t *>(q[0] + i * to) =
            next<H>(*reinterpret_cast<const uint16_t *>(q[1] + i * a),
                    *reinterpret_cast<const uint16_t *>(q[2] + i * b));
  });
}

plait_status nextafter(plait_call *c) {
  DLTensor *out = result(c);
  const Kind k = kind(out->dtype);
  if (!is_half(k) || kind(tensor(c, 0)->dtype) != k || kind(tensor(c, 1)->dtype) != k)
    return PLAIT_DECLINE;
  Plan p;
  p.add(out, 2);
  p.add(tensor(c, 0), 2);
  p.add(tensor(c, 1), 2);
  if (p.numel == 0) return PLAIT_OK;
  p.finish();
  k == BF16 ? walk<Bfloat>(c, p) : walk<Half>(c, p);
  return PLAIT_OK;
}
PLAIT_KERNEL_SPECIAL("nextafter", nextafter);

}  // namespace
}  // namespace plait::core
