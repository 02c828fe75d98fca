/* Warnings of operators: a call succeeds, and its caller shows the user a text. */
#ifndef PLAIT_WARNING_H
#define PLAIT_WARNING_H
#include "abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The first warning of a call and of the calls within it.
 *
 * plait_thread::slot[3] points to one, whose `text` is NULL before the call, while a caller that
 * shows warnings waits for the call; otherwise it is NULL, and warnings are dropped. Calls in other
 * threads, such as those of backward passes, do not reach it. */
typedef struct plait_warning {
  const struct plait_op *op;
  const char *text; /**< never freed; one that begins with `()` follows the name of `op` */
} plait_warning;

/** Set the warning of the calls in progress, unless there is one. */
static inline void plait_warn(struct plait_thread *thread, const struct plait_op *op,
                              const char *text) {
  plait_warning *warning = (plait_warning *)thread->slot[3];
  if (!warning || warning->text) return;
  warning->op = op;
  warning->text = text;
}

#ifdef __cplusplus
}
#endif
#endif
