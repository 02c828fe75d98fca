/* clang-format off */
/* Sparse tensors as tensor handles, such as gradients of embeddings; docs/design/0035 */
#ifndef PLAIT_SPARSE_H
#define PLAIT_SPARSE_H
#include "abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A sparse tensor in slot[3] of a ::plait_tensor: some elements are stored, all others are 0.
 *
 * Shape and dtype of the tensor are those of the whole sparse tensor. Its memory is one element
 * with strides of 0, which nobody reads or writes. Its `layers` have the bit of a layer that
 * gives operators a dense tensor, unless an operator takes sparse ones: code that only calls
 * operators needs to know nothing of it. Code that reads memory, or adds in place, tests
 * slot[3], which is NULL for all other tensors. */
typedef struct plait_sparse {
  plait_object o;
  uint32_t size;         /**< sizeof, as the component that created it was compiled */
  uint32_t coalesced;    /**< 1: the indices are sorted, and each occurs once */
  uint64_t layer;        /**< bit of the layer in plait_tensor::layers */
  plait_tensor *indices; /**< int64, (dimensions, n); owned */
  plait_tensor *values;  /**< (n, ...) with the other dimensions; owned; equal indices are added */
} plait_sparse;

#ifdef __cplusplus
}
#endif
#endif /* PLAIT_SPARSE_H */
