#include "kernel/elementwise.h"

#include "kernel/copy_rows.h"

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

// Rows in turn: [begin, end) in elements.
void run_rows(const Plan &plan, const Row &row, int64_t begin, int64_t end) {
  if (begin >= end) return;
  int64_t at[PLAIT_MAX_DIMS + 1];
  char *p[kMaxOperands];
  const int last = plan.ndim - 1, up = last - 1;
  const int64_t length = plan.size[last];
  plan.seek(begin, at, p);
  while (begin < end) {
    if (at[last] == 0 && last > 0 && end - begin >= length) {  // whole rows of the dimension above
      const int64_t whole = (end - begin) / length, left = plan.size[up] - at[up];
      const int64_t rows = whole < left ? whole : left;
      for (int64_t r = 0; r < rows; r++) {
        if (r)
          for (int k = 0; k < plan.operands; k++) p[k] += plan.stride[k][up];
        row.run(p, length);
      }
      at[up] += rows - 1;
      begin += rows * length;
    } else {
      const int64_t rest = length - at[last], n = rest < end - begin ? rest : end - begin;
      row.run(p, n);
      begin += n;
      for (int k = 0; k < plan.operands; k++) p[k] -= at[last] * plan.stride[k][last];
      at[last] = 0;
    }
    if (begin < end) plan.next_row(at, p);
  }
}

// The elements of `rows` rows, one after the other.
template <class T>
void gather_rows(char *into, const char *from, int64_t apart, int64_t step, int64_t rows,
                 int64_t n) {
  T *to = reinterpret_cast<T *>(into);
  if (step == 0) {
    for (int64_t r = 0; r < rows; r++, from += apart, to += n) {
      const T value = *reinterpret_cast<const T *>(from);
      for (int64_t i = 0; i < n; i++) to[i] = value;
    }
    return;
  }
  for (int64_t r = 0; r < rows; r++, from += apart, to += n)
    for (int64_t i = 0; i < n; i++) to[i] = *reinterpret_cast<const T *>(from + i * step);
}
template <class T>
void scatter_rows(char *into, int64_t apart, int64_t step, const char *data, int64_t rows,
                  int64_t n) {
  const T *from = reinterpret_cast<const T *>(data);
  for (int64_t r = 0; r < rows; r++, into += apart, from += n)
    for (int64_t i = 0; i < n; i++) *reinterpret_cast<T *>(into + i * step) = from[i];
}

// Rows that are too short for a call each. Some are taken together, up to a buffer's bytes: where
// they lie, if they follow each other, and else by buffers. A row that all use is copied once.
class ShortRows {
 public:
  ShortRows(const Plan &plan, const Inner &inner) : plan_(plan), inner_(inner) {
    if (plan.ndim < 2 || length() > kMostElements) return;
    bool copies = false;  // more than one element of a row
    for (int k = 0; k < plan.operands; k++) {
      const int64_t apart = plan.stride[k][above()], step = plan.stride[k][above() + 1];
      dense_[k] = step == inner.item[k] && apart == length() * step;
      copies |= !dense_[k] && (k == 0 || (apart != 0 && step != 0));
      if (inner.item[k] > largest_) largest_ = inner.item[k];
    }
    pay_ = !copies || length() <= kMostCopied;
    large_ = copies && plan.numel * largest_ > kLarge;
  }
  bool pay() const { return pay_; }
  int64_t length() const { return plan_.size[plan_.ndim - 1]; }

  void run(int64_t row, int64_t stop) const {
    alignas(64) char buffer[kMaxOperands][kBufferBytes];
    int64_t at[PLAIT_MAX_DIMS + 1];
    char *p[kMaxOperands], *use[kMaxOperands], *copied[kMaxOperands] = {};
    int64_t rows_copied[kMaxOperands] = {};
    plan_.seek(row * length(), at, p);
    const int up = above();
    while (row < stop) {
      int64_t rows = kBufferBytes / largest_ / length(), left = plan_.size[up] - at[up];
      if (rows > left) rows = left;
      if (rows > stop - row) rows = stop - row;
      if (large_) prefetch(p, rows);
      for (int k = 0; k < plan_.operands; k++) {
        use[k] = dense_[k] ? p[k] : buffer[k];
        if (dense_[k] || k == 0) continue;
        const bool repeated = plan_.stride[k][up] == 0;
        if (repeated && copied[k] == p[k] && rows_copied[k] >= rows) continue;
        repeated ? repeat(k, buffer[k], p[k], rows) : take(k, buffer[k], p[k], rows);
        copied[k] = p[k];
        rows_copied[k] = rows;
      }
      inner_.loop(use[0], use + 1, rows * length(), inner_.context);
      if (!dense_[0]) give(p[0], buffer[0], rows);
      row += rows;
      for (int k = 0; k < plan_.operands; k++) p[k] += (rows - 1) * plan_.stride[k][up];
      at[up] += rows - 1;
      plan_.next_row(at, p);
    }
  }

 private:
  static constexpr int64_t kMostElements = kBlock / 2, kMostCopied = 16;
  // Long runs of rows of one tensor, which caches prefetch.
  static constexpr int64_t kLarge = 1 << 20;  // bytes that are not in a core's own cache
  static constexpr int64_t kBufferBytes = kBlock * 16;
  int above() const { return plan_.ndim - 2; }

  // The rows behind these: processors do not foresee reads with gaps.
  void prefetch(char *const *p, int64_t rows) const {
    for (int64_t r = rows; r < 2 * rows; r++)
      for (int k = 1; k < plan_.operands; k++)
        if (!dense_[k]) __builtin_prefetch(p[k] + r * plan_.stride[k][above()]);
  }
  void repeat(int k, char *to, const char *from, int64_t rows) const {
    take(k, to, from, 1);
    const int64_t bytes = rows * length() * inner_.item[k];
    for (int64_t have = length() * inner_.item[k]; have < bytes; have *= 2)
      memcpy(to + have, to, size_t(have < bytes - have ? have : bytes - have));
  }
  void take(int k, char *to, const char *from, int64_t rows) const {
    const int64_t apart = plan_.stride[k][above()], step = plan_.stride[k][above() + 1];
    const int64_t bytes = length() * inner_.item[k];
    if (step == inner_.item[k]) return move_rows(to, bytes, from, apart, rows, bytes);
    switch (inner_.item[k]) {
      case 1: return gather_rows<uint8_t>(to, from, apart, step, rows, length());
      case 2: return gather_rows<uint16_t>(to, from, apart, step, rows, length());
      case 4: return gather_rows<uint32_t>(to, from, apart, step, rows, length());
      case 8: return gather_rows<uint64_t>(to, from, apart, step, rows, length());
      default: return gather_rows<Bits128>(to, from, apart, step, rows, length());
    }
  }
  void give(char *to, const char *from, int64_t rows) const {
    const int64_t apart = plan_.stride[0][above()], step = plan_.stride[0][above() + 1];
    const int64_t bytes = length() * inner_.item[0];
    if (step == inner_.item[0]) return move_rows(to, apart, from, bytes, rows, bytes);
    switch (inner_.item[0]) {
      case 1: return scatter_rows<uint8_t>(to, apart, step, from, rows, length());
      case 2: return scatter_rows<uint16_t>(to, apart, step, from, rows, length());
      case 4: return scatter_rows<uint32_t>(to, apart, step, from, rows, length());
      case 8: return scatter_rows<uint64_t>(to, apart, step, from, rows, length());
      default: return scatter_rows<Bits128>(to, apart, step, from, rows, length());
    }
  }

  const Plan &plan_;
  const Inner &inner_;
  bool dense_[kMaxOperands] = {};
  int largest_ = 1;  // bytes of an element
  bool pay_ = false, large_ = false;
};

void run_range(const Plan &plan, const Row &row, const ShortRows &rows, int64_t begin,
               int64_t end) {
  if (!rows.pay()) return run_rows(plan, row, begin, end);
  const int64_t n = rows.length(), first = (begin + n - 1) / n, stop = end / n;
  if (first >= stop) return run_rows(plan, row, begin, end);
  run_rows(plan, row, begin, first * n);
  rows.run(first, stop);
  run_rows(plan, row, stop * n, end);
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
  if (plan.numel <= kSerial && plan.ndim == 1) return row.run(plan.data, plan.size[0]);
  const ShortRows rows(plan, inner);
  if (plan.numel <= kSerial) return run_range(plan, row, rows, 0, plan.numel);
  parallel_ranges(c, plan.numel, kChunk,
                  [&](int64_t begin, int64_t end) { run_range(plan, row, rows, begin, end); });
}

}  // namespace plait::core
