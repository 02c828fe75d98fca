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
  DELAY_US,    /* each piece of work sleeps so long before it begins */
  FAIL_IN,     /* the n-th kernel from now finds an error */
  FATAL_IN,    /* the n-th kernel from now ends the device */
  LIMIT,       /* bytes that a device has; 0: as many as there are */
  LAUNCHES,    /* kernels that were put into a stream */
  COPIES,      /* copies between the host and a device or two devices */
  WAITS,       /* how often the host has waited for a device */
  LIVE_BYTES,  /* of both devices */
  PINNED_BYTES,
  OPENED, /* memory of other processes that is mapped now */
  NUMBERS
};
static const char *const number_names[NUMBERS] = {
    "delay_us", "fail_in", "fatal_in",   "limit",        "launches",
    "copies",   "waits",   "live_bytes", "pinned_bytes", "opened"};
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
typedef struct work {
  struct work *next;
  void (*run)(struct work *); /* frees it, too */
} work;

/* Never freed: one that is given up serves again, as memory may remember it. */
typedef struct stream {
  struct stream *next, *next_idle;
  int device;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  work *first, **last;
  uint64_t put, done;
  int busy;
} stream;

static pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER;
static stream *streams, *idle[DEVICES]; /* all of them, and those that nobody has */
static stream *defaults[DEVICES];
static pthread_once_t started = PTHREAD_ONCE_INIT;

static int ends; /* the process does: no more work begins */

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
    const int64_t delay = __atomic_load_n(&numbers[DELAY_US], __ATOMIC_SEQ_CST);
    if (delay > 0) {
      const struct timespec pause = {delay / 1000000, delay % 1000000 * 1000};
      nanosleep(&pause, NULL);
    }
    w->run(w);
    pthread_mutex_lock(&s->lock);
    s->done++;
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
  pthread_mutex_lock(&s->lock);
  *s->last = w;
  s->last = &w->next;
  s->put++;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
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
  (void)ctx, (void)thread;
  count(WAITS, 1);
  drain(queue_of(d, s));
  return PLAIT_OK;
}
static plait_status synchronize(void *ctx, plait_thread *thread, DLDevice d) {
  (void)ctx, (void)thread;
  count(WAITS, 1);
  pthread_mutex_lock(&streams_lock);
  stream *s = streams; /* those that are made later have nothing to wait for */
  pthread_mutex_unlock(&streams_lock);
  for (; s; s = s->next)
    if (s->device == d.device_id) drain(s);
  return PLAIT_OK;
}

/* ---- events ------------------------------------------------------------------------------------
 */
/* Where an event was recorded; who waits there keeps it, wherever the event goes. */
typedef struct point {
  int users, reached;
  double milliseconds; /* when it was reached */
} point;
typedef struct event {
  point *last; /* NULL: never recorded */
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
  pthread_mutex_lock(&points_lock);
  point *p = ((event *)handle->native)->last;
  if (p) __atomic_add_fetch(&p->users, 1, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&points_lock);
  return p;
}
static int is_reached(const point *p) {
  return !p || __atomic_load_n(&p->reached, __ATOMIC_ACQUIRE);
}

static void reach(work *w) {
  point *p = ((point_work *)w)->p;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  pthread_mutex_lock(&points_lock);
  p->milliseconds = now.tv_sec * 1e3 + now.tv_nsec * 1e-6;
  __atomic_store_n(&p->reached, 1, __ATOMIC_RELEASE);
  pthread_cond_broadcast(&points_changed);
  pthread_mutex_unlock(&points_lock);
  drop_point(p);
  free(w);
}
static void await(const point *p) {
  pthread_mutex_lock(&points_lock);
  while (!is_reached(p)) pthread_cond_wait(&points_changed, &points_lock);
  pthread_mutex_unlock(&points_lock);
}
static void await_point(work *w) {
  point *p = ((point_work *)w)->p;
  await(p);
  drop_point(p);
  free(w);
}
/* Puts a point behind the work in the stream; NULL if there is no memory. */
static point *mark(stream *s) {
  point *p = calloc(1, sizeof *p);
  point_work *w = malloc(sizeof *w);
  if (!p || !w) {
    free(p);
    free(w);
    return NULL;
  }
  p->users = 2;
  *w = (point_work){{NULL, reach}, p};
  put(s, &w->w);
  return p;
}

static plait_status no_memory_for_event(plait_thread *thread) {
  return rt->raise(thread, PLAIT_MEMORY_ERROR, "ext", "no memory for an event");
}
static plait_status event_new(void *ctx, plait_thread *thread, plait_device_event *e) {
  (void)ctx;
  e->native = calloc(1, sizeof(event));
  return e->native ? PLAIT_OK : no_memory_for_event(thread);
}
static void event_free(void *ctx, plait_device_event *e) {
  (void)ctx;
  drop_point(((event *)e->native)->last);
  free(e->native);
}
static plait_status event_record(void *ctx, plait_thread *thread, plait_device_event *e,
                                 plait_stream *s) {
  (void)ctx;
  point *p = mark(queue_of(e->device, s));
  if (!p) return no_memory_for_event(thread);
  event *own = e->native;
  pthread_mutex_lock(&points_lock);
  point *before = own->last;
  own->last = p;
  pthread_mutex_unlock(&points_lock);
  drop_point(before);
  return PLAIT_OK;
}
static plait_status event_query(void *ctx, plait_thread *thread, plait_device_event *e,
                                int32_t *done) {
  (void)ctx, (void)thread;
  point *p = last_of(e);
  *done = is_reached(p);
  drop_point(p);
  return PLAIT_OK;
}
static plait_status event_wait(void *ctx, plait_thread *thread, plait_device_event *e) {
  (void)ctx, (void)thread;
  count(WAITS, 1);
  point *p = last_of(e);
  await(p);
  drop_point(p);
  return PLAIT_OK;
}
static plait_status stream_wait(void *ctx, plait_thread *thread, DLDevice d, plait_stream *s,
                                plait_device_event *e) {
  (void)ctx;
  point_work *w = malloc(sizeof *w);
  if (!w) return no_memory_for_event(thread);
  *w = (point_work){{NULL, await_point}, last_of(e)};
  put(queue_of(d, s), &w->w);
  return PLAIT_OK;
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
    if (!(u->p = mark(u->s))) drain(u->s);
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
} copy_work;
static void run_copy(work *w) {
  copy_work *c = (copy_work *)w;
  memcpy(c->to, c->from, c->nbytes);
  free(c->staged);
  free(c);
}
static plait_status copy(void *ctx, plait_thread *thread, void *to, DLDevice there,
                         const void *from, DLDevice here, uint64_t nbytes, plait_stream *s,
                         uint64_t flags) {
  (void)ctx;
  const int to_host = there.device_type == kDLCPU, from_host = here.device_type == kDLCPU;
  copy_work *c = calloc(1, sizeof *c);
  if (!c) return rt->raise(thread, PLAIT_MEMORY_ERROR, "ext", "no memory for a copy");
  *c = (copy_work){
      {NULL, run_copy}, to_host ? to : real(to), NULL, from_host ? from : real(from), nbytes};
  if (from_host && !(flags & PLAIT_COPY_ASYNC)) { /* the caller may change its memory at once */
    c->staged = malloc(nbytes);
    if (!c->staged) {
      free(c);
      return rt->raise(thread, PLAIT_MEMORY_ERROR, "ext", "no memory for a copy");
    }
    c->from = memcpy(c->staged, from, nbytes);
  }
  count(COPIES, 1);
  stream *queue = queue_of(from_host ? there : here, s);
  put(queue, &c->w);
  if (to_host && !(flags & PLAIT_COPY_ASYNC)) {
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
    for (uint16_t i = 0; i < c->n_in; i++) release_translated(&k->in[i], k->lists[i]);
    for (uint16_t i = 0; i < c->n_out; i++)
      release_translated(&k->results[i],
                         k->results[i].tag == PLAIT_TENSORS ? (void *)k->results[i].u.ts : NULL);
    free(k);
    return s;
  }
  count(LAUNCHES, 1);
  stream *queue = queue_of(c->device, c->stream);
  put(queue, &k->w);
  if (c->op->flags &
      PLAIT_OP_RANDOM) { /* numbers are drawn in the order of calls, on whatever stream */
    const plait_host *host = PLAIT_ROLE(plait_host, rt->role("host", 0));
    if (host)
      host->unlocked(host->ctx, drain_unlocked, queue);
    else
      drain(queue);
  }
  return PLAIT_OK;
}

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
  /* what is defined later, and has no decomposition */
  if (s >= 0) s = runtime->implement(thread, NULL, TYPE, launch, NULL, self, NULL);
  /* what the CPU has a kernel for, so that nothing is decomposed that is not decomposed there */
  const uint64_t n = runtime->ops(NULL, 0);
  const plait_op **ops = calloc(n, sizeof *ops);
  if (!ops) return runtime->raise(thread, PLAIT_MEMORY_ERROR, self->name, "no memory");
  const uint64_t all = runtime->ops(ops, n);
  for (uint64_t i = 0; s >= 0 && i < all && i < n; i++)
    if (ops[i]->backend[kDLCPU] && !(ops[i]->flags & PLAIT_OP_VIEW))
      s = runtime->implement(thread, ops[i], TYPE, launch, NULL, self, NULL);
  free(ops);
  return s;
}

EXPORT const plait_plugin plait_plugin_v1 = {
    PLAIT_HEADER(plait_plugin), "example-device", "1.0", 0, init, quiesce};
