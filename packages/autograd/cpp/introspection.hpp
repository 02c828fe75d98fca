// The functions of this engine for its Python binding, beyond the role: `plait_engine::ctx` points
// to this table if the engine's name is "plait_autograd".
#pragma once
#include "forward.hpp"

namespace plait::autograd {

struct Watch;

struct NanNote {  // whether a node's call made or took a NaN; see extra.hpp
  uint32_t nan;  // a Nan
  uint32_t number, edge;  // took: of the argument; of the edge to a leaf, or the number of edges
  const char *argument;  // took: its name, or "" where the call is not an operator's
  int32_t ndim;  // took from a leaf: its layout
  const int64_t *shape;
};

struct Introspection {
  plait_header h;
  uint32_t (*edges)(plait_object *node);
  plait_object *(*edge)(plait_object *node, uint32_t i,
                        uint32_t *index);  // a new reference, or NULL
  uint64_t (*sequence)(plait_object *node);
  // a fresh handle becomes output `index` of the node
  plait_status (*attach)(plait_thread *, plait_object *node, uint32_t index, plait_tensor *);
  int (*retains)(
      void);  // whether the innermost pass of this thread keeps the graph; 1 outside of one
  plait_object *(*running)(
      void);  // the node that the innermost pass of this thread is at, borrowed; NULL outside
  const Forward *forward;
  // a new reference to the node's metadata; `result` (or NULL) becomes it if there is none
  plait_object *(*metadata)(plait_object *node, plait_object *result);
  // `when`: extra.hpp; *out: a new reference, for `unhook`
  plait_status (*hook)(plait_thread *, plait_object *node, uint32_t when, uint32_t index,
                       plait_object *callable, plait_object **out);
  void (*unhook)(plait_object *hook);
  // the gradient edge of a tensor, also of a leaf: a new reference, or NULL
  plait_status (*gradient_edge)(plait_thread *, plait_tensor *, plait_object **node,
                                uint32_t *index);
  // visits the objects that only the history keeps alive (the history has one owner)
  int (*traverse)(plait_tensor *, int (*held)(plait_object *, void *),
                  int (*wrapper)(void *, void *), void *arg);
  int (*traverse_node)(plait_object *, int (*held)(plait_object *, void *),
                       int (*wrapper)(void *, void *), void *arg);
  void (*untie)(plait_object *slot);  // drops hooks and metadata
  void (*set_sparse)(plait_object *node);  // its callable gets None for missing gradients
  void (*set_watch)(const Watch *);
  plait_status (*set_anomaly)(plait_thread *, int on, int check_nan);
  int (*anomaly)(void);  // 0, 1, or 3 with check_nan
  plait_object *(*site)(plait_object *node);  // a new reference, or NULL
  void (*nan)(plait_object *node, NanNote *out);
  int (*set_packing)(int depth);  // returns the old depth
  // a tensor with the history of the node's output, for a pass to begin or end at
  plait_status (*stand_in)(plait_thread *, plait_object *node, uint32_t index, plait_tensor **);
  // *out: whether retain_grad was called on a non-leaf tensor
  plait_status (*retained)(plait_thread *, plait_tensor *, int *out);
  // the operator that wrote to the storage after that version (NULL: not needed), and the site of
  // the node's call: texts of `size` bytes, empty if unknown
  void (*account)(plait_object *node, const plait_storage *, uint64_t version, char *by,
                  char *result, uint64_t size);
  uint64_t (*pass)(void);  // the number of the innermost pass of this thread; 0 outside of one
  int (*will_run)(plait_object *node);  // whether that pass runs the node now or will run it
  plait_object *(*callable)(
      plait_object *node);  // of a node in the host language, borrowed; or NULL
  // a reference that does not keep a node in the host language alive, or NULL; the node of one: a
  // new reference, or NULL
  plait_status (*weak)(plait_thread *, plait_object *node, plait_object **out);
  plait_object *(*locked)(plait_object *weak);
  // new gradients of a leaf's node lie where this tensor does; NULL: in memory of their own
  plait_status (*set_place)(plait_thread *, plait_object *node, plait_tensor *place);
  // the innermost pass of this thread calls a callable of the host language when it has ended
  plait_status (*at_end)(plait_thread *, plait_object *callable);
  // *out: whether a hook runs when the gradient of the tensor is complete
  plait_status (*hooked)(plait_thread *, plait_tensor *, int *out);
  // the name by the function of which the node is the last step; see `set_steps`
  const char *(*step_name)(plait_object *node);
  // for each argument of the node's call a letter, with a zero at the end: `t` a tensor that
  // requires grad, `-` another tensor or none, `o` something else; after a space each text among
  // them; the number of dimensions of the first output is returned
  int (*arguments)(plait_object *node, char *letters, uint64_t size);
  // the operators of several steps that name the node of their last one, if their derivative is
  // that of their steps; 0: none
  plait_status (*set_steps)(plait_thread *, const char *const *names, uint64_t n);
  // the call of an operator's node, or NULL: its operator and arguments, tensors among them as
  // PLAIT_NONE (lists keep their length)
  const plait_op *(*call)(plait_object *node, const plait_value **in, uint32_t *n_in);
  // saved tensor `i` of that node is this argument, or this result: 0 beyond the last
  int (*saved)(plait_object *node, uint32_t i, int *result, uint32_t *argument, uint32_t *item);
  plait_status (*saved_tensor)(plait_thread *, plait_object *node, uint32_t i, plait_tensor **);
  // the shape of the tensor that an argument was; 0: it is unknown
  int (*shape)(plait_object *node, uint32_t argument, uint32_t item, int32_t *ndim,
               const int64_t **shape);
};

}  // namespace plait::autograd
