// The pixels that a deformable convolution samples from an image (bilinear), and the transposed
// operation. The four pixels around a point and their weights are computed once for many channels.
#include "convolution/convolution.h"
#include "kernel/dense.h"

namespace plait::core {
namespace {

constexpr int64_t kChannels = 16;  // of an image in one unit of parallel work

struct Deform {
  int64_t n, c, h, w, groups, kh, kw, oh, ow;
  int64_t sh, sw, ph, pw, dh, dw;
  bool along_y, along_x;

  int64_t places() const { return kh * kw; }
  int64_t area() const { return oh * ow; }
  int64_t of_group() const { return c / groups; }  // channels
};

template <class T>
struct Corners {
  int64_t at[4];  // pixels of the image, -1: outside
  T weight[4];
};

// The corners for filter element k of group g in row y of the result.
template <class T>
void find(const Deform &v, const T *offset, int64_t b, int64_t g, int64_t k, int64_t y,
          Corners<T> *to) {
  const T *down = offset + ((b * v.groups + g) * v.places() + k) * 2 * v.area() + y * v.ow;
  const T *right = down + v.area();
  for (int64_t x = 0; x < v.ow; x++) {
    const T row = T(y * v.sh - v.ph + k / v.kw * v.dh) + down[x];
    const T column = T(x * v.sw - v.pw + k % v.kw * v.dw) + right[x];
    Corners<T> &p = to[x];
    for (int64_t i = 0; i < 4; i++) p.at[i] = -1, p.weight[i] = T(0);
    if (!(row > T(-2) && row < T(v.h) + T(1) && column > T(-2) && column < T(v.w) + T(1))) continue;
    const T top = T(__builtin_floor(double(row))), left = T(__builtin_floor(double(column)));
    const T ly = row - top, lx = column - left;
    const T wy[2] = {v.along_y ? T(-1) : T(1) - ly, v.along_y ? T(1) : ly};
    const T wx[2] = {v.along_x ? T(-1) : T(1) - lx, v.along_x ? T(1) : lx};
    for (int64_t i = 0; i < 4; i++) {
      const int64_t r = int64_t(top) + i / 2, q = int64_t(left) + i % 2;
      if (r < 0 || r >= v.h || q < 0 || q >= v.w) continue;
      p.at[i] = r * v.w + q;
      p.weight[i] = wy[i / 2] * wx[i % 2];
    }
  }
}

template <class T>
plait_status sample(const plait_call *c, const Deform &v) {
  DLTensor *out = result(c);
  if (numel(out) == 0) return PLAIT_OK;
  Dense<T> input, offset;
  PLAIT_TRY(input.take(c, tensor(c, 0)));
  PLAIT_TRY(offset.take(c, tensor(c, 1)));
  const T *images = input, *offsets = offset;
  const int64_t grain = kSerial / (8 * v.of_group() * v.ow + 1) + 1;
  return with_scratch<Corners<T>>(
      c, v.n * v.groups * v.places() * v.oh, grain, v.ow, [&](int64_t task, Corners<T> *row) {
        const int64_t y = task % v.oh, k = task / v.oh % v.places();
        const int64_t bg = task / v.oh / v.places(), b = bg / v.groups, g = bg % v.groups;
        find(v, offsets, b, g, k, y, row);
        for (int64_t ch = g * v.of_group(); ch < (g + 1) * v.of_group(); ch++) {
          const T *image = images + (b * v.c + ch) * v.h * v.w;
          T *to = data<T>(out) + ((b * v.c + ch) * v.places() + k) * v.area() + y * v.ow;
          for (int64_t x = 0; x < v.ow; x++) {
            T sum = T(0);
            for (int64_t i = 0; i < 4; i++)
              if (row[x].at[i] >= 0) sum += row[x].weight[i] * image[row[x].at[i]];
            to[x] = sum;
          }
        }
      });
}

// Each unit of work has some channels of an image to itself, and adds in one order.
template <class T>
plait_status scatter(const plait_call *c, const Deform &v) {
  DLTensor *out = result(c);
  if (numel(out) == 0) return PLAIT_OK;
  Dense<T> grad, offset;
  PLAIT_TRY(grad.take(c, tensor(c, 0)));
  PLAIT_TRY(offset.take(c, tensor(c, 1)));
  const T *grads = grad, *offsets = offset;
  const int64_t blocks = ceil_div(v.of_group(), kChannels);
  return with_scratch<Corners<T>>(
      c, v.n * v.groups * blocks, 1, v.ow, [&](int64_t task, Corners<T> *row) {
        const int64_t b = task / blocks / v.groups, g = task / blocks % v.groups;
        const int64_t first = g * v.of_group() + task % blocks * kChannels;
        const int64_t end = (g + 1) * v.of_group();
        const int64_t last = first + kChannels < end ? first + kChannels : end;
        T *images = data<T>(out) + b * v.c * v.h * v.w;
        memset(images + first * v.h * v.w, 0, size_t((last - first) * v.h * v.w) * sizeof(T));
        for (int64_t k = 0; k < v.places(); k++)
          for (int64_t y = 0; y < v.oh; y++) {
            find(v, offsets, b, g, k, y, row);
            for (int64_t ch = first; ch < last; ch++) {
              T *image = images + ch * v.h * v.w;
              const T *from = grads + ((b * v.c + ch) * v.places() + k) * v.area() + y * v.ow;
              for (int64_t x = 0; x < v.ow; x++)
                for (int64_t i = 0; i < 4; i++)
                  if (row[x].at[i] >= 0) image[row[x].at[i]] += row[x].weight[i] * from[x];
            }
          }
      });
}

// The geometry of a call: images of shape `size`; the numbers begin at argument `at`.
Deform deform(const plait_call *c, const int64_t *size, int at) {
  const DLTensor *offset = tensor(c, 1);
  int64_t pairs[4][2];
  for (int i = 0; i < 4; i++) {
    const plait_value &value = c->in[at + i];
    for (int k = 0; k < 2; k++)
      pairs[i][k] = value.tag == PLAIT_INTS ? value.u.is[value.n > 1 ? k : 0] : value.u.i;
  }
  Deform v{};
  v.n = size[0], v.c = size[1], v.h = size[2], v.w = size[3];
  v.kh = pairs[0][0], v.kw = pairs[0][1], v.sh = pairs[1][0], v.sw = pairs[1][1];
  v.ph = pairs[2][0], v.pw = pairs[2][1], v.dh = pairs[3][0], v.dw = pairs[3][1];
  v.groups = offset->shape[1] / (2 * v.places());
  v.oh = offset->shape[2], v.ow = offset->shape[3];
  v.along_y = integer(c, at + 4) != 0, v.along_x = integer(c, at + 5) != 0;
  return v;
}

// deform_sample(input, offset, kernel_size, stride, padding, dilation, along_y, along_x)
plait_status deform_sample(plait_call *c) {
  const Deform v = deform(c, tensor(c, 0)->shape, 2);
  PLAIT_FLOATING(kind(result(c)->dtype), return sample<T>(c, v))
  return PLAIT_OK;
}

// deform_scatter(grad, offset, size, kernel_size, stride, padding, dilation, along_y, along_x)
plait_status deform_scatter(plait_call *c) {
  const Deform v = deform(c, result(c)->shape, 3);
  PLAIT_FLOATING(kind(result(c)->dtype), return scatter<T>(c, v))
  return PLAIT_OK;
}

PLAIT_KERNEL("deform_sample", deform_sample);
PLAIT_KERNEL("deform_scatter", deform_scatter);

}  // namespace
}  // namespace plait::core
