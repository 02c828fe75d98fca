// Tensors of all samples of a batch that look like the tensor of one sample: vmap's.
#pragma once
#include <plait/gil.hpp>

#include <vector>

#include "binding.hpp"

namespace plait::func {

// Whether a tensor stands for those of all samples, so that its elements cannot be read.
bool is_batched(const plait_tensor *);
// All samples of a batched tensor, a new reference, and its level; nullptr for others, and with an
// exception.
plait_tensor *all_samples(const plait_tensor *, int64_t *level);
// The layers of batched tensors; 0: the rules are not set yet.
uint64_t batching_layers();
// All samples of a tensor that is batched at this level, a new reference; nullptr for others, and
// with an exception.
plait_tensor *samples_at(const plait_tensor *, int64_t level);
// A call of vmap of this thread begins and ends: tensors that are made in it become batched when
// values that differ between samples are written to them.
struct Scope {
  int64_t level, size;
  bool ended;  // a call on batched tensors of a call of vmap that has ended
};
void open_scope(int64_t level, int64_t size, bool ended = false);
void close_scope();
// The thread is not in the calls from this level on, for a while.
std::vector<Scope> leave_scopes(int64_t level);
void enter_scopes(const std::vector<Scope> &);
// Notes a tensor that was made by other means than an operator.
void note_fresh(const plait_tensor *);
// A tensor of one sample that stands for all that lie along dimension 0 of `value`, which is taken
// over, also on failure.
plait_status make_batched(plait_thread *, plait_tensor *value, int64_t level, plait_tensor **out);
// The same for tensors with history, and the way back: the two functions of Python.
PyObject *enter_recorded(PyObject *value, int64_t level);
PyObject *leave_recorded(PyObject *tensor, int64_t level, int64_t size);
bool add_batching(PyObject *module);
// From vmap.cpp.
// False, with an exception, within a call of vmap: gradients of samples would stay in `.grad`.
bool refuse_backward();
bool add_vmap(PyObject *module);

}  // namespace plait::func
