// Overlaps of boxes, upright and rotated. The kernels of the CPU and of GPUs use the same
// functions.
#pragma once
#include "pointwise/math.h"

namespace plait::boxes {

template <class T>
struct Upright {
  T x1, y1, x2, y2, area;
};

template <class T>
PLAIT_HD Upright<T> upright(T x1, T y1, T x2, T y2) {
  return {x1, y1, x2, y2, (x2 - x1) * (y2 - y1)};
}

// The intersection of two boxes, divided by their union.
template <class T>
PLAIT_HD T overlap(const Upright<T> &a, const Upright<T> &b) {
  const T x1 = a.x1 < b.x1 ? b.x1 : a.x1, y1 = a.y1 < b.y1 ? b.y1 : a.y1;
  const T x2 = b.x2 < a.x2 ? b.x2 : a.x2, y2 = b.y2 < a.y2 ? b.y2 : a.y2;
  const T width = x2 - x1 > 0 ? x2 - x1 : T(0), height = y2 - y1 > 0 ? y2 - y1 : T(0);
  const T inside = width * height;
  return inside / (a.area + b.area - inside);
}

// The largest number of type T that is not above x: a number of type T is above both or neither.
template <class T>
PLAIT_HD T rounded_down(double x) {
  const T limit = T(x);
  if constexpr (sizeof(T) == 4)
    if (double(limit) > x) {
      const uint32_t bits = scalar::math::bits(limit);
      return scalar::math::from_bits(limit > 0   ? bits - 1
                                     : limit < 0 ? bits + 1
                                                 : uint32_t(0x80000001));
    }
  return limit;
}

struct Point {
  double x, y;
};

PLAIT_HD double cross(Point a, Point b, Point p) {
  return (b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x);
}

// The corners of a box around its centre, in one sense of rotation.
PLAIT_HD_CALL void corners(double width, double height, double degrees, Point *to) {
  const double angle = degrees * (3.14159265358979323846 / 180);
  const double cosine = scalar::math::cos(angle), sine = scalar::math::sin(angle);
  for (int k = 0; k < 4; k++) {
    const double right = (k < 2 ? 0.5 : -0.5) * width;
    const double down = (k == 0 || k == 3 ? 0.5 : -0.5) * height;
    to[k] = {cosine * right + sine * down, cosine * down - sine * right};
  }
}

// The area of the intersection of two rectangles: each side of the second one cuts off what lies
// beyond it. A cut at most doubles the corners, whatever rounding does.
PLAIT_HD_CALL double intersection(const Point *one, const Point *two) {
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
  return twice < 0 ? -twice / 2 : twice / 2;
}

// A rotated box: centre, sides, and degrees.
struct Rotated {
  double x, y, width, height, degrees;
};

// The intersection of two rotated boxes, divided by their union; `one` and `two` are their corners.
PLAIT_HD_CALL float overlap(const Rotated &a, const Point *one, const Rotated &b,
                            const Point *two) {
  const double area = a.width * a.height, other = b.width * b.height;
  if (!(area >= 1e-14 && other >= 1e-14)) return 0;
  Point moved[4];
  for (int k = 0; k < 4; k++) moved[k] = {two[k].x + (b.x - a.x), two[k].y + (b.y - a.y)};
  const double both = intersection(one, moved);
  const double share = both / (area + other - both);
  return share > 0 ? float(share < 1 ? share : 1) : 0.0f;
}

}  // namespace plait::boxes
