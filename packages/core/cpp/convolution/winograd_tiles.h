// Tiles of images, with their channels side by side, and back.
#pragma once
#include "convolution/convolution_channels.h"
#include "convolution/winograd_transforms.h"

namespace plait::core {

// The squares that images are cut into. Rows of squares are counted through all images.
struct Grid {
  int64_t h, w;            // of an image
  int64_t step, side;      // from a square to the next; numbers along a side
  int64_t top, left;       // how far the first square begins outside of the image
  int64_t down, across;    // squares along an image's sides
  // Elements of a buffer for `rows` rows of squares as pixels of kChannels channels.
  template <class T>
  int64_t pixels(int64_t rows) const {
    const int64_t high = (rows - 1) * step + side;
    return (high < h ? high : h) * w * kChannels<T>;
  }
};

// Maps the squares of the rows [begin, end) of `lanes` adjacent channels, h * w elements apart, of
// images that are `image` elements apart. What is outside of an image is zero.
template <class T>
void read_tiles(const Grid &g, SquareMap<T> map, const T *images, int64_t image, int64_t lanes,
                int64_t begin, int64_t end, T *to, SquareSteps target, T *pixels);

// Maps squares to rows [begin, end) of squares of images; what lies outside is dropped. `shift`:
// of each channel, or NULL. `activation` changes what is written; an image with squares whose first
// or last element is not finite is marked in `broken`.
template <class T>
void write_tiles(const Grid &g, SquareMap<T> map, const T *from, SquareSteps source, const T *shift,
                 const Activation &activation, T *images, int64_t image, int64_t lanes,
                 int64_t begin, int64_t end, T *pixels, uint8_t *broken);

// The distance of planes of `size` elements: an odd number of cache lines, so that the planes of
// one element do not share sets of the cache.
template <class T>
constexpr int64_t plane_step(int64_t size) {
  return (ceil_div(size, kChannels<T>) | 1) * kChannels<T>;
}

}  // namespace plait::core
