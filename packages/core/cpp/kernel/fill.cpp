// One value for all elements of a tensor.
#include "kernel/copy.h"
#include "kernel/elementwise.h"

namespace plait::core {
namespace {

using Bytes32 = char __attribute__((vector_size(32), aligned(1), may_alias));

struct Pattern {
  char bytes[64];  // the element, repeated
  int item;
  bool uniform;  // every byte is the same
};

void fill_loop(char *out, char *const *, int64_t n, const void *context) {
  const Pattern &p = *static_cast<const Pattern *>(context);
  const int64_t bytes = n * p.item;
  if (p.uniform) {
    memset(out, p.bytes[0], size_t(bytes));
    return;
  }
  int64_t i = 0;
  const Bytes32 element = *reinterpret_cast<const Bytes32 *>(p.bytes);
  for (; i + 64 <= bytes; i += 64) {
    *reinterpret_cast<Bytes32 *>(out + i) = element;
    *reinterpret_cast<Bytes32 *>(out + i + 32) = element;
  }
  if (i < bytes) memcpy(out + i, p.bytes, size_t(bytes - i));
}

}  // namespace

plait_status fill(const plait_call *c, const DLTensor *to, const plait_value &value) {
  const Kind k = kind(to->dtype);
  if (k == Unknown) return PLAIT_DECLINE;
  Pattern p;
  p.item = size_of(k);
  alignas(16) char element[16] = {};
  store_number(k, value, element);
  p.uniform = true;
  for (int i = 0; i < 64; i++) {
    p.bytes[i] = element[i % p.item];
    p.uniform &= p.bytes[i] == p.bytes[0];
  }
  Plan plan;
  plan.add(to, p.item);
  plan.finish();
  const Inner inner{fill_loop, &p, {p.item}};
  run_elementwise(c, plan, inner);
  return PLAIT_OK;
}

}  // namespace plait::core
