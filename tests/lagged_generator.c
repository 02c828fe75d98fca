/* A source of random bits whose state is no seed and offset: an additive lagged Fibonacci generator
 * (Knuth, TAOCP 2, 3.2.2) of 607 words, in a state of 5,056 bytes. Each call of `reserve` draws a
 * seed from it, for Philox in the kernels. */
#include <plait/abi.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 607, SHORT_LAG = 273, BYTES = 5056 };

typedef struct state {
  plait_object o;
  uint64_t word[WORDS], at;
  char rest[BYTES - (WORDS + 1) * sizeof(uint64_t)];
} state;

static const plait_runtime *rt;
static const plait_rng *before;

static void drop(plait_object *o) { free(o); }
static const plait_type type = {PLAIT_HEADER(plait_type), "lagged state", drop};

static void seeded(state *s, uint64_t seed) {
  for (int i = 0; i < WORDS; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    s->word[i] = (seed >> 11) | 1;
  }
  s->at = 0;
}
static state *state_of(plait_generator *g) {
  if (!g->state) {
    state *s = calloc(1, sizeof *s);
    if (!s) abort();
    s->o = (plait_object){1, &type};
    seeded(s, g->seed);
    g->state = &s->o;
  }
  return (state *)g->state;
}

static plait_generator *default_generator(void *ctx) {
  (void)ctx;
  return before->default_generator(before->ctx);
}
static void reserve(void *ctx, plait_generator *g, uint64_t blocks, uint64_t *seed,
                    uint64_t *offset) {
  (void)blocks;
  state *s = state_of(g ? g : default_generator(ctx));
  s->word[s->at] += s->word[(s->at + WORDS - SHORT_LAG) % WORDS];
  *seed = s->word[s->at];
  *offset = 0;
  s->at = (s->at + 1) % WORDS;
}
static uint64_t state_size(void *ctx, plait_generator *g) {
  (void)ctx, (void)g;
  return BYTES;
}
static plait_status get_state(void *ctx, plait_thread *thread, plait_generator *g, void *out,
                              uint64_t nbytes) {
  (void)ctx, (void)thread;
  memcpy(out, state_of(g)->word, nbytes);
  return PLAIT_OK;
}
static plait_status set_state(void *ctx, plait_thread *thread, plait_generator *g, const void *from,
                              uint64_t nbytes) {
  (void)ctx;
  uint64_t at;
  memcpy(&at, (const char *)from + WORDS * sizeof at, sizeof at);
  if (at >= WORDS)
    return rt->raise(thread, PLAIT_VALUE_ERROR, "set_state", "the position must be below %d",
                     WORDS);
  memcpy(state_of(g)->word, from, nbytes);
  return PLAIT_OK;
}
static plait_status set_seed(void *ctx, plait_thread *thread, plait_generator *g, uint64_t seed) {
  (void)ctx, (void)thread;
  seeded(state_of(g), seed);
  return PLAIT_OK;
}

/* Devices of the pretend accelerator have generators of their own. */
static plait_generator *of_devices[2];
static plait_generator *device_generator(void *ctx, DLDevice d) {
  if (d.device_type != kDLExtDev || d.device_id < 0 || d.device_id > 1)
    return default_generator(ctx);
  if (!of_devices[d.device_id]) {
    of_devices[d.device_id] = rt->generator_new(7);
    of_devices[d.device_id]->device = d;
  }
  return of_devices[d.device_id];
}

static plait_rng rng;
static plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  rt = runtime;
  before = PLAIT_ROLE(plait_rng, runtime->role("rng", 0));
  rng = (plait_rng){.h = PLAIT_HEADER(plait_rng),
                    .name = "lagged",
                    .reserve = reserve,
                    .default_generator = default_generator,
                    .device_generator = device_generator,
                    .state_size = state_size,
                    .get_state = get_state,
                    .set_state = set_state,
                    .set_seed = set_seed};
  return runtime->provide(runtime->thread(), "rng", 0, &rng.h, self, NULL);
}
__attribute__((visibility("default")))
const plait_plugin plait_plugin_v1 = {PLAIT_HEADER(plait_plugin), "lagged", "1.0", 0, init, NULL};
