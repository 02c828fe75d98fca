// The suppression of boxes that overlap, and the overlap of rotated boxes.
#include "kernel/dense.h"
#include "pointwise/math.h"

namespace plait::core {
namespace {

constexpr int64_t kBoxes = 128;  // boxes that are decided one after the other

// Boxes in their order, by coordinate.
template <class T>
struct Columns {
  T *x1, *y1, *x2, *y2, *area;
};

// Marks the boxes [begin, end) whose intersection with box i is more than `limit` of the union.
template <class T>
void mark(const Columns<T> &b, int64_t i, T limit, int64_t begin, int64_t end, uint8_t *out) {
  const T left = b.x1[i], top = b.y1[i], right = b.x2[i], bottom = b.y2[i], own = b.area[i];
  for (int64_t j = begin; j < end; j++) {
    const T x1 = left < b.x1[j] ? b.x1[j] : left, y1 = top < b.y1[j] ? b.y1[j] : top;
    const T x2 = b.x2[j] < right ? b.x2[j] : right, y2 = b.y2[j] < bottom ? b.y2[j] : bottom;
    const T width = x2 - x1 > 0 ? x2 - x1 : T(0), height = y2 - y1 > 0 ? y2 - y1 : T(0);
    const T inside = width * height;
    out[j] = uint8_t(out[j] | (inside / (own + b.area[j] - inside) > limit));
  }
}

// The largest number of type T that is not above x: a number of type T is above both or neither.
template <class T>
T rounded_down(double x) {
  T limit = T(x);
  if (double(limit) > x) {
    if constexpr (sizeof(T) == 4) limit = __builtin_nextafterf(limit, -__builtin_inff());
  }
  return limit;
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
    b.x1[i] = box[0], b.y1[i] = box[1], b.x2[i] = box[2], b.y2[i] = box[3];
    b.area[i] = (box[2] - box[0]) * (box[3] - box[1]);
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

struct Point {
  double x, y;
};

// The corners of a box around its centre, in one sense of rotation.
template <class T>
void corners(const T *box, Point *to) {
  const double angle = double(box[4]) * (3.14159265358979323846 / 180);
  const double cosine = scalar::math::cos(angle), sine = scalar::math::sin(angle);
  const double u[] = {0.5, 0.5, -0.5, -0.5}, v[] = {0.5, -0.5, -0.5, 0.5};
  for (int k = 0; k < 4; k++) {
    const double right = u[k] * double(box[2]), down = v[k] * double(box[3]);
    to[k] = {cosine * right + sine * down, cosine * down - sine * right};
  }
}

double cross(Point a, Point b, Point p) {
  return (b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x);
}

// The area of the intersection of two rectangles: each side of the second one cuts off what lies
// beyond it. A cut at most doubles the corners, whatever rounding does.
double intersection(const Point *one, const Point *two) {
  Point from[64], to[64];
  int n = 4;
  for (int k = 0; k < 4; k++) from[k] = one[k];
  for (int side = 0; side < 4 && n > 0; side++) {
    const Point a = two[side], b = two[(side + 1) % 4];
    int m = 0;
    for (int k = 0; k < n; k++) {
      const Point p = from[k], q = from[(k + 1) % n];
      const double at_p = cross(a, b, p), at_q = cross(a, b, q);
      if (at_p <= 0) to[m++] = p;
      if ((at_p < 0 && at_q > 0) || (at_p > 0 && at_q < 0)) {
        const double t = at_p / (at_p - at_q);
        to[m++] = {p.x + t * (q.x - p.x), p.y + t * (q.y - p.y)};
      }
    }
    n = m;
    for (int k = 0; k < n; k++) from[k] = to[k];
  }
  double twice = 0;
  for (int k = 2; k < n; k++) twice += cross(from[0], from[k - 1], from[k]);
  return __builtin_fabs(twice) / 2;
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
  for (int64_t i = 0; i < n; i++) corners(first + 5 * i, points + 4 * i);
  for (int64_t j = 0; j < m; j++) corners(second + 5 * j, points + 4 * (n + j));
  float *to = data<float>(out);
  const T *boxes1 = first, *boxes2 = second;
  parallel_ranges(c, n * m, 256, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at++) {
      const T *a = boxes1 + at / m * 5, *b = boxes2 + at % m * 5;
      const double area1 = double(a[2]) * double(a[3]), area2 = double(b[2]) * double(b[3]);
      to[at] = 0;
      if (!(area1 >= 1e-14 && area2 >= 1e-14)) continue;
      const double dx = double(b[0]) - double(a[0]), dy = double(b[1]) - double(a[1]);
      Point two[4];
      for (int k = 0; k < 4; k++) {
        const Point p = points[4 * (n + at % m) + k];
        two[k] = {p.x + dx, p.y + dy};
      }
      const double both = intersection(points + at / m * 4, two);
      const double share = both / (area1 + area2 - both);
      to[at] = share > 0 ? float(share < 1 ? share : 1) : 0.0f;
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
