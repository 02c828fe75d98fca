// Tensors of all samples of a batch that look like the tensor of one sample (docs/design/0043).
#pragma once
#include <plait/gil.hpp>

#include <vector>

#include "binding.hpp"

namespace plait::func {

// From layer.cpp: the bits of the layers "batching" and "sharing"; 0: they are not there yet.
extern uint64_t layer_bit, sharing_bit;
inline uint64_t batching_layers() { return layer_bit | sharing_bit; }

// What a batched tensor's storage stands for. Its own memory has the size of a sample, and nobody
// reads it: other handles on it, which engines make, are batched tensors, too.
//
// Most such storages are made for a result. Others held a tensor that a call of vmap had made, and
// *grew* when a value that differs between samples was written to it: their value is rows of bytes,
// one for each sample. Every handle on such a storage, views too, stands for the same part of all
// rows. The value of a result becomes such rows when a view of it is taken: so views have a base,
// from which engines find their histories after a write. A sample has the strides of the value,
// without the common factor that they have where other samples lie between its elements.
struct Batch {
  plait_tensor *value;  // all samples, along dimension 0
  int64_t level;  // the call of vmap that they belong to
  void *memory;
  int64_t scale = 1;  // strides of the value for one of a sample; 0: a sample is in C order instead
  int64_t row = 0;  // the bytes from one row to the next one; 0 if the value is not rows of bytes
  const plait_allocator *allocator =
      nullptr;  // the allocator that frees `memory`, and its argument
  void *block = nullptr;
};

void drop_batch(void *block);  // frees the memory and the value of a Batch

// Derivatives that run at the same time on several threads may see a value become rows.
inline int64_t row_of(const Batch &b) { return __atomic_load_n(&b.row, __ATOMIC_ACQUIRE); }

// nullptr for a tensor that is not batched
inline const Batch *batch_of(const plait_tensor *t) {
  if (__builtin_expect(t->storage->release != drop_batch, 1)) return nullptr;
  const auto *b = static_cast<const Batch *>(t->storage->block);
  return row_of(*b) || t->dl.data == b->memory ? b : nullptr;
}
inline bool is_batched(const plait_tensor *t) { return batch_of(t) != nullptr; }

// Lets the layers see a handle whose storage has grown.
inline plait_tensor *marked(plait_tensor *t) {
  const uint64_t bits = batching_layers();
  if (t->storage->release == drop_batch &&
      (__atomic_load_n(&t->layers, __ATOMIC_RELAXED) & bits) != bits)
    __atomic_fetch_or(&t->layers, bits, __ATOMIC_RELAXED);
  return t;
}

// A call's batched tensors.
struct Samples {
  int64_t level = 0, size = 0;  // of the innermost call of vmap
  bool any = false;

  void see(const plait_tensor *t) {
    const Batch *b = t ? batch_of(t) : nullptr;
    if (!b || (any && b->level <= level)) return;
    any = true;
    level = b->level;
    size = b->value->dl.shape[0];
  }
};

template <class F>
void each_tensor(const plait_value *values, uint32_t n, F &&f) {
  for (uint32_t i = 0; i < n; i++) {
    if (values[i].tag == PLAIT_TENSOR) f(values[i].u.t);
    if (values[i].tag != PLAIT_TENSORS) continue;
    for (uint32_t k = 0; k < values[i].n; k++)
      if (values[i].u.ts[k]) f(values[i].u.ts[k]);
  }
}

// From batched.cpp.

// Lets the value of a batched tensor be rows of bytes. Returns whether it is such rows then: it
// is not if its samples lie in the same memory, or backwards.
bool has_rows(const plait_tensor *);
// All samples of a handle on a storage whose value is rows: the same part of each row.
plait_status rows_of(plait_thread *, const plait_tensor *, const Batch &, plait_tensor **out);
// A tensor of one sample that stands for all that lie along dimension 0 of `value`, which is taken
// over, also on failure.
plait_status make_batched(plait_thread *, plait_tensor *value, int64_t level, plait_tensor **out);
// All samples of a batched tensor, a new reference, and its level; nullptr for others, and with an
// exception.
plait_tensor *all_samples(const plait_tensor *, int64_t *level);
// All samples of a tensor that is batched at this level; nullptr likewise.
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
// Notes the results of a call, but for those on the memory of its arguments.
void note_results(const plait_call *);
// Notes the result of a function in Python that has a history, and tells whether the memory of a
// tensor is that of a result with a history, which a detached tensor shares.
void note_recorded(const plait_tensor *);
bool is_recorded(const plait_tensor *);
// Lets a tensor that a call of vmap has made stand for one of each sample. PLAIT_DECLINE if it was
// not made within the level.
plait_status become_batched(plait_thread *, plait_tensor *, const Scope &to);
// The whole memory of each sample of a tensor that is batched at an outer level alone, so that it
// can be batched at this one, too: a row of elements for each. PLAIT_DECLINE likewise.
plait_status memory_within(plait_thread *, const plait_tensor *, int64_t level, plait_tensor **out);
// Gives such a tensor its samples at this level: memories, one for each, which are taken over.
// False if they are not rows of bytes.
bool set_rows(const plait_tensor *, plait_tensor *rows, int64_t level);

// A call on batched tensors for a scope, of which the parts are seen.
class Serving {
 public:
  Serving(plait_thread *, const Samples &);
  Serving(const Serving &) = delete;
  Serving &operator=(const Serving &) = delete;
  ~Serving();

 private:
  plait_thread *thread_;
  uint64_t included_;
  bool alone_ = false;
};

// From rules.cpp: rules that are data.

// Calls the operator on all samples; PLAIT_DECLINE: a rule in Python has to do it.
plait_status rearrange(plait_call *, const Samples &);

// From sharing.cpp: the layer above the engine's, which sums gradients over samples.
plait_status share(plait_call *);

// From layer.cpp.

// The functions of Python that serve calls: one for all samples, one for each sample; that sum
// gradients over samples; and that make and read batched tensors with history.
struct Functions {
  plait::python::SharedReference serve, loop, sum, enter, leave;
};
extern Functions functions;
PyObject *enter_recorded(PyObject *value, int64_t level);
PyObject *leave_recorded(PyObject *tensor, int64_t level, int64_t size);
bool add_layer(PyObject *module);

// From vmap.cpp.

// False, with an exception, within a call of vmap: gradients of samples would stay in `.grad`.
bool refuse_backward();
bool add_vmap(PyObject *module);

}  // namespace plait::func
