// pad and its derivative. Rows of the innermost dimension have at most three segments: elements
// from before the input, those of the input, and those from behind it; so have the rows of a
// dimension above. Both operators are one pass over the tensor that they write.
#include "kernel/copy.h"
#include "kernel/copy_rows.h"
#include "pointwise/math.h"

namespace plait::core {
namespace {

enum Mode { kConstant, kReflect, kReplicate, kCircular };

Mode mode_of(const plait_call *c, int i) {
  return text_is(c, i, "reflect")     ? kReflect
         : text_is(c, i, "replicate") ? kReplicate
         : text_is(c, i, "circular")  ? kCircular
                                      : kConstant;
}

int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// Element k of `count` elements of a padded dimension, from `at` on, is element `from + k * step`
// of the input, or the fill value.
struct Segment {
  int64_t at, count, from, step;
  bool is_fill;
};

struct Dim {
  int64_t size, padded;    // elements of the input and of the padded tensor
  int64_t before;  // place of the input's first element; negative: those that are cut off
  int64_t step, wide_step;  // bytes from an element to the next, in the input and padded

  bool is_padded() const { return before != 0 || padded != size; }
  void segments(Mode mode, Segment to[3]) const {
    const bool fill = mode == kConstant;
    const int64_t left = least(most(before, 0), padded), end = least(before + size, padded);
    const int64_t right = most(left, end), q = right - before;
    to[0] = {0, left, 0, 0, fill};
    to[1] = {left, right - left, left - before, 1, false};
    to[2] = {right, padded - right, size - 1, 0, fill};
    if (mode == kReflect) {
      to[0].from = before;
      to[2].from = 2 * (size - 1) - q;
      to[0].step = to[2].step = -1;
    } else if (mode == kCircular) {
      to[0].from = size - before;
      to[2].from = q - size;
      to[0].step = to[2].step = 1;
    }
  }
};

// The dimensions in the order of memory of the tensor that is written; those that lie behind each
// other in both tensors are one.
struct Layout {
  int ndim = 0;
  Mode mode;
  bool cuts = false;  // elements of the input are not part of what is repeated
  int64_t offset = 0;  // bytes of those before the first element that is
  Dim dims[PLAIT_MAX_DIMS + 2];

  Layout(const plait_call *c, const DLTensor *input, const DLTensor *wide, int pad, bool backward)
      : mode(mode_of(c, pad + 1)) {
    const int item = input->dtype.bits * input->dtype.lanes / 8;
    const int n = input->ndim;
    const plait_value &list = c->in[pad];
    Dim all[PLAIT_MAX_DIMS];
    for (int d = 0; d < n; d++) {
      const uint32_t place = uint32_t(n - 1 - d) * 2;
      int64_t before = place < list.n ? list.u.is[place] : 0;
      int64_t after = place < list.n ? list.u.is[place + 1] : 0;
      int64_t size = input->shape[d];
      if (mode == kCircular) {
        const int64_t first = most(-before, 0), last = most(-after, 0);
        cuts |= first > 0 || last > 0;
        offset += first * input->strides[d] * item;
        size -= first + last;
        before = most(before, 0);
      }
      all[d] = {size, wide->shape[d], before, input->strides[d] * item, wide->strides[d] * item};
    }
    int order[PLAIT_MAX_DIMS];
    const DLTensor *written = backward ? input : wide;
    for (int d = 0; d < n; d++) {  // by falling strides
      int i = d;
      for (; i > 0 && written->strides[order[i - 1]] < written->strides[d]; i--)
        order[i] = order[i - 1];
      order[i] = d;
    }
    for (int i = 0; i < n; i++) add(all[order[i]]);
    for (; ndim < 2; ndim++) {  // a row of one row
      dims[1] = dims[0];
      dims[0] = {1, 1, 0, 0, 0};
      if (ndim == 0) dims[1] = {1, 1, 0, item, item};
    }
  }

 private:
  void add(const Dim &d) {
    if (!d.is_padded() && d.size == 1) return;
    if (ndim > 0 && !d.is_padded()) {
      Dim &above = dims[ndim - 1];
      const bool can = mode == kConstant || !above.is_padded();
      if (can && above.step == d.step * d.size && above.wide_step == d.wide_step * d.size) {
        above = {above.size * d.size, above.padded * d.size, above.before * d.size, d.step,
                 d.wide_step};
        return;
      }
    }
    dims[ndim++] = d;
  }
};

template <class T>
void fill_run(char *to, T value, int64_t count) {
  T *own = reinterpret_cast<T *>(to);
  for (int64_t i = 0; i < count; i++) own[i] = value;
}
// Rows of `length` elements, `apart` bytes from each other; rows of one or two take a store each.
template <class T>
void fill_runs(char *to, int64_t apart, T value, int64_t rows, int64_t length) {
  if (length == 1) {
    for (int64_t i = 0; i < rows; i++, to += apart) memcpy(to, &value, sizeof(T));
  } else if (length == 2) {
    const T both[] = {value, value};
    for (int64_t i = 0; i < rows; i++, to += apart) memcpy(to, both, sizeof both);
  } else {
    for (int64_t i = 0; i < rows; i++, to += apart) fill_run(to, value, length);
  }
}

constexpr int64_t kBlock = 8192;  // bytes of rows whose segments are written one after the other

template <class T>
class Padding {
 public:
  Padding(const Layout &l, const char *from, char *to, T value)
      : l_(l), from_(from + l.offset), to_(to), value_(value) {
    l.dims[l.ndim - 1].segments(l.mode, row_);
    l.dims[l.ndim - 2].segments(l.mode, rows_);
  }
  void run(const plait_call *c) const {
    const Dim &row = l_.dims[l_.ndim - 1];
    int64_t rows = 1;
    for (int d = 0; d < l_.ndim - 1; d++) rows *= l_.dims[d].padded;
    if (rows == 0 || row.padded == 0) return;
    if (rows == 1)  // one long row
      return parallel_ranges(c, row.padded, 4 * kChunk,
                             [&](int64_t begin, int64_t end) { walk(0, 1, begin, end); });
    parallel_ranges(c, rows, kChunk / row.padded,
                    [&](int64_t begin, int64_t end) { walk(begin, end, 0, row.padded); });
  }

 private:
  static constexpr int64_t kItem = int64_t(sizeof(T));

  // Elements [first, last) of rows [begin, end).
  void walk(int64_t begin, int64_t end, int64_t first, int64_t last) const {
    const int up = l_.ndim - 2;
    while (begin < end) {
      int64_t rest = begin / l_.dims[up].padded, from = 0, to = 0;
      const int64_t at = begin % l_.dims[up].padded;
      bool outside = false;
      for (int d = up - 1; d >= 0; d--) {
        const Dim &dim = l_.dims[d];
        const int64_t place = rest % dim.padded, source = source_of(dim, place);
        rest /= dim.padded;
        outside |= source < 0;
        from += source * dim.step;
        to += place * dim.wide_step;
      }
      const int64_t stop = least(l_.dims[up].padded, at + end - begin);
      for (const Segment &s : rows_) {
        const int64_t low = most(at, s.at), high = least(stop, s.at + s.count);
        if (low >= high) continue;
        char *own = to_ + to + low * l_.dims[up].wide_step;
        if (outside || s.is_fill) {
          fill_rows(own, high - low, first, last);
          continue;
        }
        const int64_t source = s.from + (low - s.at) * s.step;
        copy_rows(own, from_ + from + source * l_.dims[up].step, s.step * l_.dims[up].step,
                  high - low, first, last);
      }
      begin += stop - at;
    }
  }
  int64_t source_of(const Dim &dim, int64_t place) const {
    const int64_t q = place - dim.before;
    if (q >= 0 && q < dim.size) return q;
    switch (l_.mode) {
      case kReflect: return q < 0 ? -q : 2 * (dim.size - 1) - q;
      case kReplicate: return q < 0 ? 0 : dim.size - 1;
      case kCircular: return q < 0 ? q + dim.size : q - dim.size;
      default: return -1;
    }
  }
  void fill_rows(char *to, int64_t count, int64_t first, int64_t last) const {
    const int64_t apart = l_.dims[l_.ndim - 2].wide_step;
    fill_runs(to + first * kItem, apart, value_, count, last - first);
  }
  // Rows that lie `step` bytes apart in the input.
  void copy_rows(char *to, const char *from, int64_t step, int64_t count, int64_t first,
                 int64_t last) const {
    const int64_t apart = l_.dims[l_.ndim - 2].wide_step;
    const int64_t some = most(1, kBlock / most(1, (last - first) * kItem));
    for (int64_t i = 0; i < count; i += some, to += some * apart, from += some * step)
      for (const Segment &s : row_)
        if (s.count > 0) copy_block(to, apart, from, step, least(some, count - i), s, first, last);
  }
  void copy_block(char *to, int64_t apart, const char *from, int64_t step, int64_t count,
                  const Segment &s, int64_t first, int64_t last) const {
    const int64_t low = most(first, s.at), n = least(last, s.at + s.count) - low;
    if (n <= 0) return;
    const int64_t in = l_.dims[l_.ndim - 1].step, move = s.step * in;
    to += low * kItem;
    from += (s.from + (low - s.at) * s.step) * in;
    if (s.is_fill) {
      fill_runs(to, apart, value_, count, n);
    } else if (move == kItem) {
      move_rows(to, apart, from, step, count, n * kItem);
    } else {
      for (int64_t i = 0; i < count; i++, to += apart, from += step) {
        T *own = reinterpret_cast<T *>(to);
        for (int64_t k = 0; k < n; k++) own[k] = *reinterpret_cast<const T *>(from + k * move);
      }
    }
  }

  const Layout &l_;
  const char *from_;
  char *to_;
  T value_;
  Segment row_[3], rows_[3];
};

plait_status pad(plait_call *c) {
  const DLTensor *in = tensor(c, 0), *out = result(c);
  alignas(16) char element[16] = {};
  DLTensor one = *out;
  one.data = element;
  one.byte_offset = 0;
  one.ndim = 0;
  PLAIT_TRY(fill_with(c, &one, c->in[3]));
  const Layout layout(c, in, out, 1, false);
  PLAIT_BY_SIZE(size_of(kind(out->dtype)), {
    T value;
    memcpy(&value, element, sizeof(T));
    Padding<T>(layout, data<char>(in), data<char>(out), value).run(c);
  });
  return PLAIT_OK;
}
PLAIT_KERNEL("pad", pad);

// An element of the result is the sum of the gradients of all elements that it was copied to: of
// its own place, of those before the input and of those behind it, in this order in each dimension.
template <class T>
class PaddingSums {
 public:
  PaddingSums(const Layout &l, const char *grad, char *to)
      : l_(l), grad_(grad), to_(to + l.offset) {
    l.dims[l.ndim - 1].segments(l.mode, row_);
  }
  void run(const plait_call *c) const {
    const Dim &row = l_.dims[l_.ndim - 1], &up = l_.dims[l_.ndim - 2];
    int64_t rows = 1;
    for (int d = 0; d < l_.ndim - 1; d++) rows *= l_.dims[d].size;
    if (rows <= 0 || row.size <= 0) return;
    parallel_ranges(c, rows, kChunk / row.size, [&](int64_t begin, int64_t end) {
      int64_t at[PLAIT_MAX_DIMS + 2];
      while (begin < end) {
        int64_t rest = begin / up.size, offset = 0;
        for (int d = l_.ndim - 3; d >= 0; d--) {
          at[d] = rest % l_.dims[d].size;
          rest /= l_.dims[d].size;
          offset += at[d] * l_.dims[d].step;
        }
        const int64_t first = begin % up.size, last = least(up.size, first + end - begin);
        bool is_written = false;
        add_planes(0, at, grad_, to_ + offset, first, last, &is_written);
        for (int64_t i = first; i < last && !is_written; i++)
          memset(to_ + offset + i * up.step, 0, size_t(row.size) * sizeof(T));
        begin += last - first;
      }
    });
  }

 private:
  struct Range {
    int64_t at, count;
  };

  // The elements of the padded dimension that are copies of element i.
  int places_of(const Dim &dim, int64_t i, Range to[3]) const {
    int n = 0;
    const auto add = [&](int64_t q, int64_t count) {
      const int64_t low = most(q + dim.before, 0), high = least(q + count + dim.before, dim.padded);
      if (low < high) to[n++] = {low, high - low};
    };
    const int64_t size = dim.size;
    add(i, 1);
    if (l_.mode == kReflect) {
      if (i > 0) add(-i, 1);
      if (i < size - 1) add(2 * (size - 1) - i, 1);
    } else if (l_.mode == kReplicate) {
      if (i == 0) add(-most(dim.before, 0), most(dim.before, 0));
      if (i == size - 1) add(size, most(dim.padded - dim.before - size, 0));
    } else if (l_.mode == kCircular) {
      add(i - size, 1);
      add(i + size, 1);
    }
    return n;
  }
  // Rows [first, last) of one plane, from all planes that are copies of it.
  void add_planes(int d, const int64_t *at, const char *grad, char *to, int64_t first, int64_t last,
                  bool *is_written) const {
    if (d == l_.ndim - 2) {
      add_rows(grad, to, first, last, !*is_written);
      *is_written = true;
      return;
    }
    Range ranges[3];
    const int n = places_of(l_.dims[d], at[d], ranges);
    const int64_t step = l_.dims[d].wide_step;
    for (int r = 0; r < n; r++)
      for (int64_t k = 0; k < ranges[r].count; k++)
        add_planes(d + 1, at, grad + (ranges[r].at + k) * step, to, first, last, is_written);
  }
  void add_rows(const char *grad, char *to, int64_t first, int64_t last, bool is_new) const {
    const Dim &up = l_.dims[l_.ndim - 2];
    const int64_t size = l_.dims[l_.ndim - 1].size;
    const bool has_gaps = row_[1].count < size;  // some elements have no gradient
    for (int64_t i = first; i < last; i++) {
      T *own = reinterpret_cast<T *>(to + i * up.step);
      Range ranges[3];
      const int n = places_of(up, i, ranges);
      bool is_first = is_new && n > 0 && !has_gaps;
      if (is_new && !is_first) memset(own, 0, size_t(size) * sizeof(T));
      for (int r = 0; r < n; r++)
        for (int64_t k = 0; k < ranges[r].count; k++, is_first = false)
          add_row(grad + (ranges[r].at + k) * up.wide_step, own, is_first);
    }
  }
  void add_row(const char *grad, T *to, bool is_first) const {
    add_segment(row_[1], grad, to, is_first);
    if (l_.mode == kConstant) return;
    add_segment(row_[0], grad, to, false);
    add_segment(row_[2], grad, to, false);
  }
  void add_segment(const Segment &s, const char *grad, T *to, bool is_first) const {
    const int64_t step = l_.dims[l_.ndim - 1].wide_step, n = s.count;
    grad += s.at * step;
    to += s.from;
    const T *own = reinterpret_cast<const T *>(grad);
    if (is_first && step == int64_t(sizeof(T))) {
      for (int64_t k = 0; k < n; k++) to[k] = own[k];
    } else if (is_first) {
      for (int64_t k = 0; k < n; k++) to[k] = *reinterpret_cast<const T *>(grad + k * step);
    } else if (s.step == 1 && step == int64_t(sizeof(T))) {
      for (int64_t k = 0; k < n; k++) to[k] = to[k] + own[k];
    } else {
      for (int64_t k = 0; k < n; k++, to += s.step)
        *to = *to + *reinterpret_cast<const T *>(grad + k * step);
    }
  }

  const Layout &l_;
  const char *grad_;
  char *to_;
  Segment row_[3];
};

template <class T>
plait_status sum_copies(plait_call *c, const Layout &layout) {
  PaddingSums<T>(layout, data<char>(tensor(c, 0)), data<char>(result(c))).run(c);
  return PLAIT_OK;
}

plait_status pad_backward(plait_call *c) {
  const DLTensor *grad = tensor(c, 0), *out = result(c);
  const Layout layout(c, out, grad, 2, true);
  if (layout.cuts) PLAIT_TRY(fill_with(c, out, 0));
  switch (kind(out->dtype)) {
    PLAIT_CASE(F32, float, return sum_copies<T>(c, layout))
    PLAIT_CASE(F64, double, return sum_copies<T>(c, layout))
    PLAIT_CASE(C64, Complex64, return sum_copies<T>(c, layout))
    PLAIT_CASE(C128, Complex128, return sum_copies<T>(c, layout))
    default: return PLAIT_DECLINE;
  }
}
PLAIT_KERNEL("pad_backward", pad_backward);

}  // namespace
}  // namespace plait::core
