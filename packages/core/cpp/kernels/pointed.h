// Walks over an index tensor of gather, scatter and their kin.
#ifndef PLAIT_CORE_POINTED_H
#define PLAIT_CORE_POINTED_H
#include "kernels/index.h"
#include "kernels/plan.h"

namespace plait::core {

// Walks over an index tensor in C order together with `other` (a tensor of at least its sizes, or
// NULL) and with what it points to along `dim` of `self`. f(place, other's element, n, steps) gets
// the innermost dimension's indices.
struct Pointed {
  Plan plan;
  int64_t length, step;  // of dim, in self; the step in elements
  Pointed(const DLTensor *index, const DLTensor *self, const DLTensor *other, int64_t dim,
          int item) {
    DLTensor base = *self, rest = other ? *other : *index;
    int64_t strides[PLAIT_MAX_DIMS];
    for (int d = 0; d < self->ndim; d++) strides[d] = d == dim ? 0 : self->strides[d];
    base.strides = strides;
    base.shape = rest.shape = index->shape;
    length = self->ndim ? self->shape[dim] : 1;
    step = self->ndim ? self->strides[dim] : 0;
    plan.add(index, 8);
    plan.add(&base, item);
    plan.add(&rest, other ? item : 8);
    plan.finish(false);
  }
  // f(self's element, other's element) for each index, in order.
  template <class T, class F>
  void each(F &&f) const {
    if (plan.numel == 0) return;
    int64_t at[PLAIT_MAX_DIMS + 1];
    char *p[kMaxOperands];
    plan.seek(0, at, p);
    const int last = plan.ndim - 1;
    const int64_t n = plan.size[last], a = plan.stride[0][last], b = plan.stride[1][last],
                  e = plan.stride[2][last];
    for (int64_t done = 0; done < plan.numel; done += n, plan.next_row(at, p))
      for (int64_t i = 0; i < n; i++) {
        const int64_t v = from_start(*reinterpret_cast<const int64_t *>(p[0] + i * a), length);
        f(reinterpret_cast<T *>(p[1] + i * b) + v * step, reinterpret_cast<T *>(p[2] + i * e));
      }
  }
};

// Runs f(const Pointed &) over parts of the index tensor on several threads. Parts are cut along
// the largest dimension but `dim`, so that what falls on one place stays in one part and in order;
// with `any` (nothing is written through the index) `dim` may be cut too.
template <class F>
void parallel_parts(const plait_call *c, const DLTensor *index, const DLTensor *self,
                    const DLTensor *other, int64_t dim, int item, bool any, F &&f) {
  const int64_t total = numel(index);
  int cut = -1;
  for (int d = 0; d < index->ndim; d++)
    if ((d != dim || any) && (cut < 0 || index->shape[d] > index->shape[cut])) cut = d;
  const int64_t size = cut < 0 ? 1 : index->shape[cut];
  if (total <= kSerial || size < 2) return f(Pointed(index, self, other, dim, item));
  const int64_t width = total / size, grain = kSerial / 2 / width + 1;
  parallel_ranges(c, size, grain, [&](int64_t begin, int64_t end) {
    DLTensor part[3] = {*index, *self, other ? *other : *index};
    int64_t shape[PLAIT_MAX_DIMS];
    for (int d = 0; d < index->ndim; d++) shape[d] = d == cut ? end - begin : index->shape[d];
    part[0].shape = shape;
    for (int k = 0; k < 3; k++) {
      if (k == 1 && cut == dim) continue;  // the index says where along dim
      part[k].data = static_cast<char *>(part[k].data) + begin * part[k].strides[cut] *
                                                             (k == 0             ? 8
                                                              : k == 2 && !other ? 8
                                                                                 : item);
    }
    f(Pointed(&part[0], &part[1], other ? &part[2] : nullptr, dim, item));
  });
}

}  // namespace plait::core
#endif  // PLAIT_CORE_POINTED_H
