// The words of plait_ops/linear_words.py in C++.
#pragma once
#include "scope.hpp"

namespace plait::ops {

void require_matrix(const Scope &x, const char *argument, const plait_tensor *t);
void require_square(const Scope &x, const char *argument, const plait_tensor *t);

}  // namespace plait::ops
