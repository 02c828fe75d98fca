#include "fft_words.hpp"

#include "promotion.hpp"
#include "words.hpp"

namespace plait::ops {

const char *fft_norm(const Scope &x, const char *norm) {
  if (!norm) return "backward";
  for (const char *known : {"backward", "ortho", "forward"})
    if (equal(norm, known)) return known;
  fail(x, PLAIT_VALUE_ERROR,
       std::string(R"(`norm` must be "backward", "ortho" or "forward"; got ")") + norm + "\"");
}

const char *fft_swapped(const Scope &x, const char *norm) {
  const char *chosen = fft_norm(x, norm);
  if (equal(chosen, "ortho")) return chosen;
  return equal(chosen, "backward") ? "forward" : "backward";
}

DType fft_dtype(const Scope &x, DType dtype) {
  if (same(dtype, dtype::float16) || same(dtype, dtype::bfloat16)) return dtype::float32;
  return category(dtype) < Category::floating ? default_dtype(x) : dtype;
}

Dims fft_dims(const Scope &x, Ints shape, const std::optional<Ints> &s,
              const std::optional<Ints> &dim) {
  if (dim) {
    if (s && s->size() != dim->size())
      fail(x, PLAIT_VALUE_ERROR,
           "`s` and `dim` must have the same length; got " + show(*s) + " and " + show(*dim));
    return dim->size() ? reduce_dims(x, "dim", dim, shape) : Dims();
  }
  if (s && s->size() > shape.size())
    fail(x, PLAIT_SHAPE_ERROR,
         "`s` " + show(*s) + " must have at most as many sizes as there are dimensions in shape " +
             show(shape));
  Dims out;
  for (int64_t i = s ? shape.size() - s->size() : 0; i < shape.size(); i++) out.push(i);
  return out;
}

Dims fft_sizes(const Scope &x, Ints shape, const std::optional<Ints> &s, Ints dims) {
  Dims out;
  for (int64_t i = 0; i < dims.size(); i++) {
    if (dims[i] >= shape.size())  // 0, of a shape without dimensions
      fail(x, PLAIT_INDEX_ERROR,
           "`dim` " + show(dims[i]) + " names no dimension of shape " + show(shape));
    const int64_t length = s ? (*s)[i] : -1, size = length == -1 ? shape[dims[i]] : length;
    if (size < 1)
      fail(x, PLAIT_VALUE_ERROR,
           "dimension " + show(dims[i]) + " of shape " + show(shape) +
               " must have at least 1 element to transform; got " + show(size));
    out.push(size);
  }
  return out;
}

void fft_whole(const Scope &x, Ints shape, Ints dim, const char *norm) {
  fft_norm(x, norm);
  if (!dim.size()) fail(x, PLAIT_VALUE_ERROR, "`dim` must have at least 1 dimension; got ()");
  fft_sizes(x, shape, std::nullopt, reduce_dims(x, "dim", dim, shape));
}

}  // namespace plait::ops
