// The entry to a pass: checks roots, gradients and inputs, releases the GIL, and runs the pass.
#include "backward_pass.hpp"
#include "derivatives.hpp"
#include "role.hpp"

namespace plait::autograd {
namespace {

struct Request {
  plait_thread *thread;
  plait_tensor *const *roots, *const *grads;
  uint32_t n_roots;
  plait_tensor *const *inputs;
  uint32_t n_inputs;
  uint64_t flags;
  plait_tensor **gx;
  plait_status status;
};

const char *origin(const Request &r) {
  return r.inputs && !(r.flags & PLAIT_BACKWARD_ACCUMULATE) ? "grad" : "backward";
}

Tensor root_gradient(const Request &r, uint32_t i) {
  const plait_tensor *root = r.roots[i];
  plait_tensor *gradient = r.grads ? r.grads[i] : nullptr;
  if (!gradient) {
    if (numel(root) != 1)
      raise(r.thread, PLAIT_ERROR, origin(r),
            "a gradient can be made up only for a result of one element; result %u has shape %s: "
            "reduce it to a number "
            "first, or pass the gradient",
            unsigned(i), shape_text(root).c_str());
    if (root->dl.dtype.code == kDLComplex)
      raise(r.thread, PLAIT_ERROR, origin(r),
            "a gradient can be made up only for a real result; result %u is %s: take its real part "
            "or its abs() first, or pass the gradient",
            unsigned(i), plait::name(root->dl.dtype));
    return ones(r.thread, root->dl.dtype, root->dl.device, root->dl.shape, root->dl.ndim);
  }
  bool alike = gradient->dl.ndim == root->dl.ndim;
  for (int32_t k = 0; alike && k < root->dl.ndim; k++)
    alike = gradient->dl.shape[k] == root->dl.shape[k];
  if (!alike)
    raise(r.thread, PLAIT_SHAPE_ERROR, origin(r),
          "the gradient of result %u must have its shape %s; got %s", unsigned(i),
          shape_text(root).c_str(), shape_text(gradient).c_str());
  if (!differentiable(gradient->dl.dtype) ||
      (gradient->dl.dtype.code == kDLComplex) != (root->dl.dtype.code == kDLComplex))
    raise(r.thread, PLAIT_DTYPE_ERROR, origin(r), "the gradient of result %u must be %s; got %s",
          unsigned(i), plait::name(root->dl.dtype), plait::name(gradient->dl.dtype));
  if (!same(gradient->dl.device, root->dl.device))
    raise(r.thread, PLAIT_VALUE_ERROR, origin(r),
          "the gradient of result %u must be on device %s; got %s", unsigned(i),
          device_text(root->dl.device).c_str(), device_text(gradient->dl.device).c_str());
  const Tensor g = Tensor::share(gradient);
  return same(gradient->dl.dtype, root->dl.dtype) ? g : cast(r.thread, g, root->dl.dtype);
}

void check_request(const Request &r) {
  for (uint32_t i = 0; i < r.n_roots; i++)
    if (!requires_grad(r.roots[i]))
      raise(r.thread, PLAIT_ERROR, origin(r),
            "result %u of shape %s does not require grad: nothing that was recorded leads to it "
            "(was it computed within "
            "no_grad(), or from tensors without requires_grad?)",
            unsigned(i), shape_text(r.roots[i]).c_str());
  for (uint32_t i = 0; i < r.n_inputs; i++)
    if (!requires_grad(r.inputs[i]))
      raise(r.thread, PLAIT_ERROR, origin(r), "input %u of shape %s does not require grad",
            unsigned(i), shape_text(r.inputs[i]).c_str());
}

void run(const Request &r) {
  check_request(r);
  const bool create = r.flags & PLAIT_BACKWARD_CREATE;
  BackwardPass pass(r.thread, r.flags & PLAIT_BACKWARD_RETAIN || create, create,
                    r.flags & PLAIT_BACKWARD_ACCUMULATE);
  for (uint32_t i = 0; i < r.n_roots; i++) pass.root(r.roots[i], root_gradient(r, i).get());
  for (uint32_t i = 0; i < r.n_inputs; i++) pass.capture(r.inputs[i], r.gx + i);
  pass.run();
  if (r.flags & PLAIT_BACKWARD_ALLOW_UNUSED) return;
  uint32_t i = 0;
  while (i < r.n_inputs && r.gx[i]) i++;
  if (i == r.n_inputs) return;
  const bool derivatives = hold_derivatives(r.thread, r.roots, r.n_roots);
  for (; i < r.n_inputs; i++) {
    if (r.gx[i]) continue;
    // a derivative that does not depend on the input, as that of a linear function
    if (derivatives)
      r.gx[i] = zero_derivative(r.thread, r.inputs[i], create).release();
    else
      raise(r.thread, PLAIT_ERROR, origin(r),
            "input %u of shape %s was not used to compute the results; pass allow_unused=True to "
            "get None for it",
            unsigned(i), shape_text(r.inputs[i]).c_str());
  }
}

void run_unlocked(void *arg) {
  auto *r = static_cast<Request *>(arg);
  r->status = border(r->thread, origin(*r), [r]() -> plait_status {
    run(*r);
    return PLAIT_OK;
  });
}

}  // namespace

plait_status backward(void *, plait_thread *thread, plait_tensor *const *roots,
                      plait_tensor *const *grads, uint32_t n_roots, plait_tensor *const *inputs,
                      uint32_t n_inputs, uint64_t flags, plait_tensor **gx) {
  for (uint32_t i = 0; i < n_inputs; i++) gx[i] = nullptr;
  Request r{thread, roots, grads, n_roots, inputs, n_inputs, flags, gx, PLAIT_OK};
  const plait_host *host = plait::role<plait_host>(thread->runtime);
  if (host)
    host->unlocked(host->ctx, run_unlocked, &r);
  else
    run_unlocked(&r);
  for (uint32_t i = 0; r.status < 0 && i < n_inputs; i++) {
    plait_release(gx[i]);
    gx[i] = nullptr;
  }
  return r.status;
}

}  // namespace plait::autograd
