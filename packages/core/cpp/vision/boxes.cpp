// The suppression of boxes that overlap, and the overlap of rotated boxes.
#include "vision/boxes.h"

#include "kernel/dense.h"

namespace plait::core {
namespace {

using namespace boxes;

constexpr int64_t kBoxes = 128;  // boxes that are decided one after the other

// Boxes in their order, by coordinate.
template <class T>
struct Columns {
  T *x1, *y1, *x2, *y2, *area;
  Upright<T> at(int64_t i) const { return {x1[i], y1[i], x2[i], y2[i], area[i]}; }
};

// Marks the boxes [begin, end) whose intersection with box i is more than `limit` of the union.
template <class T>
void mark(const Columns<T> &b, int64_t i, T limit, int64_t begin, int64_t end, uint8_t *out) {
  const Upright<T> own = b.at(i);
  for (int64_t j = begin; j < end; j++) out[j] = uint8_t(out[j] | (overlap(own, b.at(j)) > limit));
}

template <class T>
plait_status kept_boxes(const plait_call *c) {
  DLTensor *out = result(c, 0);
  const int64_t n = out->shape[0];
  Dense<T> boxes;
  Dense<int64_t> order;
  PLAIT_TRY(boxes.take(c, tensor(c, 0)));
  PLAIT_TRY(order.take(c, tensor(c, 1)));
  Workspace numbers, marks;
  PLAIT_TRY(numbers.take(c, uint64_t(5 * n) * sizeof(T) + 1));
  PLAIT_TRY(marks.take(c, uint64_t(n) + 1));
  T *p = numbers.as<T>();
  const Columns<T> b{p, p + n, p + 2 * n, p + 3 * n, p + 4 * n};
  for (int64_t i = 0; i < n; i++) {
    const int64_t at = order[i];
    if (at < 0 || at >= n)
      return PLAIT_FAIL(c, PLAIT_INDEX_ERROR, "`order` must be in [0, %lld); got %lld",
                        (long long)n, (long long)at);
    const T *box = boxes + 4 * at;
    const Upright<T> one = upright(box[0], box[1], box[2], box[3]);
    b.x1[i] = one.x1, b.y1[i] = one.y1, b.x2[i] = one.x2, b.y2[i] = one.y2, b.area[i] = one.area;
  }
  const T limit = rounded_down<T>(real(c, 2));
  uint8_t *removed = marks.as<uint8_t>();
  memset(removed, 0, size_t(n) + 1);
  int64_t *to = data<int64_t>(out), count = 0, kept[kBoxes];
  for (int64_t first = 0; first < n; first += kBoxes) {
    const int64_t last = first + kBoxes < n ? first + kBoxes : n;
    int64_t m = 0;
    for (int64_t i = first; i < last; i++) {
      if (removed[i]) continue;
      kept[m++] = i;
      to[count++] = order[i];
      mark(b, i, limit, i + 1, last, removed);
    }
    const int64_t grain = m ? 8 * kSerial / m : n;
    parallel_ranges(c, n - last, grain, [&](int64_t begin, int64_t end) {
      for (int64_t k = 0; k < m; k++) mark(b, kept[k], limit, last + begin, last + end, removed);
    });
  }
  for (int64_t i = count; i < n; i++) to[i] = 0;
  *data<int64_t>(result(c, 1)) = count;
  return PLAIT_OK;
}

// nms_kept(boxes, order, iou_threshold) -> (kept, count)
plait_status nms_kept(plait_call *c) {
  PLAIT_FLOATING(kind(tensor(c, 0)->dtype), return kept_boxes<T>(c))
  return PLAIT_OK;
}

template <class T>
Rotated rotated(const T *box) {
  return {double(box[0]), double(box[1]), double(box[2]), double(box[3]), double(box[4])};
}

template <class T>
plait_status rotated_overlaps(const plait_call *c) {
  DLTensor *out = result(c);
  const int64_t n = out->shape[0], m = out->shape[1];
  if (n == 0 || m == 0) return PLAIT_OK;
  Dense<T> first, second;
  PLAIT_TRY(first.take(c, tensor(c, 0)));
  PLAIT_TRY(second.take(c, tensor(c, 1)));
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(n + m) * 4 * sizeof(Point)));
  Point *points = space.as<Point>();
  const T *boxes1 = first, *boxes2 = second;
  for (int64_t i = 0; i < n + m; i++) {
    const Rotated box = rotated(i < n ? boxes1 + 5 * i : boxes2 + 5 * (i - n));
    corners(box.width, box.height, box.degrees, points + 4 * i);
  }
  float *to = data<float>(out);
  parallel_ranges(c, n * m, 256, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at++) {
      const int64_t i = at / m, j = at % m;
      to[at] = overlap(rotated(boxes1 + 5 * i), points + 4 * i, rotated(boxes2 + 5 * j),
                       points + 4 * (n + j));
    }
  });
  return PLAIT_OK;
}

// box_iou_rotated(boxes1, boxes2)
plait_status box_iou_rotated(plait_call *c) {
  PLAIT_FLOATING(kind(tensor(c, 0)->dtype), return rotated_overlaps<T>(c))
  return PLAIT_OK;
}

PLAIT_KERNEL("nms_kept", nms_kept);
PLAIT_KERNEL("box_iou_rotated", box_iou_rotated);

}  // namespace
}  // namespace plait::core
