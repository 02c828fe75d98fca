#include <algorithm>
#include <cmath>
#include <vector>

#include "blocks.hpp"
#include "operations.hpp"
#include "steps.hpp"

namespace plait::optim {
namespace {

constexpr int64_t piece_elements = 1 << 15, parallel_pieces = 8;

struct Piece {
  const plait_tensor *t;
  int64_t start, count;
  double sum;
};

double squares(const Piece &piece) {
  const plait_tensor *t = piece.t;
  const DType d = t->dl.dtype;
  const auto sum = is_wide(d) ? loops().squares_f64 : loops().squares_f32;
  const bool flat = is_contiguous(t);
  if (flat && !is_half(d))
    return sum(static_cast<const char *>(t->dl.data) + piece.start * itemsize(d), piece.count);
  Block block;
  double total = 0;
  for (int64_t done = 0; done < piece.count; done += block_elements) {
    const int64_t n = std::min(block_elements, piece.count - done);
    gather(t, flat, piece.start + done, n, block);
    total += sum(block, n);
  }
  return total;
}

plait_status check_grads(const plait_call *call) {
  const plait_value &grads = call->in[0];
  for (uint32_t i = 0; i < grads.n; i++) {
    const DType d = grads.u.ts[i]->dl.dtype;
    if (!is_real_floating(d))
      return call->thread->runtime->fail(call, PLAIT_DTYPE_ERROR, "`grads[%u]` must be %s; got %s",
                                         i, floating_names, name(d));
  }
  return PLAIT_OK;
}

plait_status shape(plait_call *call) {
  const plait_status status = check_grads(call);
  return status == PLAIT_OK ? call->thread->runtime->result(call, 0, dtype::float64, 0, nullptr)
                            : status;
}

// Pieces are cut by size alone and added up in order: the sum does not depend on threads.
plait_status kernel(plait_call *call) {
  return border(call->thread, "grad_norm", [&]() -> plait_status {
    std::vector<Piece> &pieces = scratch<Piece>();
    for (uint32_t i = 0; i < call->in[0].n; i++) {
      const plait_tensor *t = call->in[0].u.ts[i];
      const int64_t n = numel(t);
      for (int64_t start = 0; start < n; start += piece_elements)
        pieces.push_back({t, start, std::min(piece_elements, n - start), 0});
    }
    const auto job = [](void *arg, uint64_t j) {
      Piece &piece = static_cast<Piece *>(arg)[j];
      piece.sum = squares(piece);
    };
    const plait_executor *executor = role<plait_executor>(call->thread->runtime);
    if (pieces.size() < parallel_pieces || executor->width(executor->ctx) == 1)
      for (size_t j = 0; j < pieces.size(); j++) job(pieces.data(), j);
    else
      executor->parallel(executor->ctx, pieces.size(), job, pieces.data());
    double total = 0;
    for (const Piece &piece : pieces) total += piece.sum;
    *static_cast<double *>(call->out[0].u.t->dl.data) = std::sqrt(total);
    return PLAIT_OK;
  });
}

plait_status decomposed(plait_call *call) {
  plait_thread *thread = call->thread;
  const plait_value &grads = call->in[0];
  if (const plait_status status = check_grads(call); status != PLAIT_OK) return status;
  return border(thread, "grad_norm", [&]() -> plait_status {
    static const Operator norm(thread->runtime, "norm"), stack(thread->runtime, "stack"),
        full(thread->runtime, "full");
    const auto of = [&](const plait_value &t) {
      return norm(thread, t, 2.0, none(), false, dtype::float64);
    };
    if (grads.n == 0) {
      call->out[0] = value(full(thread, ints(nullptr, 0), 0.0, dtype::float64).release());
      return PLAIT_OK;
    }
    std::vector<Tensor> norms;
    std::vector<plait_tensor *> list;
    for (uint32_t i = 0; i < grads.n; i++) {
      norms.push_back(of(value(grads.u.ts[i])));
      list.push_back(norms.back().get());
    }
    const Tensor all = stack(thread, tensors(list.data(), list.size()));
    call->out[0] = value(of(value(all)).release());
    return PLAIT_OK;
  });
}

// a product and a sum for each element
void cost(const plait_call *call, plait_cost *out) {
  out->operations = 0;
  for (uint32_t i = 0; i < call->in[0].n; i++)
    out->operations += 2 * uint64_t(numel(call->in[0].u.ts[i]));
}

}  // namespace

const Step grad_norm = {
    {PLAIT_HEADER(plait_op_def), "grad_norm(Tensor[] grads) -> Tensor",
     "The 2-norm of all gradients as one vector, a float64 number.\n"
     "\n"
     "sqrt(sum g^2), added up in double; float16, bfloat16, float32 and float64, any "
     "strides.",
     0, shape, nullptr, nullptr, nullptr, decomposed, nullptr, cost, nullptr, nullptr},
    kernel};

}  // namespace plait::optim
