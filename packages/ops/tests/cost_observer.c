/* A plug-in that asks for the cost of each operator call that succeeds, at its end. The last one
 * that was asked for is that of the outermost call; the operations of the calls in it are summed.
 * Compiled with -DNAME="...", the name of the plug-in. */
#include <plait/abi.h>
#include <stddef.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT plait_cost cost_observer_cost;
EXPORT uint64_t cost_observer_parts;
EXPORT char cost_observer_name[64]; /* of its operator; empty before the first call */

static const plait_runtime *runtime;
static int depth;

static void begin(void *ctx, const plait_event *event, uint64_t *token) {
  (void)ctx, (void)event, (void)token;
  if (depth++ == 0) cost_observer_parts = 0;
}

static void end(void *ctx, const plait_event *event, uint64_t token, plait_status status) {
  (void)ctx, (void)token;
  depth--;
  if (status != PLAIT_OK) return;
  memset(&cost_observer_cost, 0, sizeof cost_observer_cost);
  cost_observer_cost.size = sizeof cost_observer_cost;
  runtime->cost(event->call, &cost_observer_cost);
  if (depth == 1) cost_observer_parts += cost_observer_cost.operations;
  strncpy(cost_observer_name, event->call->op->name, sizeof cost_observer_name - 1);
}

static const plait_observer observer = {PLAIT_HEADER(plait_observer), NULL, PLAIT_EVENT_OP, begin,
                                        end};

/* Begins or ends the observation. */
EXPORT int cost_observer_watch(int on) {
  cost_observer_name[0] = 0;
  return runtime->observe(runtime->thread(), &observer, on);
}

static plait_status init(const plait_runtime *host_runtime, const plait_plugin *self) {
  (void)self;
  runtime = host_runtime;
  return PLAIT_OK;
}

EXPORT extern const plait_plugin plait_plugin_v1;
const plait_plugin plait_plugin_v1 = {PLAIT_HEADER(plait_plugin), NAME, "1", 0, init, NULL};
