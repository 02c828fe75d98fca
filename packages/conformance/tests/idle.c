/* A provider whose kernels do nothing but give one answer. Compiled with -DNAME="..." (of the
 * plug-in), -DOPERATORS="...","..." and -DANSWER=PLAIT_OK or PLAIT_DECLINE. The operator `invented`
 * is its own. */
#include <plait/abi.h>

static const plait_runtime *runtime;

static plait_status answer(plait_call *call) {
  (void)call;
  return ANSWER;
}

static plait_status like_input(plait_call *call) {
  const DLTensor *x = &call->in[0].u.t->dl;
  return runtime->result(call, 0, x->dtype, x->ndim, x->shape);
}
static const plait_op_def own = {PLAIT_HEADER(plait_op_def),
                                 "invented(Tensor self) -> Tensor",
                                 "Nothing.",
                                 0,
                                 like_input,
                                 NULL,
                                 NULL,
                                 NULL,
                                 NULL,
                                 NULL,
                                 NULL,
                                 NULL,
                                 NULL};

static plait_status init(const plait_runtime *host_runtime, const plait_plugin *self) {
  static const char *const names[] = {OPERATORS};
  runtime = host_runtime;
  plait_thread *thread = runtime->thread();
  plait_status s = PLAIT_OK;
  for (unsigned i = 0; s >= 0 && i < sizeof names / sizeof *names; i++) {
    const plait_op *op = runtime->op(names[i]);
    if (!op) s = runtime->define(thread, &own, &op);
    if (s >= 0) s = runtime->implement(thread, op, kDLCPU, answer, NULL, self, NULL);
  }
  return s;
}

__attribute__((visibility("default")))
const plait_plugin plait_plugin_v1 = {PLAIT_HEADER(plait_plugin), NAME, "1.0", 0, init, NULL};
