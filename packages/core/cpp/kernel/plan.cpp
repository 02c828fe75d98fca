#include "kernel/plan.h"

namespace plait::core {
namespace {

int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

}  // namespace

void Plan::add(const DLTensor *t, int item) {
  const int k = operands++;
  data[k] = static_cast<char *>(t->data);
  if (k == 0) {
    ndim = t->ndim;
    for (int d = 0; d < ndim; d++) numel *= size[d] = t->shape[d];
  }
  const int lead = ndim - t->ndim;  // broadcasting aligns at the last dimension
  for (int d = 0; d < lead; d++) stride[k][d] = 0;
  for (int d = 0; d < t->ndim; d++)
    stride[k][lead + d] = t->shape[d] == 1 ? 0 : t->strides[d] * item;
}

void Plan::add_constant(void *value) {
  const int k = operands++;
  data[k] = static_cast<char *>(value);
  for (int d = 0; d < ndim; d++) stride[k][d] = 0;
}

void Plan::finish(bool sort) {
  int n = 0;
  for (int d = 0; d < ndim; d++) {  // drop
    if (size[d] == 1) continue;
    size[n] = size[d];
    for (int k = 0; k < operands; k++) stride[k][n] = stride[k][d];
    n++;
  }
  if (sort)
    for (int d = 1; d < n; d++)
      for (int e = d; e > 0 && magnitude(stride[0][e - 1]) < magnitude(stride[0][e]); e--) {
        const int64_t s = size[e];
        size[e] = size[e - 1];
        size[e - 1] = s;
        for (int k = 0; k < operands; k++) {
          const int64_t t = stride[k][e];
          stride[k][e] = stride[k][e - 1];
          stride[k][e - 1] = t;
        }
      }
  int last = 0;
  for (int d = 1; d < n; d++) {  // merge d into `last`
    bool fits = true;
    for (int k = 0; k < operands; k++) fits &= stride[k][last] == stride[k][d] * size[d];
    if (fits) {
      size[last] *= size[d];
    } else {
      size[++last] = size[d];
    }
    for (int k = 0; k < operands; k++) stride[k][last] = stride[k][d];
  }
  ndim = n ? last + 1 : 1;
  if (!n) {
    size[0] = 1;
    for (int k = 0; k < operands; k++) stride[k][0] = 0;
  }
}

void Plan::seek(int64_t linear, int64_t *at, char **p) const {
  for (int k = 0; k < operands; k++) p[k] = data[k];
  for (int d = ndim - 1; d >= 0; d--) {
    at[d] = linear % size[d];
    linear /= size[d];
    for (int k = 0; k < operands; k++) p[k] += at[d] * stride[k][d];
  }
}

}  // namespace plait::core
