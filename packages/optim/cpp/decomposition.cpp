#include "decomposition.hpp"

#include "blocks.hpp"

namespace plait::optim {
namespace {

struct Operators {
  explicit Operators(const plait_runtime *r)
      : cast(r, "cast"), copy(r, "copy_"), select(r, "select") {}
  Operator cast, copy, select;
};

const Operators &operators(const plait_thread *thread) {
  static const Operators all(thread->runtime);
  return all;
}

}  // namespace

plait_status check_scale(const plait_call *call, const plait_value &grad_scale) {
  const auto fail = call->thread->runtime->fail;
  if (grad_scale.tag == PLAIT_INT || grad_scale.tag == PLAIT_FLOAT) return PLAIT_OK;
  if (grad_scale.tag != PLAIT_TENSOR)
    return fail(call, PLAIT_TYPE_ERROR, "`grad_scale` must be a real number or a 0-d tensor");
  const plait_tensor *t = grad_scale.u.t;
  if (t->dl.ndim != 0)
    return fail(call, PLAIT_SHAPE_ERROR, "`grad_scale` must be a number or a 0-d tensor; got %s",
                shape_text(t).c_str());
  if (!is_real_floating(t->dl.dtype))
    return fail(call, PLAIT_DTYPE_ERROR, "`grad_scale` must be %s; got %s", floating_names,
                name(t->dl.dtype));
  return PLAIT_OK;
}

double scale_of(const plait_value &grad_scale) {
  if (grad_scale.tag == PLAIT_FLOAT) return grad_scale.u.f;
  if (grad_scale.tag != PLAIT_TENSOR) return double(grad_scale.u.i);
  const bool wide = is_wide(grad_scale.u.t->dl.dtype);
  double d = 0;
  float f = 0;
  gather(grad_scale.u.t, true, 0, 1, wide ? static_cast<void *>(&d) : &f);
  return wide ? d : double(f);
}

Operands::Operands(const plait_call *call, const Lists &lists)
    : thread_(call->thread), lists_(lists) {
  for (uint16_t i = 0; i < call->n_in; i++) in[i] = call->in[i];
  plait_value &grad_scale = in[call->n_in - 1];
  if (grad_scale.tag != PLAIT_TENSOR) return;
  scale_ = Tensor::share(grad_scale.u.t);
  grad_scale = value(1.0);
}

void Operands::read(uint32_t i, double factor) {
  const Operator &cast = operators(thread_).cast;
  const DType dtype = lists_.at(0, i)->dl.dtype;
  for (uint32_t k = 0; k < lists_.n_lists; k++) {
    if (!lists_.has(k)) continue;
    const Tensor t = Tensor::share(lists_.at(k, i));
    list[k] = Array(thread_, is_half(dtype) ? cast(thread_, t, dtype::float32) : t);
  }
  scale = Array(factor);
  if (!scale_) return;
  Tensor &own_scale = scales_[is_wide(dtype)];
  if (!own_scale)
    own_scale = cast(thread_, scale_, is_wide(dtype) ? dtype::float64 : dtype::float32);
  scale = scale * Array(thread_, own_scale);
}

Array Operands::count(plait_tensor *counts, uint32_t i) const {
  const Operator &select = operators(thread_).select;
  return Array(thread_, select(thread_, Tensor::share(counts), 0, int64_t(i)));
}

// 0-d parameters would be promoted to float64 by a number of that dtype.
Array Operands::as_operand(uint32_t i, Array number) const {
  const bool wide = is_wide(lists_.at(0, i)->dl.dtype);
  const Tensor t = std::move(number).tensor();
  return Array(thread_,
               operators(thread_).cast(thread_, t, wide ? dtype::float64 : dtype::float32));
}

void Operands::write(uint32_t i) {
  Tensor values[max_operands];
  const auto written = [this](uint32_t k) { return k != 1 && lists_.has(k); };
  for (uint32_t k = 0; k < lists_.n_lists; k++)
    if (written(k)) values[k] = std::move(list[k]).tensor();
  for (uint32_t k = 0; k < lists_.n_lists; k++)
    if (written(k) && values[k].get() != lists_.at(k, i))
      operators(thread_).copy(thread_, Tensor::share(lists_.at(k, i)), values[k]);
}

}  // namespace plait::optim
