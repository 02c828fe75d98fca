/* clang-format off */
/* Sparse tensors as handles, which is how gradients of embeddings pass through an engine; docs/design/0035 */
#ifndef PLAIT_SPARSE_H
#define PLAIT_SPARSE_H
#include "abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What slot[3] of a tensor holds that stands for a sparse one: it has some elements, and all others are 0. Its shape and
 * dtype are the whole tensor's; its bytes are a single element, seen with strides of 0, which nobody reads or writes. Its
 * `layers` have the bit of a layer that gives it to operators as a dense tensor, unless they can do better: who only
 * calls operators needs to know nothing of it. Who reads bytes, or adds in place, looks for it: slot[3] is NULL for all
 * other tensors */
typedef struct plait_sparse {
  plait_object o;
  uint32_t size;         /* sizeof on the maker's side */
  uint32_t coalesced;    /* whether the indices are sorted and occur once */
  uint64_t layer;        /* the layer, as a bit of plait_tensor::layers */
  plait_tensor *indices; /* int64, (dimensions, n); owned */
  plait_tensor *values;  /* (n, ...) with the dimensions that are left; owned. An index that is there twice: the sum */
} plait_sparse;

#ifdef __cplusplus
}
#endif
#endif /* PLAIT_SPARSE_H */
