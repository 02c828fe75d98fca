// Each kind of node: its inputs' gradients from those of its outputs.
#include "evaluate.hpp"

#include "accumulate.hpp"
#include "gradient_places.hpp"
#include "record.hpp"
#include "unpack.hpp"
#include "views.hpp"
#include "watch.hpp"

namespace plait::autograd {
namespace {

inline void fill_zeros(plait_thread *thread, const Node *n, Gradients &gradients) {
  for (uint32_t i = 0; i < n->n_outs; i++)
    if (!gradients[i] && n->outs[i].ndim >= 0) gradients[i] = zeros(thread, n->outs[i]).release();
}

// An operator within a derivative failed: the error names the node, as the user did not call the
// operator.
[[noreturn]] void failed_in(plait_thread *thread, const OpNode *n, plait_status s) {
  const plait_error *e = thread->error;
  if (!e || e->host || !e->message) throw Error(s);
  const std::string origin = e->origin ? e->origin : "", text = e->message;
  const size_t skip = origin.empty() ? 0 : origin.size() + 2;  // "origin: "
  const std::string result = where(n);
  const bool named = !(n->op->flags & PLAIT_OP_INTERNAL);
  raise(thread, e->code, origin, "%s (in the derivative of %s%s%s)",
        text.substr(std::min(skip, text.size())).c_str(),
        named ? written_name(n->op, n->form).c_str() : "a call", result.empty() ? "" : ", called",
        result.c_str());
}

// Fills missing gradients with one 0 that is expanded, as an operator's derivative does not write
// to gradients. Returns the bits of plait_vjp::zero.
uint64_t expand_zeros(plait_thread *thread, const Node *n, Gradients &gradients) {
  uint64_t zero = 0;
  for (uint32_t i = 0; i < n->n_outs; i++) {
    const Layout &l = n->outs[i];
    if (gradients[i] || l.ndim < 0) continue;
    Tensor t = zeros(thread, l.dtype, l.device, nullptr, 0);
    if (l.ndim) t = expand(thread, t, l.shape, l.ndim);
    gradients[i] = t.release();
    if (i < 64) zero |= uint64_t(1) << i;
  }
  return zero;
}

void evaluate_op(const Evaluation &e, OpNode *n, uint64_t need, Gradients &gradients,
                 Gradients &result) {
  const uint64_t zero = expand_zeros(e.thread, n, gradients);
  vjp(e, n, gradients.data(), zero, need, result.data());
  gradients.clear();
}

// The gradient of a base of which a view was written to: the view's part goes through the
// derivative of the operator that wrote.
void evaluate_assigned(const Evaluation &e, ViewNode *n, uint64_t need, Gradients &gradients,
                       Gradients &result) {
  BaseGradient base(e.thread, n, false);
  base.set_whole(gradients.take(0));
  const bool need_base = need & bit_of(0);
  if (!n->inner->n_edges || !n->inner->edges[0].node) need &= ~bit_of(0);
  {
    const Tensor part = clone(e.thread, base.part(n->view.shape));
    plait_tensor *const gy[] = {part.get()};
    vjp(e, n->inner, gy, 0, need, result.data(), n);
  }
  Tensor own = result.take(0);
  if (!need_base) return;
  if (!own) own = zeros(e.thread, n->view);
  base.set_part(own, n->view.shape);
  result.put(0, base.whole());
}

void evaluate_host(const Evaluation &e, HostNode *n, Gradients &gradients, Gradients &result) {
  const plait_host *host = role<plait_host>(e.thread->runtime);
  if (!host)
    raise(e.thread, PLAIT_ERROR, n->name,
          "the interpreter of the language of this function has ended");
  if (!n->sparse) fill_zeros(e.thread, n, gradients);
  check(host->apply(host->ctx, e.thread, n->callable, gradients.data(), n->n_outs, result.data(),
                    n->n_edges));
  gradients.clear();
}

}  // namespace

void evaluate(const Evaluation &e, Node *n, uint64_t need, Gradients &gradients,
              Gradients &result) {
  switch (n->kind) {
    case Kind::op: return evaluate_op(e, static_cast<OpNode *>(n), need, gradients, result);
    case Kind::leaf: {
      auto *leaf = static_cast<Leaf *>(n);
      Tensor g = gradients.take(0);
      if (!is_frozen(leaf)) add_to_leaf(e.thread, leaf, std::move(g), e.create);
      return;
    }
    case Kind::host: return evaluate_host(e, static_cast<HostNode *>(n), gradients, result);
    case Kind::assigned:
      return evaluate_assigned(e, static_cast<ViewNode *>(n), need, gradients, result);
    case Kind::strided:
      return result.put(0, spread(e.thread, static_cast<ViewNode *>(n), gradients.take(0)));
    case Kind::constant: return gradients.clear();
    case Kind::missing: {
      const auto *m = static_cast<MissingNode *>(n);
      const bool named = !(m->op->flags & PLAIT_OP_INTERNAL);
      raise(e.thread, PLAIT_NOT_IMPLEMENTED, error_name(m->op, m->form),
            "the derivative of %s is not implemented; detach() its inputs if no gradient should "
            "pass%s",
            named ? m->op->name : "a call", made_at(n).c_str());
    }
  }
}

void vjp(const Evaluation &e, OpNode *n, plait_tensor *const *gy, uint64_t zero, uint64_t need,
         plait_tensor **gx, ViewNode *within) {
  const Unpacked values(e.thread, n, e.keep, e.create, within);
  plait_vjp v{};
  v.size = sizeof v;
  v.n_in = uint16_t(n->n_in);
  v.n_out = uint16_t(n->n_outs);
  v.op = n->op;
  v.thread = e.thread;
  v.in = values.in();
  v.out = values.out();
  v.gy = gy;
  v.need = need;
  v.gx = gx;
  v.zero = zero;
  // behind the unpacking: what hooks and checkpoints make then lives longer than the call
  if (e.places) e.places->offer();
  const plait_status s = n->op->def->vjp(&v);
  if (e.places) e.places->withdraw();
  if (s < 0) failed_in(e.thread, n, s);
}

}  // namespace plait::autograd
