// The words of plait_ops/fft_words.py in C++.
#pragma once
#include "scope.hpp"

namespace plait::ops {

const char *fft_norm(const Scope &x, const char *norm);
const char *fft_swapped(const Scope &x, const char *norm);
DType fft_dtype(const Scope &x, DType dtype);
Dims fft_dims(const Scope &x, Ints shape, const std::optional<Ints> &s,
              const std::optional<Ints> &dim);
void fft_whole(const Scope &x, Ints shape, Ints dim, const char *norm);
Dims fft_sizes(const Scope &x, Ints shape, const std::optional<Ints> &s, Ints dims);

}  // namespace plait::ops
