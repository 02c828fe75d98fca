/* The functions of libplait_profiler, for its Python module and for programs without Python. Rows
 * and what their numbers mean: plait_profiler/_recording.py. */
#ifndef PLAIT_PROFILER_PROFILER_H
#define PLAIT_PROFILER_PROFILER_H
#include <plait/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plait_profiler_session plait_profiler_session;

/* Begins to record events of these kinds (plait_event_kind), at most `capacity` a thread, of which
 * the latest stay. */
plait_status plait_profiler_start(uint64_t kinds, uint64_t capacity, int stacks,
                                  plait_profiler_session **out);
/* An error is a device's, found by waiting, or that there is no memory for the rows. */
plait_status plait_profiler_stop(plait_profiler_session *);
void plait_profiler_free(plait_profiler_session *); /* of one that was stopped */

/* Of a session that was stopped. */
const void *plait_profiler_rows(const plait_profiler_session *, uint64_t *count);
void plait_profiler_times(const plait_profiler_session *, uint64_t *begin, uint64_t *end);
/* pairs of a kind and a number of events that had no room; of a time and the allocator's bytes;
 * both return how many there are, and fill at most `room` */
uint64_t plait_profiler_dropped(const plait_profiler_session *, uint64_t (*pairs)[2],
                                uint64_t room);
uint64_t plait_profiler_reserved(const plait_profiler_session *, uint64_t (*pairs)[2],
                                 uint64_t room);

/* Calls `visit` for each text of a table, in the order of their numbers: 's' signatures, 'c'
 * contexts, 'm' modules, 'k' stacks. Texts are JSON. */
void plait_profiler_texts(char table, void (*visit)(void *ctx, const char *text, uint64_t length),
                          void *ctx);

int plait_profiler_is_recording(void);

/* The number of a module or a stack ('m', 'k') by a hash of the caller's: found, or 0; added with
 * its text. */
uint32_t plait_profiler_find(char table, uint64_t hash);
uint32_t plait_profiler_add(char table, uint64_t hash, const char *text);
/* Of the calling thread: the module whose forward runs. Returns the one before. */
uint32_t plait_profiler_set_module(uint32_t number);
/* Called at the end of events while a session wants stacks: the number of the stack, or 0. */
void plait_profiler_set_stack_function(uint32_t (*)(void));
/* Says that a storage is of this category from now on. */
void plait_profiler_mark(const plait_storage *, uint32_t category);
/* The folder into which children of later forks write what they record; "" for none. */
void plait_profiler_set_journal(const char *folder);

#ifdef __cplusplus
}
#endif
#endif /* PLAIT_PROFILER_PROFILER_H */
