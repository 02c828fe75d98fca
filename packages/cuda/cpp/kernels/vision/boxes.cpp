// nms_kept and box_iou_rotated: the suppression of boxes that overlap, and the overlap of rotated
// boxes.
#include "vision/boxes.h"

#include "block/block.h"

namespace plait::cuda {
namespace {

using boxes::Point;
using boxes::Rotated;
using boxes::Upright;

constexpr int kWord = 64;  // boxes whose marks are one number
constexpr int kKeepers = 1024;  // threads that decide

struct NmsArgs {
  const void *boxes;  // [n][4]
  const int64_t *order;
  void *sorted;  // [n][5]: boxes in their order, with areas
  uint64_t *marks;  // [rows][words]: the boxes that each of some rows overlaps, later ones
  uint64_t *removed;  // [words]
  int64_t *kept, *count;
  int64_t n, words, first, rows;  // rows: from `first` on, a multiple of kWord
  double limit;
  Fault fault;
};

struct RotatedArgs {
  const void *one, *two;  // [n][5], [m][5]
  float *to;  // [n][m]
  int64_t n, m;
};

#if PLAIT_KERNELS
template <class T>
PLAIT_DEVICE void sort_boxes(Thread &t, const NmsArgs &a) {
  using V = Compute<T>;
  const auto boxes = t.global<const T>(a.boxes);
  const auto order = t.global<const int64_t>(a.order);
  const auto sorted = t.global<V>(a.sorted);
  for (int64_t i = t.index(); i < a.n; i += t.stride()) {
    int64_t at = order.load(i);
    if (at < 0 || at >= a.n) t.fail(a.fault, kIndexFault, double(at), 0, double(a.n)), at = 0;
    V v[4];
    for (int k = 0; k < 4; k++) v[k] = widen(boxes.load(4 * at + k));
    for (int k = 0; k < 4; k++) sorted.store(5 * i + k, v[k]);
    sorted.store(5 * i + 4, boxes::upright(v[0], v[1], v[2], v[3]).area);
  }
}

// A block compares kWord rows, a thread for each, with the kWord boxes of one word.
template <class T>
PLAIT_DEVICE void mark_boxes(Block &t, const NmsArgs &a) {
  const int64_t word = t.block(), row = a.first + int64_t(t.block_y()) * kWord;
  if (word < row / kWord) return;
  const auto sorted = t.global<const T>(a.sorted);
  const auto others = t.template shared<T>(5 * kWord);
  const int64_t first = word * kWord, i = row + t.thread();
  const int count = int(a.n - first < kWord ? a.n - first : kWord);
  for (int k = t.thread(); k < 5 * count; k += t.threads())
    others.store(k, sorted.load(5 * first + k));
  t.barrier();
  if (i >= a.n) return;
  const auto box_at = [](const auto &from, int64_t k) {
    return Upright<T>{from.load(5 * k), from.load(5 * k + 1), from.load(5 * k + 2),
                      from.load(5 * k + 3), from.load(5 * k + 4)};
  };
  const Upright<T> own = box_at(sorted, i);
  uint64_t bits = 0;
  for (int k = 0; k < count; k++)
    if (first + k > i && boxes::overlap(own, box_at(others, k)) > T(a.limit))
      bits |= uint64_t(1) << k;
  t.global<uint64_t>(a.marks).store((i - a.first) * a.words + word, bits);
}

// One block takes the rows in their order. Between barriers a thread has its words to itself.
template <class T>
PLAIT_DEVICE void keep_boxes(Block &t, const NmsArgs &a) {
  const auto removed = t.global<T>(a.removed);
  const auto marks = t.global<const T>(a.marks);
  const auto order = t.global<const int64_t>(a.order);
  const auto kept = t.global<int64_t>(a.kept);
  int64_t count = t.global<int64_t>(a.count).load(0);
  const int64_t end = a.first + a.rows < a.n ? a.first + a.rows : a.n;
  for (int64_t first = a.first; first < end; first += kWord) {
    t.barrier();
    const int64_t word = first / kWord;
    T gone = removed.load(word);
    for (int64_t i = first; i < first + kWord && i < end; i++) {
      if (gone >> (i - first) & 1) continue;
      const int64_t row = (i - a.first) * a.words;
      if (t.thread() == 0) kept.store(count, order.load(i));
      count++;
      gone |= marks.load(row + word);
      for (int64_t w = word + 1 + t.thread(); w < a.words; w += t.threads())
        removed.store(w, removed.load(w) | marks.load(row + w));
    }
  }
  t.barrier();  // all have read the count
  if (t.thread() == 0) t.global<int64_t>(a.count).store(0, count);
}

template <class T>
PLAIT_DEVICE void overlap_rotated(Thread &t, const RotatedArgs &a) {
  const auto box_at = [&t](const void *all, int64_t i) {
    const auto from = t.template global<const T>(static_cast<const T *>(all) + 5 * i);
    return Rotated{double(widen(from.load(0))), double(widen(from.load(1))),
                   double(widen(from.load(2))), double(widen(from.load(3))),
                   double(widen(from.load(4)))};
  };
  const auto to = t.global<float>(a.to);
  for (int64_t e = t.index(); e < a.n * a.m; e += t.stride()) {
    const Rotated x = box_at(a.one, e / a.m), y = box_at(a.two, e % a.m);
    Point one[4], two[4];
    boxes::corners(x.width, x.height, x.degrees, one);
    boxes::corners(y.width, y.height, y.degrees, two);
    to.store(e, boxes::overlap(x, one, y, two));
  }
}
#endif

#define PLAIT_EACH_MARKS(X, ...) X(u64, uint64_t, __VA_ARGS__)
PLAIT_DEVICE_KERNEL(sort_boxes, NmsArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(mark_boxes, NmsArgs, kWord, WIDE);
PLAIT_DEVICE_KERNEL(keep_boxes, NmsArgs, kKeepers, MARKS);
PLAIT_DEVICE_KERNEL(overlap_rotated, RotatedArgs, 256, FLOATING);

}  // namespace
}  // namespace plait::cuda

#if PLAIT_HOST
#include "host/copy.h"

namespace plait::cuda {
namespace {

constexpr int64_t kMarksBytes = 1 << 20;  // the marks of so many rows are made at once

// nms_kept(boxes, order, iou_threshold) -> (kept, count)
plait_status nms_kept(plait_call *c) {
  const Kind k = kind(tensor(c, 0)->dtype), wide = k == F64 ? F64 : F32;
  Operand boxes, order;
  DenseResult kept, count;
  PLAIT_TRY(boxes.take_dense(c, tensor(c, 0)));
  PLAIT_TRY(order.take_dense(c, tensor(c, 1)));
  PLAIT_TRY(kept.take(c, result(c, 0)));
  PLAIT_TRY(count.take(c, result(c, 1)));
  NmsArgs a{};
  a.n = numel(tensor(c, 1));
  PLAIT_TRY(fill_bytes(c, kept.data(), 0, a.n * 8));
  PLAIT_TRY(fill_bytes(c, count.data(), 0, 8));
  a.words = ceil_div(a.n, kWord);
  const int64_t fitting = a.n ? kMarksBytes / (a.words * 8) / kWord * kWord : 0;
  const int64_t most = fitting > kWord ? fitting : kWord;
  a.rows = most < a.words * kWord ? most : a.words * kWord;
  DeviceWorkspace sorted, marks, removed;
  PLAIT_TRY(sorted.take(c, 5 * a.n * size_of(wide)));
  PLAIT_TRY(marks.take(c, a.rows * a.words * 8));
  PLAIT_TRY(removed.take(c, a.words * 8));
  PLAIT_TRY(fill_bytes(c, removed.data(), 0, a.words * 8));
  a.boxes = boxes.data(), a.order = order.data<int64_t>(), a.sorted = sorted.data();
  a.marks = marks.data<uint64_t>(), a.removed = removed.data<uint64_t>();
  a.kept = kept.data<int64_t>(), a.count = count.data<int64_t>();
  a.limit = wide == F64 ? real(c, 2) : double(boxes::rounded_down<float>(real(c, 2)));
  a.fault = fault_of(c, 1);
  const int64_t keepers = a.words < kKeepers ? ceil_div(a.words, kWarp) * kWarp : kKeepers;
  PLAIT_TRY(launch(c, sort_boxes_kernel, k, a, blocks_for(c, a.n, 256), 256));
  for (; a.first < a.n; a.first += a.rows) {
    const int64_t left = ceil_div(a.n - a.first, kWord), rows = a.rows / kWord;
    const Grid grid(a.words, int(left < rows ? left : rows));
    PLAIT_TRY(launch(c, mark_boxes_kernel, wide, a, grid, kWord, 5 * kWord * size_of(wide)));
    PLAIT_TRY(launch(c, keep_boxes_kernel, U64, a, 1, int(keepers)));
  }
  PLAIT_TRY(kept.finish(c));
  return count.finish(c);
}

// box_iou_rotated(boxes1, boxes2)
plait_status box_iou_rotated(plait_call *c) {
  Operand one, two;
  DenseResult to;
  PLAIT_TRY(one.take_dense(c, tensor(c, 0)));
  PLAIT_TRY(two.take_dense(c, tensor(c, 1)));
  PLAIT_TRY(to.take(c, result(c)));
  const RotatedArgs a{one.data(), two.data(), to.data<float>(), result(c)->shape[0],
                      result(c)->shape[1]};
  PLAIT_TRY(launch(c, overlap_rotated_kernel, kind(tensor(c, 0)->dtype), a,
                   blocks_for(c, a.n * a.m, 256), 256));
  return to.finish(c);
}

PLAIT_KERNEL("nms_kept", nms_kept);
PLAIT_KERNEL("box_iou_rotated", box_iou_rotated);

}  // namespace
}  // namespace plait::cuda
#endif
