#include "kernel/elementwise.h"

namespace plait::core {
namespace {

template <class T>
void gather_items(T *to, const char *from, int64_t stride, int64_t n) {
  if (stride == 0) {
    const T value = *reinterpret_cast<const T *>(from);
    for (int64_t i = 0; i < n; i++) to[i] = value;
    return;
  }
  if (stride == -int64_t(sizeof(T))) {  // a constant step lets the compiler vectorise
    const T *p = reinterpret_cast<const T *>(from);
    for (int64_t i = 0; i < n; i++) to[i] = p[-i];
    return;
  }
  if (stride == 2 * int64_t(sizeof(T))) {
    const T *p = reinterpret_cast<const T *>(from);
    for (int64_t i = 0; i < n; i++) to[i] = p[2 * i];
    return;
  }
  for (int64_t i = 0; i < n; i++) to[i] = *reinterpret_cast<const T *>(from + i * stride);
}

template <class T>
void scatter_items(char *to, int64_t stride, const T *from, int64_t n) {
  for (int64_t i = 0; i < n; i++) *reinterpret_cast<T *>(to + i * stride) = from[i];
}

struct Row {  // the innermost dimension of a plan
  const Plan &plan;
  const Inner &inner;
  bool direct[kMaxOperands];
  bool all = true;

  Row(const Plan &p, const Inner &i) : plan(p), inner(i) {
    for (int k = 0; k < plan.operands; k++)
      all &= direct[k] = plan.stride[k][plan.ndim - 1] == inner.item[k];
  }
  void run(char *const *p, int64_t n) const {
    if (PLAIT_LIKELY(all)) return inner.loop(p[0], p + 1, n, inner.context);
    buffered(p, n);
  }
  void buffered(char *const *p, int64_t n) const;
};

PLAIT_NOINLINE void Row::buffered(char *const *start, int64_t n) const {
  alignas(64) char buffer[kMaxOperands][kBlock * 16];
  char *p[kMaxOperands], *use[kMaxOperands];
  int64_t step[kMaxOperands];
  for (int k = 0; k < plan.operands; k++) {
    step[k] = plan.stride[k][plan.ndim - 1];
    p[k] = use[k] = start[k];
    if (direct[k]) continue;
    use[k] = buffer[k];
    if (k > 0 && step[k] == 0) gather(buffer[k], p[k], 0, n < kBlock ? n : kBlock, inner.item[k]);
  }
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t m = n - i < kBlock ? n - i : kBlock;
    for (int k = 0; k < plan.operands; k++) {
      if (direct[k]) {
        use[k] = p[k];
      } else if (k > 0 && step[k] != 0) {
        gather(buffer[k], p[k], step[k], m, inner.item[k]);
      }
    }
    inner.loop(use[0], use + 1, m, inner.context);
    if (!direct[0]) scatter(p[0], step[0], buffer[0], m, inner.item[0]);
    for (int k = 0; k < plan.operands; k++) p[k] += m * step[k];
  }
}

void run_range(const Plan &plan, const Row &row, int64_t begin, int64_t end) {
  int64_t at[PLAIT_MAX_DIMS + 1];
  char *p[kMaxOperands];
  const int last = plan.ndim - 1;
  plan.seek(begin, at, p);
  while (begin < end) {
    const int64_t rest = plan.size[last] - at[last], n = rest < end - begin ? rest : end - begin;
    row.run(p, n);
    begin += n;
    if (begin >= end) return;
    for (int k = 0; k < plan.operands; k++) p[k] -= at[last] * plan.stride[k][last];
    at[last] = 0;
    plan.next_row(at, p);
  }
}

}  // namespace

void gather(char *to, const char *from, int64_t stride, int64_t n, int item) {
  switch (item) {
    case 1: return gather_items(reinterpret_cast<uint8_t *>(to), from, stride, n);
    case 2: return gather_items(reinterpret_cast<uint16_t *>(to), from, stride, n);
    case 4: return gather_items(reinterpret_cast<uint32_t *>(to), from, stride, n);
    case 8: return gather_items(reinterpret_cast<uint64_t *>(to), from, stride, n);
    default: return gather_items(reinterpret_cast<Bits128 *>(to), from, stride, n);
  }
}

void scatter(char *to, int64_t stride, const char *from, int64_t n, int item) {
  switch (item) {
    case 1: return scatter_items(to, stride, reinterpret_cast<const uint8_t *>(from), n);
    case 2: return scatter_items(to, stride, reinterpret_cast<const uint16_t *>(from), n);
    case 4: return scatter_items(to, stride, reinterpret_cast<const uint32_t *>(from), n);
    case 8: return scatter_items(to, stride, reinterpret_cast<const uint64_t *>(from), n);
    default: return scatter_items(to, stride, reinterpret_cast<const Bits128 *>(from), n);
  }
}

void run_elementwise(const plait_call *c, const Plan &plan, const Inner &inner) {
  if (plan.numel == 0) return;
  const Row row(plan, inner);
  if (plan.numel <= kSerial) {
    if (plan.ndim == 1) return row.run(plan.data, plan.size[0]);
    return run_range(plan, row, 0, plan.numel);
  }
  parallel_ranges(c, plan.numel, kChunk,
                  [&](int64_t begin, int64_t end) { run_range(plan, row, begin, end); });
}

}  // namespace plait::core
