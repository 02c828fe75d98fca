/* A plug-in that replaces the matrix product of contiguous float32 matrices and leaves every other
 * case to whoever was there before, by answering DECLINE.
 *
 *   cc -std=c11 -O2 -shared -fPIC -I<headers> matmul.c -o matmul.so
 *
 * From Python: plait_abi.load("matmul.so"), and plait_abi.detach("example-matmul") to undo it. */
#include <plait/abi.h>

/* how often the kernel below really ran: examples and tests look it up with dlsym or ctypes */
__attribute__((visibility("default"))) uint64_t example_matmul_calls = 0;

static int plain_matrix(const plait_value *v) {
  if (v->tag != PLAIT_TENSOR) return 0;
  const DLTensor *t = &v->u.t->dl;
  return t->ndim == 2 && t->dtype.code == kDLFloat && t->dtype.bits == 32 && t->strides[1] == 1 &&
         t->strides[0] == t->shape[1];
}

/* The shape function has run: sizes fit, dtypes agree, and out[0] is a fresh matrix in C order. */
static plait_status mm(plait_call *call) {
  if (!plain_matrix(&call->in[0]) || !plain_matrix(&call->in[1])) return PLAIT_DECLINE;
  const DLTensor *a = &call->in[0].u.t->dl, *b = &call->in[1].u.t->dl;
  const int64_t rows = a->shape[0], inner = a->shape[1], columns = b->shape[1];
  const float *x = a->data, *y = b->data;
  float *z = call->out[0].u.t->dl.data;
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < columns; j++) z[i * columns + j] = 0;
    for (int64_t k = 0; k < inner; k++)
      for (int64_t j = 0; j < columns; j++)
        z[i * columns + j] += x[i * inner + k] * y[k * columns + j];
  }
  __atomic_fetch_add(&example_matmul_calls, 1, __ATOMIC_RELAXED);
  return PLAIT_OK;
}

static plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  plait_thread *thread = runtime->thread();
  const plait_op *op = runtime->op("mm");
  if (!op)
    return runtime->raise(thread, PLAIT_ERROR, self->name,
                          "the operator mm is not defined: load plait-ops first");
  return runtime->implement(thread, op, kDLCPU, mm, NULL, self, NULL);
}

__attribute__((visibility("default"))) const plait_plugin plait_plugin_v1 = {
    PLAIT_HEADER(plait_plugin), "example-matmul", "1.0", 0, init, NULL};
