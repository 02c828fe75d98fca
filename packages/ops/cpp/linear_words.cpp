#include "linear_words.hpp"

#include "words.hpp"

namespace plait::ops {

void require_matrix(const Scope &x, const char *argument, const plait_tensor *t) {
  if (t->dl.ndim < 2)
    fail(x, PLAIT_SHAPE_ERROR,
         std::string("`") + argument +
             "` must have at least 2 dimensions, of which the last two are a matrix; got shape " +
             show(shape_of(t)));
  require(x, argument, t->dl.dtype, "inexact");
}

void require_square(const Scope &x, const char *argument, const plait_tensor *t) {
  require_matrix(x, argument, t);
  const Ints shape = shape_of(t);
  if (shape[-1] != shape[-2])
    fail(x, PLAIT_SHAPE_ERROR,
         std::string("`") + argument + "` must be square in its last two dimensions; got shape " +
             show(shape));
}

}  // namespace plait::ops
