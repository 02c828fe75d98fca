// Forward mode: a layer that computes tangents (docs/design/0009).
#pragma once
#include <plait/plait.hpp>

namespace plait::autograd {

struct Forward {  // for our own Python binding
  plait_header h;
  // fails within a level; recorded: whether tangents may have a history
  plait_status (*enter)(plait_thread *, int recorded, uint64_t *level);
  plait_status (*leave)(plait_thread *);
  uint64_t (*level)(plait_thread *);  // 0 outside of one
  // a clone with the tangent
  plait_status (*make)(plait_thread *, plait_tensor *, plait_tensor *tangent, plait_tensor **dual);
  // a clone without its tangent, and the tangent: new references, or NULL
  plait_status (*parts)(plait_thread *, plait_tensor *, plait_tensor **primal,
                        plait_tensor **tangent);
  // turns it on or off for this thread within a level; returns the old setting
  int (*carry)(plait_thread *, int on);
  // sets the tangent of an existing tensor (NULL: none); written: the tensor was overwritten
  plait_status (*set)(plait_thread *, plait_tensor *, plait_tensor *tangent, int written);
  plait_status (*tangent)(plait_thread *, plait_tensor *,
                          plait_tensor **);  // a new reference, or NULL
};
extern const Forward forward;

plait_status start_forward(const plait_runtime *, const plait_plugin *);

}  // namespace plait::autograd
