// The shape function of reductions: arguments `self`, `dim` (int, int[] or None), `keepdim` and
// `dtype`.
#include "library.hpp"
#include "words.hpp"

namespace plait::ops {
namespace {

DType made_dtype(const Scope &x, const ReductionRule &rule, DType in) {
  const plait_value request = rule.dtype >= 0 ? x.call->in[rule.dtype] : none();
  if (!is_none(request)) {
    if (!in_group(request.u.dtype, rule.group))
      fail(x, PLAIT_DTYPE_ERROR, "`dtype` " + not_in_group(request.u.dtype, rule.group));
    if (category(in) == Category::complex && category(request.u.dtype) != Category::complex)
      fail(x, PLAIT_DTYPE_ERROR,
           std::string("`dtype` must be complex for `") + plait_arg_at(x.op, 0)->name + "` of " +
               name(in) + "; got " + name(request.u.dtype));
    if (!same(request.u.dtype, accumulated(in))) cast_argument(x, 0, request.u.dtype);
    return request.u.dtype;
  }
  switch (rule.result) {
    case ReductionResult::sum: return accumulated(in);
    case ReductionResult::real: return real_dtype(in);
    case ReductionResult::boolean: return dtype::bool_;
    case ReductionResult::int64: return dtype::int64;
    default: return in;
  }
}

void reduce(const Scope &x, const ReductionRule &rule) {
  const plait_tensor *self = x.call->in[0].u.t;
  const plait_value request = rule.dim >= 0 ? x.call->in[rule.dim] : none();
  const plait_value dtype = rule.dtype >= 0 ? x.call->in[rule.dtype] : none();
  for (uint32_t i = 0; i < x.op->n_args; i++)
    if (x.call->in[i].tag == PLAIT_COMPLEX)
      fail(x, PLAIT_DTYPE_ERROR,
           std::string("`") + plait_arg_at(x.op, i)->name + "` must be a real number; got " +
               show(x.call->in[i]));
  const Ints shape = shape_of(self);
  std::optional<Ints> dims;
  if (request.tag == PLAIT_INT)
    dims = Ints(&request.u.i, 1);
  else if (request.tag == PLAIT_INTS)
    dims = as_ints(request);
  // with dtype= only that dtype must be supported
  if (is_none(dtype) && !in_group(self->dl.dtype, rule.group))
    fail(x, PLAIT_DTYPE_ERROR,
         std::string("`") + plait_arg_at(x.op, 0)->name + "` " +
             not_in_group(self->dl.dtype, rule.group) +
             (rule.dtype >= 0 ? "; or give `dtype`" : ""));
  const bool keepdim = rule.keepdim >= 0 && as_bool(x.call->in[rule.keepdim]);
  Dims over;
  if (!rule.none || !dims || dims->size())
    over = reduce_dims(x, rule.dim >= 0 ? plait_arg_at(x.op, rule.dim)->name : "dim", dims, shape);
  for (int64_t d : over)
    if (!rule.identity && d < shape.size() && shape[d] == 0)
      fail(x, PLAIT_INDEX_ERROR,
           std::string("`") + plait_arg_at(x.op, 0)->name + "` of shape " + show(shape) +
               " has no elements along dimension " + show(d) +
               ", and an empty reduction has no value");
  if (rule.correction >= 0)
    warn_of_freedom(x, shape, over, maybe_float(x.call->in[rule.correction]).value_or(1));
  const Dims output = reduced(shape, over, keepdim);
  result(x, 0, output, made_dtype(x, rule, self->dl.dtype));
}

}  // namespace

plait_status reduction_shape(plait_call *c) {
  return border(c->thread, c->op->name, [&]() -> plait_status {
    reduce({c->thread, c->op, c}, definition(c->op)->reduction);
    return PLAIT_OK;
  });
}

}  // namespace plait::ops
