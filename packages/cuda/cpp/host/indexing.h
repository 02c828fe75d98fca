// Places that index tensors name: positions with the offsets of `self`, of another tensor and of
// the index in each dimension. Element (position) of self lies at the offset of the position plus
// the index there times `step`.
#pragma once
#include "host/copy.h"
#include "host/walk.h"

namespace plait::cuda {

struct IndexSpace {
  int ndim = 0;
  int64_t shape[2 * PLAIT_MAX_DIMS];
  // In elements; `self` is 0 along the dimension that is indexed.
  int64_t self[2 * PLAIT_MAX_DIMS], other[2 * PLAIT_MAX_DIMS], index[2 * PLAIT_MAX_DIMS];
  const int64_t *indices = nullptr;
  int64_t step = 1, low = 0, size = 0;  // indices are in [low, size)
  bool is_checked = true;               // false: indices are offsets, which were checked
  int64_t lowest = 0, highest = 0;      // what an index adds to the offset in self

  int64_t numel() const {
    int64_t n = 1;
    for (int d = 0; d < ndim; d++) n *= shape[d];
    return n;
  }
  // Sets the strides of `other`, a tensor that broadcasts to the space.
  void set_other(const DLTensor *t);
};

// gather, scatter: the index has the dimensions of self.
void space_along(const DLTensor *self, const DLTensor *index, int64_t dim, IndexSpace *space);
// index_select, index_add, embedding: a vector of indices for one dimension of self. With `rows`
// the index has any shape, and self is a matrix.
void space_of_slices(const DLTensor *self, const DLTensor *index, int64_t dim, IndexSpace *space);
void space_of_rows(const DLTensor *self, const DLTensor *index, IndexSpace *space);

// Advanced indexing: integer tensors that are broadcast together, NULL for a whole dimension. The
// broadcast dimensions stand where the indexed ones stood if those are adjacent, else in front.
class TensorIndices {
 public:
  plait_status take(const plait_call *c, const DLTensor *self, const plait_value &list,
                    IndexSpace *space);

 private:
  struct Axis {
    Operand index;
    int dim;
  };
  plait_status make_offsets(const plait_call *c, const DLTensor *self, const int64_t *shape,
                            int ndim);
  Axis axes_[PLAIT_MAX_DIMS];
  int n_axes_ = 0;
  DeviceWorkspace offsets_;
};

// offsets[i] (+)= index of element i, in [-size, size), times step; the index broadcasts.
plait_status add_index_offsets(const plait_call *c, const DLTensor *index, const int64_t *shape,
                               int ndim, int64_t size, int64_t step, bool is_first,
                               int64_t *offsets);

}  // namespace plait::cuda
