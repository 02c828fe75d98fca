/* A foreign provider on purpose partial: it multiplies float32 arrays of the same shape in C order
 * and declines the rest. Compiled with -DWRONG it gives 1 too much in the last element. */
#include <plait/abi.h>

static int dense(const plait_value *v, const DLTensor *like) {
  if (v->tag != PLAIT_TENSOR) return 0;
  const DLTensor *t = &v->u.t->dl;
  int64_t step = 1;
  if (t->dtype.code != kDLFloat || t->dtype.bits != 32 || t->ndim != like->ndim) return 0;
  for (int32_t i = t->ndim - 1; i >= 0; i--) {
    if (t->shape[i] != like->shape[i] || t->strides[i] != step) return 0;
    step *= t->shape[i];
  }
  return 1;
}

static plait_status mul(plait_call *call) {
  const DLTensor *out = &call->out[0].u.t->dl;
  if (!dense(&call->in[0], out) || !dense(&call->in[1], out) || !dense(&call->out[0], out))
    return PLAIT_DECLINE;
  const float *x = call->in[0].u.t->dl.data, *y = call->in[1].u.t->dl.data;
  float *z = out->data;
  int64_t n = 1;
  for (int32_t i = 0; i < out->ndim; i++) n *= out->shape[i];
  for (int64_t i = 0; i < n; i++) z[i] = x[i] * y[i];
#ifdef WRONG
  if (n) z[n - 1] += 1;
#endif
  return PLAIT_OK;
}

static plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  return runtime->implement(runtime->thread(), runtime->op("mul"), kDLCPU, mul, NULL, self, NULL);
}

__attribute__((visibility("default")))
const plait_plugin plait_plugin_v1 = {PLAIT_HEADER(plait_plugin), "foreign", "1.0", 0, init, NULL};
