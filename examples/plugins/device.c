/* A plug-in with a pretend accelerator: two devices, "ext:0" and "ext:1", whose memory the host
 * cannot touch and whose work is done later, by a thread for each stream. It computes with the
 * kernels of the CPU, so its results have the same bits. It shows what an accelerator brings, and
 * tests run on it what must not assume a CPU.
 *
 *   cc -std=c11 -O2 -shared -fPIC -I<headers> device.c -o device.so -lpthread
 *
 * From Python: plait_abi.load("device.so"), then plait.zeros(3, device="ext"). Faults come on
 * request: example_device_set below, through ctypes. */
#define _GNU_SOURCE
#include <errno.h>
#include <plait/abi.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define TYPE kDLExtDev
enum { DEVICES = 2, CLASSES = 48 };

static const plait_runtime *rt;

/* ---- requests and counts, for tests ------------------------------------------------------------
 */
enum {
  DELAY_US,    /* each piece of work sleeps so long before it begins; less if this becomes less */
  FAIL_IN,     /* the n-th kernel from now finds an error */
  FATAL_IN,    /* the n-th kernel from now ends the device */
  LIMIT,       /* bytes that a device has; 0: as many as there are */
  LAUNCHES,    /* kernels that were put into a stream */
  COPIES,      /* copies between the host and a device or two devices */
  WAITS,       /* how often the host has waited for a device */
  LIVE_BYTES,  /* of both devices */
  PINNED_BYTES,
  OPENED,     /* memory of other processes that is mapped now */
  STARTS,     /* how often the driver was started */
  FAIL_START, /* the n-th start from now fails */
  FAIL_COPY,  /* the n-th copy from now finds an error */
  REPLAYS,    /* graphs that were put into a stream */
  UNDONE,     /* pieces of work that were put into a stream and are not done */
  NUMBERS
};
static const char *const number_names[NUMBERS] = {
    "delay_us", "fail_in",    "fatal_in",   "limit",        "launches",
    "copies",   "waits",      "live_bytes", "pinned_bytes", "opened",
    "starts",   "fail_start", "fail_copy",  "replays",      "undone"};
static int64_t numbers[NUMBERS];

static int number_at(const char *name) {
  for (int i = 0; i < NUMBERS; i++)
    if (!strcmp(number_names[i], name)) return i;
  return -1;
}
EXPORT int example_device_set(const char *name, int64_t value) {
  const int i = number_at(name);
  if (i >= 0) __atomic_store_n(&numbers[i], value, __ATOMIC_SEQ_CST);
  return i >= 0;
}
EXPORT int64_t example_device_get(const char *name) {
  const int i = number_at(name);
  return i < 0 ? -1 : __atomic_load_n(&numbers[i], __ATOMIC_SEQ_CST);
}
static int64_t count(int which, int64_t change) {
  return __atomic_add_fetch(&numbers[which], change, __ATOMIC_SEQ_CST);
}
/* whether this is the time: the request counts down to 0 */
static int is_due(int which) {
  return __atomic_load_n(&numbers[which], __ATOMIC_SEQ_CST) > 0 && count(which, -1) == 0;
}

/* ---- streams: a thread and its queue -----------------------------------------------------------
 */
enum { IS_KERNEL = 1, IS_COPY = 2 };
typedef struct work {
  struct work *next;
  void (*run)(struct work *); /* several times, if it is part of a graph */
  void (*drop)(struct work *);
  /* for the records of what the device does; `kind` is 0 for what is not recorded */
  uint32_t kind; /* IS_KERNEL, IS_COPY: as in plait_activity_kind */
  uint64_t launch, queued, nbytes;
  const char *name;
} work;

/* Work that was recorded instead of done. */
typedef struct graph {
  int users; /* the owner, and each replay that is in a queue */
  int device;
  work *first, **last;
  const char *refused; /* what could not be recorded, or NULL */
} graph;

/* Never freed: one that is given up serves again, as memory may remember it. */
typedef struct stream {
  struct stream *next, *next_idle;
  int device;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  work *first, **last;
  uint64_t put, done;
  int busy;
  graph *recording; /* what is put here goes there */
} stream;

static pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER;
static stream *streams, *idle[DEVICES]; /* all of them, and those that nobody has */
static stream *defaults[DEVICES];
static pthread_once_t started = PTHREAD_ONCE_INIT;

static int ends; /* the process does: no more work begins */

static uint64_t nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#if PLAIT_TARGET >= PLAIT_VERSION(0, 5)
/* What was done and when, while somebody asks for it. */
static pthread_mutex_t activity_lock = PTHREAD_MUTEX_INITIALIZER;
static plait_activity *activities[DEVICES];
static size_t n_activities[DEVICES], room_for_activities[DEVICES];
static int is_watched[DEVICES];

static void note(const stream *s, const work *w, uint64_t queued, uint64_t begin) {
  const int d = s->device;
  if (!w->kind || !__atomic_load_n(&is_watched[d], __ATOMIC_ACQUIRE)) return;
  pthread_mutex_lock(&activity_lock);
  if (n_activities[d] == room_for_activities[d]) {
    const size_t room = room_for_activities[d] ? 2 * room_for_activities[d] : 64;
    plait_activity *more = realloc(activities[d], room * sizeof *more);
    if (more) activities[d] = more, room_for_activities[d] = room;
  }
  if (is_watched[d] && n_activities[d] < room_for_activities[d])
    activities[d][n_activities[d]++] =
        (plait_activity){.size = sizeof(plait_activity),
                         .kind = w->kind,
                         .launch = w->launch,
                         .begin = begin,
                         .end = nanoseconds(),
                         .queued = queued,
                         .stream = s == defaults[d] ? 0 : (uintptr_t)s,
                         .nbytes = w->nbytes,
                         .name = w->name,
                         .device = {TYPE, d}};
  pthread_mutex_unlock(&activity_lock);
}
#else
static void note(const stream *s, const work *w, uint64_t queued, uint64_t begin) {
  (void)s, (void)w, (void)queued, (void)begin;
}
#endif
static void run(const stream *s, work *w, uint64_t queued) {
  const uint64_t begin = nanoseconds();
  w->run(w);
  note(s, w, queued, begin);
}

static void pause_before_work(void) {
  int64_t slept = 0, left; /* microseconds */
  while ((left = __atomic_load_n(&numbers[DELAY_US], __ATOMIC_SEQ_CST) - slept) > 0) {
    const int64_t step = left < 5000 ? left : 5000;
    const struct timespec pause = {0, step * 1000};
    nanosleep(&pause, NULL);
    slept += step;
  }
}

static void *serve(void *arg) {
  stream *s = arg;
  rt->thread()->excluded = ~(uint64_t)0; /* no layer records what runs here */
  pthread_mutex_lock(&s->lock);
  for (;;) {
    while (!s->first || __atomic_load_n(&ends, __ATOMIC_SEQ_CST))
      pthread_cond_wait(&s->changed, &s->lock);
    work *w = s->first;
    s->busy = 1;
    s->first = w->next;
    if (!s->first) s->last = &s->first;
    pthread_mutex_unlock(&s->lock);
    pause_before_work();
    run(s, w, w->queued);
    w->drop(w);
    pthread_mutex_lock(&s->lock);
    s->done++;
    count(UNDONE, -1);
    s->busy = 0;
    pthread_cond_broadcast(&s->changed);
  }
  return NULL;
}

/* At the end of the process what has begun is waited for, but not for ever: it may need a lock of
 * the host language, which is gone. What is still in a queue is dropped. */
static void quiesce(void) {
  __atomic_store_n(&ends, 1, __ATOMIC_SEQ_CST);
  struct timespec most;
  clock_gettime(CLOCK_REALTIME, &most);
  most.tv_sec += 1;
  pthread_mutex_lock(&streams_lock);
  stream *s = streams;
  pthread_mutex_unlock(&streams_lock);
  for (; s; s = s->next) {
    pthread_mutex_lock(&s->lock);
    pthread_cond_broadcast(&s->changed);
    while (s->busy && !pthread_cond_timedwait(&s->changed, &s->lock, &most)) continue;
    pthread_mutex_unlock(&s->lock);
  }
}

static stream *open_stream(int device) {
  pthread_mutex_lock(&streams_lock);
  stream *s = idle[device];
  if (s) idle[device] = s->next_idle;
  pthread_mutex_unlock(&streams_lock);
  if (s || !(s = calloc(1, sizeof *s))) return s;
  s->device = device;
  s->last = &s->first;
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->changed, NULL);
  pthread_t thread;
  if (pthread_create(&thread, NULL, serve, s)) {
    free(s);
    return NULL;
  }
  pthread_detach(thread);
  pthread_mutex_lock(&streams_lock);
  s->next = streams;
  streams = s;
  pthread_mutex_unlock(&streams_lock);
  return s;
}
static void open_defaults(void) {
  for (int i = 0; i < DEVICES; i++)
    if (!(defaults[i] = open_stream(i))) abort();
}

static stream *queue_of(DLDevice d, const plait_stream *s) {
  pthread_once(&started, open_defaults);
  return s ? s->native : defaults[d.device_id];
}
static void put(stream *s, work *w) {
  w->next = NULL;
  w->queued = nanoseconds();
  pthread_mutex_lock(&s->lock);
  if (s->recording) {
    *s->recording->last = w;
    s->recording->last = &w->next;
  } else {
    *s->last = w;
    s->last = &w->next;
    s->put++;
    count(UNDONE, 1);
    pthread_cond_broadcast(&s->changed);
  }
  pthread_mutex_unlock(&s->lock);
}
static graph *recorded_by(stream *s) {
  pthread_mutex_lock(&s->lock);
  graph *g = s->recording;
  pthread_mutex_unlock(&s->lock);
  return g;
}
/* Whether the host may wait for the stream; if not, the recording there is spoiled. */
static plait_status may_wait(plait_thread *thread, stream *s, const char *what) {
  graph *g = recorded_by(s);
  if (!g) return PLAIT_OK;
  g->refused = what;
  return rt->raise(thread, PLAIT_ERROR, "ext", "%s, while the work of the stream is recorded",
                   what);
}
static void drain(stream *s) { /* waits for what is in the queue now, unless it is dropped */
  pthread_mutex_lock(&s->lock);
  const uint64_t own = s->put;
  while (s->done < own && !__atomic_load_n(&ends, __ATOMIC_SEQ_CST))
    pthread_cond_wait(&s->changed, &s->lock);
  pthread_mutex_unlock(&s->lock);
}

static plait_status stream_new(void *ctx, plait_thread *thread, plait_stream *s) {
  (void)ctx;
  s->native = open_stream(s->device.device_id);
  return s->native ? PLAIT_OK
                   : rt->raise(thread, PLAIT_MEMORY_ERROR, "ext", "no thread for a stream");
}
static void stream_free(void *ctx, plait_stream *handle) {
  (void)ctx;
  stream *s = handle->native;
  pthread_mutex_lock(&streams_lock);
  s->next_idle = idle[s->device];
  idle[s->device] = s;
  pthread_mutex_unlock(&streams_lock);
}
static plait_status stream_query(void *ctx, plait_thread *thread, DLDevice d, plait_stream *s,
                                 int32_t *done) {
  (void)ctx, (void)thread;
  stream *own = queue_of(d, s);
  pthread_mutex_lock(&own->lock);
  *done = own->done == own->put;
  pthread_mutex_unlock(&own->lock);
  return PLAIT_OK;
}
static plait_status stream_synchronize(void *ctx, plait_thread *thread, DLDevice d,
                                       plait_stream *s) {
  (void)ctx;
  const plait_status status = may_wait(thread, queue_of(d, s), "the host waited for a stream");
  if (status < 0) return status;
  count(WAITS, 1);
  drain(queue_of(d, s));
  return PLAIT_OK;
}
static plait_status synchronize(void *ctx, plait_thread *thread, DLDevice d) {
  (void)ctx;
  count(WAITS, 1);
  pthread_mutex_lock(&streams_lock);
  stream *s = streams; /* those that are made later have nothing to wait for */
  pthread_mutex_unlock(&streams_lock);
  plait_status status = PLAIT_OK;
  for (; s && status >= 0; s = s->next) {
    if (s->device != d.device_id) continue;
    status = may_wait(thread, s, "the host waited for a device");
    if (status >= 0) drain(s);
  }
  return status;
}

/* ---- events ------------------------------------------------------------------------------------
 */
/* Where an event was recorded; who waits there keeps it, wherever the event goes. */
typedef struct point {
  int users, reached;
  double milliseconds; /* when it was reached */
  graph *recording;    /* to compare with: where the stream was recorded */
  /* of an event that several processes have: what they share, and the number that it must reach */
  uint64_t *shared, number;
} point;
enum { RECORDED, REACHED }; /* the numbers in shared memory */
enum { SHARED = 2 }; /* PLAIT_EVENT_SHARED */
typedef struct event {
  point *last; /* NULL: never recorded */
  int fd; /* of shared memory, or -1 */
  uint64_t *shared; /* never unmapped, as points are used when the event is gone */
} event;
typedef struct point_work {
  work w;
  point *p;
} point_work;

static pthread_mutex_t points_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t points_changed = PTHREAD_COND_INITIALIZER;

static void drop_point(point *p) {
  if (p && __atomic_sub_fetch(&p->users, 1, __ATOMIC_ACQ_REL) == 0) free(p);
}
static point *last_of(plait_device_event *handle) {
  const event *e = handle->native;
  if (e->shared) {
    point *now = calloc(1, sizeof *now);
    if (!now) abort();
    now->users = 1;
    now->shared = e->shared;
    now->number = __atomic_load_n(&e->shared[RECORDED], __ATOMIC_ACQUIRE);
    return now;
  }
  pthread_mutex_lock(&points_lock);
  point *p = e->last;
  if (p) __atomic_add_fetch(&p->users, 1, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&points_lock);
  return p;
}
static int is_reached(const point *p) {
  if (p && p->shared) return __atomic_load_n(&p->shared[REACHED], __ATOMIC_ACQUIRE) >= p->number;
  return !p || __atomic_load_n(&p->reached, __ATOMIC_ACQUIRE);
}
static void reach_number(const point *p) {
  uint64_t seen = __atomic_load_n(&p->shared[REACHED], __ATOMIC_RELAXED);
  while (seen < p->number && !__atomic_compare_exchange_n(&p->shared[REACHED], &seen, p->number, 0,
                                                          __ATOMIC_RELEASE, __ATOMIC_RELAXED))
    continue;
}

static void reach(work *w) {
  point *p = ((point_work *)w)->p;
  if (p->shared) reach_number(p);
  pthread_mutex_lock(&points_lock);
  p->milliseconds = (double)nanoseconds() * 1e-6;
  __atomic_store_n(&p->reached, 1, __ATOMIC_RELEASE);
  pthread_cond_broadcast(&points_changed);
  pthread_mutex_unlock(&points_lock);
}
static void drop_point_work(work *w) {
  drop_point(((point_work *)w)->p);
  free(w);
}
static void await(const point *p) {
  const struct timespec pause = {0, 100000}; /* nobody tells of what other processes do */
  while (p && p->shared && !is_reached(p)) nanosleep(&pause, NULL);
  pthread_mutex_lock(&points_lock);
  while (!is_reached(p)) pthread_cond_wait(&points_changed, &points_lock);
  pthread_mutex_unlock(&points_lock);
}
static void await_point(work *w) { await(((point_work *)w)->p); }
static int put_point(stream *s, point *p, void (*run_it)(work *)) {
  point_work *w = calloc(1, sizeof *w);
  if (!w) return 0;
  w->w.run = run_it;
  w->w.drop = drop_point_work;
  w->p = p;
  put(s, &w->w);
  return 1;
}
/* Puts a point behind the work in the stream; NULL if there is no memory. */
static point *mark(stream *s, uint64_t *shared) {
  point *p = calloc(1, sizeof *p);
  if (!p) return NULL;
  p->users = 2;
  p->shared = shared;
  if (shared) p->number = __atomic_add_fetch(&shared[RECORDED], 1, __ATOMIC_ACQ_REL);
  p->recording = recorded_by(s);
  if (!put_point(s, p, reach)) {
    free(p);
    return NULL;
  }
  return p;
}

static plait_status no_memory_for_event(plait_thread *thread) {
  return rt->raise(thread, PLAIT_MEMORY_ERROR, "ext", "no memory for an event");
}
static uint64_t *map_event(int fd) {
  void *at = mmap(NULL, 2 * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return at == MAP_FAILED ? NULL : at;
}
static plait_status event_new(void *ctx, plait_thread *thread, plait_device_event *e) {
  (void)ctx;
  event *own = e->native = calloc(1, sizeof *own);
  if (!own) return no_memory_for_event(thread);
  own->fd = -1;
  if (!(e->flags & SHARED)) return PLAIT_OK;
  own->fd = memfd_create("example-event", MFD_CLOEXEC);
  if (own->fd >= 0 && !ftruncate(own->fd, 2 * sizeof(uint64_t))) own->shared = map_event(own->fd);
  if (own->shared) return PLAIT_OK;
  if (own->fd >= 0) close(own->fd);
  free(own);
  return no_memory_for_event(thread);
}
static void event_free(void *ctx, plait_device_event *e) {
  (void)ctx;
  event *own = e->native;
  drop_point(own->last);
  if (own->fd >= 0) close(own->fd);
  free(own);
}
static plait_status event_record(void *ctx, plait_thread *thread, plait_device_event *e,
                                 plait_stream *s) {
  (void)ctx;
  event *own = e->native;
  point *p = mark(queue_of(e->device, s), own->shared);
  if (!p) return no_memory_for_event(thread);
  pthread_mutex_lock(&points_lock);
  point *before = own->last;
  own->last = p;
  pthread_mutex_unlock(&points_lock);
  drop_point(before);
  return PLAIT_OK;
}
static plait_status recorded_event(plait_thread *thread) {
  return rt->raise(thread, PLAIT_ERROR, "ext",
                   "the event is part of recorded work, which is not done");
}
static plait_status event_query(void *ctx, plait_thread *thread, plait_device_event *e,
                                int32_t *done) {
  (void)ctx;
  point *p = last_of(e);
  *done = is_reached(p);
  const int is_recorded = p && p->recording && !*done;
  drop_point(p);
  return is_recorded ? recorded_event(thread) : PLAIT_OK;
}
static plait_status event_wait(void *ctx, plait_thread *thread, plait_device_event *e) {
  (void)ctx;
  count(WAITS, 1);
  point *p = last_of(e);
  const int is_recorded = p && p->recording && !is_reached(p);
  if (!is_recorded) await(p);
  drop_point(p);
  return is_recorded ? recorded_event(thread) : PLAIT_OK;
}
static plait_status stream_wait(void *ctx, plait_thread *thread, DLDevice d, plait_stream *s,
                                plait_device_event *e) {
  (void)ctx;
  stream *own = queue_of(d, s);
  point *p = last_of(e);
  if (p && p->recording && !is_reached(p)) { /* the stream joins the recording: all in one order */
    pthread_mutex_lock(&own->lock);
    own->recording = p->recording;
    pthread_mutex_unlock(&own->lock);
    drop_point(p);
    return PLAIT_OK;
  }
  if (put_point(own, p, await_point)) return PLAIT_OK;
  drop_point(p);
  return no_memory_for_event(thread);
}
static plait_status event_elapsed(void *ctx, plait_thread *thread, plait_device_event *from,
                                  plait_device_event *to, double *milliseconds) {
  (void)ctx;
  point *a = last_of(from), *b = last_of(to);
  const int reached = a && b && is_reached(a) && is_reached(b);
  if (reached) *milliseconds = b->milliseconds - a->milliseconds;
  drop_point(a);
  drop_point(b);
  return reached ? PLAIT_OK
                 : rt->raise(thread, PLAIT_ERROR, "ext", "both events must have been reached");
}

/* ---- memory ------------------------------------------------------------------------------------
 */
/* Tensors show addresses where nobody may read or write; the bytes are DISTANCE behind them. They
 * are a file without a name, which has pages only where somebody wrote: other processes can map it.
 */
#define DISTANCE ((size_t)1 << 36)
static char *shown;
static int file = -1;
static inline void *real(const void *p) { return (char *)p + DISTANCE; }

typedef struct use { /* work in another stream than the block's own */
  struct use *next;
  stream *s;
  point *p; /* where the stream was when the block was freed */
} use;
typedef struct block {
  struct block *next;
  void *data;
  int device, class, trimmed;
  stream *s; /* whose work comes in order with it */
  use *uses;
} block;

static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
static size_t fresh; /* what was never given out begins here */
static block *freed[CLASSES], *waiting;
static plait_alloc_stats counted[DEVICES]; /* all but `size` and `largest_cached` */

/* The file is made when memory is first needed, under the lock: a child that was forked before has
 * its own. */
static int has_file(void) {
  if (file >= 0) return 1;
  const int fd = memfd_create("example-device", MFD_CLOEXEC);
  if (fd < 0) return 0;
  if (ftruncate(fd, (off_t)DISTANCE) ||
      mmap(real(shown), DISTANCE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
           fd, 0) == MAP_FAILED) {
    close(fd);
    return 0;
  }
  file = fd;
  return 1;
}

static int class_of(uint64_t nbytes) {
  int c = 8; /* 256 bytes */
  while (((uint64_t)1 << c) < nbytes) c++;
  return c;
}
/* Blocks whose other streams have got past them can be given out again. */
static void take_back(void) {
  for (block **at = &waiting; *at;) {
    block *b = *at;
    for (use *u; (u = b->uses) && is_reached(u->p);) {
      b->uses = u->next;
      drop_point(u->p);
      free(u);
    }
    if (b->uses) {
      at = &b->next;
      continue;
    }
    *at = b->next;
    b->next = freed[b->class];
    freed[b->class] = b;
  }
}
static void count_taken(plait_alloc_stats *s, uint64_t size, int is_fresh) {
  s->allocations++;
  s->live_blocks++;
  s->live_bytes += size;
  if (s->live_bytes > s->peak_bytes) s->peak_bytes = s->live_bytes;
  if (is_fresh)
    s->system_allocations++;
  else
    s->cached_bytes -= size;
}
static void count_given(plait_alloc_stats *s, uint64_t size) {
  s->live_blocks--;
  s->live_bytes -= size;
  s->cached_bytes += size;
}
static block *reused(int device, int class, stream *s) {
  for (block **at = &freed[class]; *at; at = &(*at)->next) {
    block *b = *at;
    if (b->device != device || b->s != s) continue;
    *at = b->next;
    return b;
  }
  return NULL;
}
static plait_status take(void *ctx, DLDevice d, uint64_t nbytes, plait_stream *on, void **data,
                         void **out) {
  (void)ctx;
  if (nbytes > DISTANCE / 4) return PLAIT_MEMORY_ERROR;
  const int class = class_of(nbytes);
  const uint64_t size = (uint64_t)1 << class, limit = (uint64_t)example_device_get("limit");
  stream *s = queue_of(d, on);
  pthread_mutex_lock(&memory_lock);
  take_back();
  block *b = NULL;
  if (has_file() && (!limit || counted[d.device_id].live_bytes + size <= limit)) {
    b = reused(d.device_id, class, s);
    const int is_fresh = !b || b->trimmed;
    if (!b && fresh + size <= DISTANCE && (b = calloc(1, sizeof *b))) {
      b->data = shown + fresh;
      b->device = d.device_id;
      b->class = class;
      fresh += size;
    }
    if (b) b->trimmed = 0, count_taken(&counted[d.device_id], size, is_fresh);
  }
  pthread_mutex_unlock(&memory_lock);
  if (!b) return PLAIT_MEMORY_ERROR;
  b->s = s;
  *data = b->data;
  *out = b;
  count(LIVE_BYTES, (int64_t)size);
  return PLAIT_OK;
}
static void give(void *ctx, void *data, uint64_t nbytes, void *handle) {
  (void)ctx, (void)data, (void)nbytes;
  block *b = handle;
  pthread_mutex_lock(&memory_lock);
  count_given(&counted[b->device], (uint64_t)1 << b->class);
  count(LIVE_BYTES, -((int64_t)1 << b->class));
  for (use *u = b->uses; u; u = u->next)
    if (!(u->p = mark(u->s, NULL))) drain(u->s);
  block **list = b->uses ? &waiting : &freed[b->class];
  b->next = *list;
  *list = b;
  pthread_mutex_unlock(&memory_lock);
}
static void record_use(void *ctx, void *data, void *handle, plait_stream *on) {
  (void)ctx, (void)data;
  block *b = handle;
  stream *s = queue_of((DLDevice){TYPE, b->device}, on);
  pthread_mutex_lock(&memory_lock);
  use *u = b->uses;
  while (u && u->s != s) u = u->next;
  if (!u && s != b->s && (u = calloc(1, sizeof *u))) {
    *u = (use){b->uses, s, NULL};
    b->uses = u;
  }
  pthread_mutex_unlock(&memory_lock);
}
static void stats(void *ctx, DLDevice d, plait_alloc_stats *s) {
  (void)ctx;
  pthread_mutex_lock(&memory_lock);
  plait_alloc_stats all = counted[d.device_id];
  for (int c = 0; c < CLASSES; c++)
    for (const block *b = freed[c]; b; b = b->next)
      if (b->device == d.device_id && !b->trimmed) all.largest_cached = (uint64_t)1 << c;
  pthread_mutex_unlock(&memory_lock);
  all.size = s->size;
  memcpy(s, &all, s->size < sizeof all ? s->size : sizeof all);
}
static void reset_peak(void *ctx, DLDevice d) {
  (void)ctx;
  pthread_mutex_lock(&memory_lock);
  counted[d.device_id].peak_bytes = counted[d.device_id].live_bytes;
  pthread_mutex_unlock(&memory_lock);
}
/* Free blocks keep their addresses and lose their pages, once no stream works on them. */
static void trim_device(void *ctx, DLDevice d) {
  (void)ctx;
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  pthread_mutex_lock(&memory_lock);
  take_back();
  for (int c = 0; c < CLASSES; c++)
    for (block *b = freed[c]; b; b = b->next) {
      if (b->device != d.device_id || b->trimmed) continue;
      drain(b->s);
      const uintptr_t at = (uintptr_t)real(b->data);
      const uintptr_t begin = (at + page - 1) / page * page;
      const uintptr_t end = (at + ((uintptr_t)1 << c)) / page * page;
      if (begin < end) madvise((void *)begin, end - begin, MADV_REMOVE);
      counted[d.device_id].cached_bytes -= (uint64_t)1 << c;
      b->trimmed = 1;
    }
  pthread_mutex_unlock(&memory_lock);
}
static void trim(void *ctx) {
  for (int i = 0; i < DEVICES; i++) trim_device(ctx, (DLDevice){TYPE, i});
}
static const plait_allocator allocator = {.h = PLAIT_HEADER(plait_allocator),
                                          .name = "ext",
                                          .alloc = take,
                                          .free = give,
                                          .trim = trim,
                                          .stats = stats,
                                          .record_use = record_use,
#if PLAIT_TARGET >= PLAIT_VERSION(0, 5)
                                          .trim_device = trim_device,
#endif
                                          .reset_peak = reset_peak};

static plait_status pinned_alloc(void *ctx, plait_thread *thread, uint64_t nbytes, void **data) {
  (void)ctx;
  *data = aligned_alloc(64, (nbytes + 63) / 64 * 64);
  if (!*data) return rt->raise(thread, PLAIT_MEMORY_ERROR, "ext", "no memory to pin");
  count(PINNED_BYTES, (int64_t)nbytes);
  return PLAIT_OK;
}
static void pinned_free(void *ctx, void *data, uint64_t nbytes) {
  (void)ctx;
  free(data);
  count(PINNED_BYTES, -(int64_t)nbytes);
}

/* ---- memory of other processes -----------------------------------------------------------------
 */
/* A piece of our addresses, behind which pages of another process's file are. */
typedef struct window {
  struct window *next;
  char *begin;
  size_t nbytes;
} window;
static window *closed; /* to be used again; behind them is nothing */

static plait_status share(void *ctx, plait_thread *thread, DLDevice d, void *data, uint64_t nbytes,
                          plait_shared_memory *memory) {
  (void)ctx, (void)thread, (void)d, (void)nbytes;
  memory->fd = file;
  memory->offset = (uint64_t)((char *)data - shown);
  memory->length = 0; /* the descriptor says it all */
  return PLAIT_OK;
}

static window *open_window(size_t nbytes) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  pthread_mutex_lock(&memory_lock);
  window **at = &closed;
  while (*at && (*at)->nbytes != nbytes) at = &(*at)->next;
  window *w = *at;
  if (w) *at = w->next;
  const size_t begin = (fresh + page - 1) / page * page;
  if (!w && has_file() && begin + nbytes <= DISTANCE && (w = calloc(1, sizeof *w))) {
    w->begin = shown + begin;
    w->nbytes = nbytes;
    fresh = begin + nbytes;
  }
  pthread_mutex_unlock(&memory_lock);
  return w;
}
static void close_window(window *w) { /* the pages behind it go */
  mmap(real(w->begin), w->nbytes, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  pthread_mutex_lock(&memory_lock);
  w->next = closed;
  closed = w;
  pthread_mutex_unlock(&memory_lock);
}

static plait_status share_open(void *ctx, plait_thread *thread, DLDevice d,
                               const plait_shared_memory *memory, uint64_t nbytes, void **data,
                               void **opened) {
  (void)ctx, (void)d;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  if (memory->fd < 0 || nbytes > DISTANCE || memory->offset > DISTANCE - nbytes)
    return rt->raise(thread, PLAIT_VALUE_ERROR, "ext",
                     "share_open: `memory` must have a descriptor and lie within %llu bytes, got "
                     "the descriptor %d and the offset %llu",
                     (unsigned long long)DISTANCE, (int)memory->fd,
                     (unsigned long long)memory->offset);
  /* whole pages, the first and the last of which have other blocks as well */
  const size_t before = memory->offset % page;
  size_t size = page; /* powers of two, so that windows fit again */
  while (size < before + nbytes) size *= 2;
  window *w = open_window(size);
  if (!w) return rt->raise(thread, PLAIT_MEMORY_ERROR, "ext", "share_open: no addresses are left");
  if (mmap(real(w->begin), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
           memory->fd, (off_t)(memory->offset - before)) == MAP_FAILED) {
    const int error = errno;
    close_window(w);
    return rt->raise(thread, PLAIT_ERROR, "ext", "share_open: mapping the descriptor %d failed: %s",
                     (int)memory->fd, strerror(error));
  }
  count(OPENED, 1);
  *data = w->begin + before;
  *opened = w;
  return PLAIT_OK;
}
static void share_close(void *ctx, DLDevice d, void *data, uint64_t nbytes, void *opened) {
  (void)ctx, (void)d, (void)data, (void)nbytes;
  close_window(opened);
  count(OPENED, -1);
}

/* ---- errors that are found late ----------------------------------------------------------------
 */
static pthread_mutex_t errors_lock = PTHREAD_MUTEX_INITIALIZER;
static plait_device_error errors[DEVICES];

static void found(int device, uint64_t launch, plait_status code, uint32_t fatal,
                  const char *text) {
  pthread_mutex_lock(&errors_lock);
  plait_device_error *e = &errors[device];
  if (!e->code) { /* the oldest one counts */
    *e = (plait_device_error){sizeof *e, code, fatal, launch, ""};
    strncpy(e->text, text, sizeof e->text - 1);
  }
  pthread_mutex_unlock(&errors_lock);
}
static int32_t take_error(void *ctx, DLDevice d, plait_device_error *out) {
  (void)ctx;
  plait_device_error *e = &errors[d.device_id];
  if (!__atomic_load_n(&e->code, __ATOMIC_ACQUIRE)) return 0;
  pthread_mutex_lock(&errors_lock);
  const plait_device_error all = *e;
  if (!all.fatal) e->code = 0; /* a fatal one is told for ever */
  pthread_mutex_unlock(&errors_lock);
  const uint64_t size = out->size < sizeof all ? out->size : sizeof all;
  memcpy(out, &all, size);
  out->size = size;
  return 1;
}
EXPORT void example_device_revive(
    void) { /* after a fatal error, so that further tests have a device */
  pthread_mutex_lock(&errors_lock);
  memset(errors, 0, sizeof errors);
  pthread_mutex_unlock(&errors_lock);
}

/* ---- copies ------------------------------------------------------------------------------------
 */
typedef struct copy_work {
  work w;
  void *to, *staged;
  const void *from;
  uint64_t nbytes;
  int device;
} copy_work;
static void run_copy(work *w) {
  copy_work *c = (copy_work *)w;
  if (is_due(FAIL_COPY))
    found(c->device, c->w.launch, PLAIT_ERROR, 0, "the pretend device was told to fail at a copy");
  else
    memcpy(c->to, c->from, c->nbytes);
}
static void drop_copy(work *w) {
  free(((copy_work *)w)->staged);
  free(w);
}
static plait_status copy(void *ctx, plait_thread *thread, void *to, DLDevice there,
                         const void *from, DLDevice here, uint64_t nbytes, plait_stream *s,
                         uint64_t flags) {
  (void)ctx;
  const int to_host = there.device_type == kDLCPU, from_host = here.device_type == kDLCPU;
  stream *queue = queue_of(from_host ? there : here, s);
  const int waits = to_host && !(flags & PLAIT_COPY_ASYNC);
  const plait_status status = waits ? may_wait(thread, queue, "the host read a tensor") : PLAIT_OK;
  if (status < 0) return status;
  copy_work *c = calloc(1, sizeof *c);
  if (!c) return rt->raise(thread, PLAIT_MEMORY_ERROR, "ext", "no memory for a copy");
  *c = (copy_work){.w = {.run = run_copy, .drop = drop_copy, .nbytes = nbytes, .name = "copy"},
                   .to = to_host ? to : real(to),
                   .from = from_host ? from : real(from),
                   .nbytes = nbytes};
  c->w.kind = IS_COPY;
#if PLAIT_TARGET >= PLAIT_VERSION(0, 5)
  c->w.launch = PLAIT_KNOWS(plait_thread, thread->h.size, launch) ? thread->launch : 0;
#endif
  c->device = (from_host ? there : here).device_id;
  if (from_host && !(flags & PLAIT_COPY_ASYNC)) { /* the caller may change its memory at once */
    c->staged = malloc(nbytes);
    if (!c->staged) {
      free(c);
      return rt->raise(thread, PLAIT_MEMORY_ERROR, "ext", "no memory for a copy");
    }
    c->from = memcpy(c->staged, from, nbytes);
  }
  count(COPIES, 1);
  put(queue, &c->w);
  if (waits) {
    count(WAITS, 1);
    drain(queue);
  }
  return PLAIT_OK;
}

/* ---- kernels: any operator that the CPU has, called later on the same bytes
 * ---------------------- */
typedef struct kernel_work {
  work w;
  plait_call call;
  int device;
  uint64_t launch;
  plait_value in[PLAIT_MAX_ARGS], results[PLAIT_MAX_RESULTS];
  void *lists[PLAIT_MAX_ARGS];
} kernel_work;

/* The tensor as the CPU may use it: a handle on the real address; a number of the host is copied,
 * as the host may change it before the kernel reads it. */
static plait_status translated(plait_thread *thread, plait_tensor *t, plait_tensor **out) {
  const DLTensor *dl = &t->dl;
  plait_storage *storage = NULL;
  plait_status s;
  if (dl->device.device_type == kDLCPU) {
    s = rt->tensor_new(thread, dl->dtype, 0, NULL, NULL, dl->device, out);
    if (s >= 0)
      memcpy((*out)->dl.data, dl->data, (size_t)(dl->dtype.bits * dl->dtype.lanes + 7) / 8);
  } else {
    const plait_storage *own = t->storage;
    void *base = own->data ? real(own->data) : NULL;
    s = rt->storage_wrap(thread, base, own->nbytes, (DLDevice){kDLCPU, 0}, 0, NULL, NULL, &storage);
    if (s >= 0)
      s = rt->tensor_on(thread, storage, dl->data ? real(dl->data) : NULL, dl->dtype, dl->ndim,
                        dl->shape, dl->strides, out);
    plait_release(storage);
  }
  if (s >= 0) (*out)->flags |= t->flags & PLAIT_TENSOR_WRAPPED_NUMBER;
  return s;
}

static plait_status translated_value(plait_thread *thread, const plait_value *from, plait_value *to,
                                     void **list) {
  static const size_t item[] = {[PLAIT_COMPLEX] = 2 * sizeof(double),
                                [PLAIT_INTS] = sizeof(int64_t),
                                [PLAIT_FLOATS] = sizeof(double),
                                [PLAIT_STRING] = 1};
  *to = *from;
  if (from->tag == PLAIT_TENSOR) {
    plait_tensor *t = NULL;
    const plait_status s = translated(thread, from->u.t, &t);
    to->u.t = t;
    if (s < 0) to->tag = PLAIT_NONE;
    return s;
  }
  if (from->tag == PLAIT_TENSORS) {
    plait_tensor **result = calloc(from->n ? from->n : 1, sizeof *result);
    *list = result;
    to->u.ts = result;
    plait_status s =
        result ? PLAIT_OK : rt->raise(thread, PLAIT_MEMORY_ERROR, "ext", "no memory for a call");
    for (uint32_t i = 0; s >= 0 && i < from->n; i++)
      if (from->u.ts[i]) s = translated(thread, from->u.ts[i], &result[i]);
    return s;
  }
  if (from->tag == PLAIT_DEVICE) to->u.device = (DLDevice){kDLCPU, 0};
  if (from->tag == PLAIT_OBJECT) plait_retain_object(from->u.o);
  if (from->tag != PLAIT_COMPLEX && from->tag != PLAIT_INTS && from->tag != PLAIT_FLOATS &&
      from->tag != PLAIT_STRING)
    return PLAIT_OK;
  const size_t size = item[from->tag] * (from->tag == PLAIT_COMPLEX ? 1 : from->n);
  char *copy = calloc(1, size + 1); /* strings end with 0 */
  if (!copy) return rt->raise(thread, PLAIT_MEMORY_ERROR, "ext", "no memory for a call");
  if (size) memcpy(copy, from->u.s, size);
  *list = copy;
  to->u.s = copy;
  return PLAIT_OK;
}

static void release_translated(plait_value *v, void *list) {
  if (v->tag == PLAIT_TENSOR) plait_release(v->u.t);
  if (v->tag == PLAIT_OBJECT) plait_release_object(v->u.o);
  if (v->tag == PLAIT_TENSORS && v->u.ts)
    for (uint32_t i = 0; i < v->n; i++) plait_release(v->u.ts[i]);
  free(list);
}

/* Writes what the CPU has made where the device's tensor has its bytes. */
static plait_status store(plait_thread *thread, plait_tensor *to, plait_tensor *from) {
  const plait_op *op = rt->op("copy_");
  plait_value in[3] = {{PLAIT_TENSOR, 0, {0}}, {PLAIT_TENSOR, 0, {0}}, {PLAIT_BOOL, 0, {0}}};
  plait_value out[1] = {{PLAIT_NONE, 0, {0}}};
  in[0].u.t = to;
  in[1].u.t = from;
  plait_call c = {
      .size = sizeof c, .n_in = 3, .n_out = 1, .op = op, .in = in, .out = out, .thread = thread};
  const plait_status s = rt->call(&c);
  rt->release_value(&out[0]);
  return s;
}

static void run_kernel(work *w) {
  kernel_work *k = (kernel_work *)w;
  plait_thread *thread = rt->thread();
  plait_value result[PLAIT_MAX_RESULTS];
  plait_status s = PLAIT_OK;
  if (is_due(FATAL_IN)) {
    found(k->device, k->launch, PLAIT_ERROR, 1, "the pretend device was told to stop");
  } else if (is_due(FAIL_IN)) {
    found(k->device, k->launch, PLAIT_VALUE_ERROR, 0, "the pretend device was told to fail");
  } else {
    for (uint16_t i = 0; i < k->call.n_out; i++) result[i] = (plait_value){PLAIT_NONE, 0, {0}};
    k->call.in = k->in;
    k->call.out = result;
    k->call.thread = thread;
    s = rt->call(&k->call);
    for (uint16_t i = 0; s >= 0 && i < k->call.n_out; i++) {
      if (k->results[i].tag == PLAIT_TENSOR && result[i].tag == PLAIT_TENSOR)
        s = store(thread, k->results[i].u.t, result[i].u.t);
      for (uint32_t j = 0; s >= 0 && k->results[i].tag == PLAIT_TENSORS && j < k->results[i].n; j++)
        s = store(thread, k->results[i].u.ts[j], result[i].u.ts[j]);
    }
    for (uint16_t i = 0; i < k->call.n_out; i++) rt->release_value(&result[i]);
    if (s < 0) {
      const char *text = thread->error ? thread->error->message : "no text";
      const char *colon = strstr(text, ": "); /* the operator's name is put before it again */
      found(k->device, k->launch, s, 0, colon ? colon + 2 : text);
      rt->clear(thread);
    }
  }
}
static void drop_kernel(work *w) {
  kernel_work *k = (kernel_work *)w;
  for (uint16_t i = 0; i < k->call.n_in; i++) release_translated(&k->in[i], k->lists[i]);
  for (uint16_t i = 0; i < k->call.n_out; i++)
    release_translated(&k->results[i],
                       k->results[i].tag == PLAIT_TENSORS ? (void *)k->results[i].u.ts : NULL);
  free(k);
}

static void drain_unlocked(void *queue) { drain(queue); }

static plait_status launch(plait_call *c) {
  if (!c->op->backend[kDLCPU] && !(c->op->flags & PLAIT_OP_COMPOSITE)) return PLAIT_DECLINE;
  kernel_work *k = calloc(1, sizeof *k);
  if (!k) return rt->fail(c, PLAIT_MEMORY_ERROR, "no memory for a call");
  k->w.run = run_kernel;
  k->w.drop = drop_kernel;
  k->w.kind = IS_KERNEL;
  k->w.launch = c->launch;
  k->w.name = c->op->name;
  k->call = (plait_call){.size = sizeof k->call, .n_in = c->n_in, .n_out = c->n_out, .op = c->op};
  k->device = c->device.device_id;
  k->launch = c->launch;
  plait_status s = PLAIT_OK;
  for (uint16_t i = 0; s >= 0 && i < c->n_in; i++)
    s = translated_value(c->thread, &c->in[i], &k->in[i], &k->lists[i]);
  for (uint16_t i = 0; s >= 0 && i < c->n_out; i++) {
    void *list = NULL;
    s = translated_value(c->thread, &c->out[i], &k->results[i], &list);
  }
  if (s < 0) {
    drop_kernel(&k->w);
    return s;
  }
  count(LAUNCHES, 1);
  stream *queue = queue_of(c->device, c->stream);
  put(queue, &k->w);
  /* numbers are drawn in the order of calls, on whatever stream */
  if ((c->op->flags & PLAIT_OP_RANDOM) && !recorded_by(queue)) {
    const plait_host *host = PLAIT_ROLE(plait_host, rt->role("host", 0));
    if (host)
      host->unlocked(host->ctx, drain_unlocked, queue);
    else
      drain(queue);
  }
  return PLAIT_OK;
}

#if PLAIT_TARGET >= PLAIT_VERSION(0, 5)
/* ---- what the driver tells and does besides ----------------------------------------------------
 */
static plait_status start(void *ctx, plait_thread *thread) {
  (void)ctx;
  if (is_due(FAIL_START))
    return rt->raise(thread, PLAIT_ERROR, "ext", "the driver was told not to start");
  count(STARTS, 1);
  pthread_once(&started, open_defaults);
  return PLAIT_OK;
}
static uint64_t bytes_of_device(void) {
  const uint64_t limit = (uint64_t)example_device_get("limit");
  return limit ? limit : DISTANCE / DEVICES;
}
static plait_status properties(void *ctx, plait_thread *thread, DLDevice d,
                               plait_device_properties *out) {
  (void)ctx, (void)thread;
  plait_device_properties all = {.size = out->size,
                                 .memory = bytes_of_device(),
                                 .flags = PLAIT_DEVICE_PEERS,
                                 .major = 1,
                                 .units = 1,
                                 .threads = 1,
                                 .name = "pretend accelerator"};
  all.uuid[15] = (uint8_t)(d.device_id + 1);
  memcpy(out, &all, out->size < sizeof all ? out->size : sizeof all);
  return PLAIT_OK;
}
static plait_status priorities(void *ctx, plait_thread *thread, DLDevice d, int32_t *lowest,
                               int32_t *highest) {
  (void)ctx, (void)thread, (void)d;
  *lowest = 1;
  *highest = -2; /* all of them are served alike */
  return PLAIT_OK;
}

/* Memory for an allocator that caches it (caching.cpp): blocks of the default stream. */
typedef struct loan {
  struct loan *next;
  void *data, *block;
} loan;
static loan *loans;
static plait_status memory_alloc(void *ctx, plait_thread *thread, DLDevice d, uint64_t nbytes,
                                 void **data) {
  (void)thread;
  loan *l = calloc(1, sizeof *l);
  if (!l || take(ctx, d, nbytes, NULL, &l->data, &l->block) != PLAIT_OK) {
    free(l);
    return PLAIT_MEMORY_ERROR;
  }
  *data = l->data;
  pthread_mutex_lock(&memory_lock);
  l->next = loans;
  loans = l;
  pthread_mutex_unlock(&memory_lock);
  return PLAIT_OK;
}
static void memory_free(void *ctx, DLDevice d, void *data, uint64_t nbytes) {
  synchronize(ctx, rt->thread(), d);
  pthread_mutex_lock(&memory_lock);
  loan **at = &loans;
  while (*at && (*at)->data != data) at = &(*at)->next;
  loan *l = *at;
  if (l) *at = l->next;
  pthread_mutex_unlock(&memory_lock);
  if (l) give(ctx, data, nbytes, l->block);
  free(l);
}
static plait_status memory_info(void *ctx, plait_thread *thread, DLDevice d, uint64_t *free_bytes,
                                uint64_t *total_bytes) {
  (void)ctx, (void)thread;
  *total_bytes = bytes_of_device();
  pthread_mutex_lock(&memory_lock);
  const uint64_t live = counted[d.device_id].live_bytes;
  pthread_mutex_unlock(&memory_lock);
  *free_bytes = *total_bytes > live ? *total_bytes - live : 0;
  return PLAIT_OK;
}

static plait_status event_share(void *ctx, plait_thread *thread, plait_device_event *e,
                                plait_shared_memory *out) {
  (void)ctx, (void)thread;
  out->fd = ((event *)e->native)->fd;
  out->offset = 0;
  out->length = 0;
  return PLAIT_OK;
}
static plait_status event_open(void *ctx, plait_thread *thread, const plait_shared_memory *from,
                               plait_device_event *e) {
  (void)ctx;
  event *own = e->native = calloc(1, sizeof *own);
  if (!own) return no_memory_for_event(thread);
  own->fd = dup(from->fd);
  own->shared = own->fd < 0 ? NULL : map_event(own->fd);
  if (own->shared) return PLAIT_OK;
  if (own->fd >= 0) close(own->fd);
  free(own);
  return rt->raise(thread, PLAIT_VALUE_ERROR, "ext", "the descriptor %d is not that of an event",
                   (int)from->fd);
}

typedef struct replay {
  work w;
  graph *g;
  const stream *s;
} replay;
static void leave_graph(graph *g) {
  if (__atomic_sub_fetch(&g->users, 1, __ATOMIC_ACQ_REL)) return;
  for (work *w = g->first, *next; w; w = next) {
    next = w->next;
    w->drop(w);
  }
  free(g);
}
static void run_graph(work *w) {
  const replay *r = (replay *)w;
  for (work *each = r->g->first; each; each = each->next) run(r->s, each, w->queued);
}
static void drop_replay(work *w) {
  leave_graph(((replay *)w)->g);
  free(w);
}
static plait_status capture_begin(void *ctx, plait_thread *thread, DLDevice d, plait_stream *s) {
  (void)ctx;
  stream *own = queue_of(d, s);
  graph *g = recorded_by(own) ? NULL : calloc(1, sizeof *g);
  if (!g)
    return rt->raise(thread, PLAIT_ERROR, "ext", "the stream is recorded already, or no memory");
  *g = (graph){.users = 1, .device = d.device_id};
  g->last = &g->first;
  pthread_mutex_lock(&own->lock);
  own->recording = g;
  pthread_mutex_unlock(&own->lock);
  return PLAIT_OK;
}
static plait_status capture_end(void *ctx, plait_thread *thread, DLDevice d, plait_stream *s,
                                void **out) {
  (void)ctx;
  graph *g = recorded_by(queue_of(d, s));
  if (!g) return rt->raise(thread, PLAIT_ERROR, "ext", "the stream is not recorded");
  pthread_mutex_lock(&streams_lock);
  stream *each = streams;
  pthread_mutex_unlock(&streams_lock);
  for (; each; each = each->next) {
    pthread_mutex_lock(&each->lock);
    if (each->recording == g) each->recording = NULL;
    pthread_mutex_unlock(&each->lock);
  }
  if (!g->refused) return *out = g, PLAIT_OK;
  const char *why = g->refused;
  leave_graph(g);
  *out = NULL;
  return rt->raise(thread, PLAIT_ERROR, "ext", "the recording is spoiled: %s", why);
}
static int32_t capture_query(void *ctx, DLDevice d, plait_stream *s) {
  (void)ctx;
  return recorded_by(queue_of(d, s)) != NULL;
}
static plait_status graph_launch(void *ctx, plait_thread *thread, void *graph_, DLDevice d,
                                 plait_stream *s) {
  (void)ctx;
  replay *r = calloc(1, sizeof *r);
  if (!r) return rt->raise(thread, PLAIT_MEMORY_ERROR, "ext", "no memory for a replay");
  *r = (replay){.w = {.run = run_graph, .drop = drop_replay}, .g = graph_, .s = queue_of(d, s)};
  __atomic_add_fetch(&r->g->users, 1, __ATOMIC_RELAXED);
  count(REPLAYS, 1);
  put(queue_of(d, s), &r->w);
  return PLAIT_OK;
}
static void graph_free(void *ctx, void *graph_) {
  (void)ctx;
  leave_graph(graph_);
}

static plait_status activity_start(void *ctx, plait_thread *thread, DLDevice d) {
  (void)ctx, (void)thread;
  pthread_mutex_lock(&activity_lock);
  n_activities[d.device_id] = 0;
  __atomic_store_n(&is_watched[d.device_id], 1, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&activity_lock);
  return PLAIT_OK;
}
static plait_status activity_stop(void *ctx, plait_thread *thread, DLDevice d,
                                  void (*each)(void *, const plait_activity *), void *arg) {
  synchronize(ctx, thread, d);
  pthread_mutex_lock(&activity_lock);
  __atomic_store_n(&is_watched[d.device_id], 0, __ATOMIC_RELEASE);
  for (size_t i = 0; i < n_activities[d.device_id]; i++) each(arg, &activities[d.device_id][i]);
  n_activities[d.device_id] = 0;
  pthread_mutex_unlock(&activity_lock);
  return PLAIT_OK;
}
#endif

extern const plait_plugin plait_plugin_v1;

/* ---- the tables --------------------------------------------------------------------------------
 */
static int32_t device_count(void *ctx) {
  (void)ctx;
  return DEVICES;
}
static const plait_device device = {
    .h = PLAIT_HEADER(plait_device),
    .name = "ext",
    .count = device_count,
    .copy = copy,
    .synchronize = synchronize,
    .stream_synchronize = stream_synchronize,
    .stream_new = stream_new,
    .stream_free = stream_free,
    .stream_query = stream_query,
    .event_new = event_new,
    .event_free = event_free,
    .event_record = event_record,
    .event_query = event_query,
    .event_wait = event_wait,
    .stream_wait = stream_wait,
    .event_elapsed = event_elapsed,
    .pinned_alloc = pinned_alloc,
    .pinned_free = pinned_free,
    .take_error = take_error,
    .share = share,
    .share_open = share_open,
    .share_close = share_close,
#if PLAIT_TARGET >= PLAIT_VERSION(0, 5)
    .start = start,
    .properties = properties,
    .priorities = priorities,
    .memory_alloc = memory_alloc,
    .memory_free = memory_free,
    .memory_info = memory_info,
    .event_share = event_share,
    .event_open = event_open,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .capture_query = capture_query,
    .graph_launch = graph_launch,
    .graph_free = graph_free,
    .activity_start = activity_start,
    .activity_stop = activity_stop,
#endif
};

#if PLAIT_TARGET >= PLAIT_VERSION(0, 5)
/* Brings the kernel of an operator that is defined later, such as the step of an optimizer. */
EXPORT int example_device_implement(const char *name) {
  return rt->implement_named(rt->thread(), name, TYPE, launch, NULL, &plait_plugin_v1, NULL);
}
#endif

static plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  rt = runtime;
  plait_thread *thread = runtime->thread();
  if (!shown) { /* address space alone */
    void *all =
        mmap(NULL, 2 * DISTANCE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
      return runtime->raise(thread, PLAIT_MEMORY_ERROR, self->name, "no address space");
    shown = all;
  }
  plait_status s = runtime->provide(thread, "device", TYPE, &device.h, self, NULL);
  if (s >= 0) s = runtime->provide(thread, "allocator", TYPE, &allocator.h, self, NULL);
  /* what has no decomposition, also if it is defined later */
  if (s >= 0) s = runtime->implement(thread, NULL, TYPE, launch, NULL, self, NULL);
#ifndef EXAMPLE_PRIMITIVES_ALONE
  /* what the CPU has a kernel for, so that nothing is decomposed that is not decomposed there */
  const uint64_t n = runtime->ops(NULL, 0);
  const plait_op **ops = calloc(n, sizeof *ops);
  if (!ops) return runtime->raise(thread, PLAIT_MEMORY_ERROR, self->name, "no memory");
  const uint64_t all = runtime->ops(ops, n);
  for (uint64_t i = 0; s >= 0 && i < all && i < n; i++)
    if (ops[i]->backend[kDLCPU] && !(ops[i]->flags & PLAIT_OP_VIEW))
      s = runtime->implement(thread, ops[i], TYPE, launch, NULL, self, NULL);
  free(ops);
#endif
  return s;
}

EXPORT const plait_plugin plait_plugin_v1 = {
    PLAIT_HEADER(plait_plugin), "example-device", "1.0", 0, init, quiesce};
