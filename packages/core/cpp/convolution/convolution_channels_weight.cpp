// The derivative by the weights, from pixels with their channels side by side: products of a row of
// the window (as many numbers as it has pixels and channels) and the filters, summed over images.
#include "convolution/convolution_channels.h"
#include "linalg/tile.h"

namespace plait::core {
namespace {

constexpr int64_t kPrepared = 4 << 20;  // elements of images that are rearranged at once
constexpr int64_t kMinUnits = 16;  // smallest number of parallel units, if there are enough images
constexpr int64_t kPartials = 4 << 20;  // largest number of partial sums

template <class T>
constexpr int64_t kPair = 2 * kPanel<T>;  // filters that are summed together

// How the work is cut. Images are taken `at_once`, in `parts` with sums of their own; the result is
// cut into the window's rows (or elements, if these are not contiguous) and pairs of panels.
template <class T>
struct Cut {
  int64_t panels, run, runs;  // run: contiguous elements of x under the window
  int64_t width, height;  // of an image with its border
  int64_t image, gradient;  // elements of one group of an image, rearranged
  int64_t at_once, pairs, parts, result;
  explicit Cut(const Conv &v) {
    panels = ceil_div(v.goc(), kPanel<T>) * kPanel<T>;
    const bool row = v.dw == 1;
    run = row ? v.kw * v.gc() : v.gc();
    runs = row ? v.kh : v.kh * v.kw;
    const int64_t reach = (v.ow - 1) * v.sw + (v.kw - 1) * v.dw + 1;
    width = reach > v.w + v.pw ? reach : v.w + v.pw;
    height = (v.oh - 1) * v.sh + (v.kh - 1) * v.dh + 1;
    image = height * width * v.gc();
    gradient = v.oh * v.ow * panels;
    at_once = kPrepared / ((image + gradient) * v.groups) + 1;
    if (at_once > v.n) at_once = v.n;
    pairs = ceil_div(panels, kPair<T>);
    result = v.groups * pairs * v.patch() * kPair<T>;
    parts = ceil_div(kMinUnits, runs * pairs * v.groups);
    const int64_t most = kPartials / result < at_once ? kPartials / result : at_once;
    if (parts > most) parts = most;
    if (parts < 1) parts = 1;
    parts = ceil_div(at_once, ceil_div(at_once, parts));  // so that every part has an image
  }
};

// The sum of one part for a run of the window and a pair of panels, over images [begin, end) of
// `images`.
template <class T>
void add_run(const Conv &v, const Cut<T> &cut, const T *images, const T *gradients, int64_t group,
             int64_t run, int64_t pair, int64_t begin, int64_t end, bool add, T *to) {
  const int64_t row = v.dw == 1 ? run : run / v.kw, column = v.dw == 1 ? 0 : run % v.kw;
  const int64_t pitch = cut.width * v.gc(), area = v.oh * v.ow, first = pair * kPair<T>;
  const int64_t rest = cut.panels - first, wide = rest < kPair<T> ? rest : kPair<T>;
  const Rounds rounds{v.oh, v.sh * pitch, v.ow * kPanel<T>};
  T *sums = to + ((group * cut.pairs + pair) * v.patch() + run * cut.run) * kPair<T>;
  const Rounds again{end - begin, v.groups * cut.image, v.groups * cut.gradient};
  const T *x = images + (begin * v.groups + group) * cut.image;
  const T *g = gradients + (begin * v.groups + group) * cut.gradient + first * area;
  multiply_rounds(cut.run, wide, v.ow, rounds, again,
                  Matrix<T>{x + row * v.dh * pitch + column * v.dw * v.gc(), 1, v.sw * v.gc()},
                  Panels<T>::packed(g, area), sums, kPair<T>, add);
}

// Images [first, first + n) with their gradients, as pixels.
template <class T>
plait_status prepare(const plait_call *c, const Conv &v, const Cut<T> &cut, const T *gy, const T *x,
                     int64_t first, int64_t n, T *images, T *gradients) {
  const int64_t area = v.oh * v.ow;
  const Frame frame{v.gc(), v.h, v.w, -v.ph, cut.height, v.pw, cut.width};
  const int64_t grain = kChunk / (cut.image + cut.gradient);
  return with_scratch<T>(
      c, n * v.groups, grain, cut.height * v.w * v.gc(), [&](int64_t i, T *scratch) {
        const int64_t at = first * v.groups + i;
        to_pixels(frame, x + at * v.gc() * v.h * v.w, images + i * cut.image, scratch);
        pack_panels(Matrix<T>{gy + at * v.goc() * area, 1, area}, area, v.goc(),
                    gradients + i * cut.gradient);
      });
}

// Adds the parts up in order and stores them as filters, a panel at a time.
template <class T>
void finish(const plait_call *c, const Conv &v, const Cut<T> &cut, T *sums, T *gw) {
  const int64_t taps = v.kh * v.kw, channels = v.gc(), panels = cut.panels / kPanel<T>;
  const int64_t patch = v.patch(), step = channels * kPair<T>;
  parallel_ranges(c, v.groups * panels, kChunk / (patch * kPanel<T>), [&](int64_t t, int64_t end) {
    for (; t < end; t++) {
      const int64_t group = t / panels, first = t % panels * kPanel<T>;
      const int64_t rest = v.goc() - first, wide = rest < kPanel<T> ? rest : kPanel<T>;
      T *own = sums + (group * cut.pairs + first / kPair<T>)*patch * kPair<T> + first % kPair<T>;
      T *filters = gw + (group * v.goc() + first) * patch;
      for (int64_t k = 0; k < channels; k++, own += kPair<T>, filters += taps) {
        for (int64_t p = 1; p < cut.parts; p++)
          for (int64_t i = 0; i < taps; i++) {
            T *to = own + i * step;
            const T *from = to + p * cut.result;
            for (int64_t o = 0; o < kPanel<T>; o++) to[o] += from[o];
          }
        transposed(filters, patch, own, step, taps, wide);
      }
    }
  });
}

}  // namespace

template <class T>
plait_status channels_backward_weight(const plait_call *c, const Conv &v, const T *gy, const T *x,
                                      T *gw) {
  const Cut<T> cut(v);
  Workspace space, rearranged;
  PLAIT_TRY(space.take(c, uint64_t(cut.parts * cut.result) * sizeof(T)));
  const int64_t each = (cut.image + cut.gradient) * v.groups;
  PLAIT_TRY(rearranged.take(c, uint64_t(cut.at_once * each) * sizeof(T)));
  T *sums = space.as<T>(), *images = rearranged.as<T>();
  T *gradients = images + cut.at_once * v.groups * cut.image;
  const int64_t runs = v.groups * cut.runs, units = runs * cut.pairs;
  for (int64_t first = 0; first < v.n; first += cut.at_once) {
    const int64_t n = v.n - first < cut.at_once ? v.n - first : cut.at_once;
    PLAIT_TRY(prepare(c, v, cut, gy, x, first, n, images, gradients));
    const int64_t share = ceil_div(n, cut.parts);
    parallel(c, cut.parts * units, [&](int64_t t) {
      const int64_t part = t / units, run = t % units % runs;
      const int64_t begin = part * share < n ? part * share : n;
      const int64_t end = begin + share < n ? begin + share : n;
      add_run(v, cut, images, gradients, run / cut.runs, run % cut.runs, t % units / runs, begin,
              end, first > 0, sums + part * cut.result);
    });
  }
  finish(c, v, cut, sums, gw);
  return PLAIT_OK;
}

bool channels_weight_fit(const Conv &v) { return v.goc() >= 12 && channels_border_fit(v); }

#define PLAIT_INSTANCE(T)                                                                     \
  template plait_status channels_backward_weight(const plait_call *, const Conv &, const T *, \
                                                 const T *, T *);
PLAIT_INSTANCE(float)
PLAIT_INSTANCE(double)

}  // namespace plait::core
