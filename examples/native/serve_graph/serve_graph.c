/* A server that answers HTTP from a graph that plait_graph.export wrote, without Python.
 *
 *     POST /predict   the inputs in JSON, as a file of NumPy, or as bytes (arrays.h); the outputs
 *     GET /health     {"status": "ok", ...}
 *     GET /model      names, dtypes and shapes
 *
 * One thread reads and writes all connections and never waits for one of them. Workers, each with a
 * graph of its own, compute. Sizes, times and numbers of requests are limited. SIGTERM and SIGINT
 * end it when the requests that have arrived are answered. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "arrays.h"
#include "http.h"

enum { MOST_CONNECTIONS = 1000, GRACE_MS = 5000, LINGER_MS = 1000 };
static const size_t kMostBytes = (size_t)1 << 30; /* of the requests of all connections */

/* At the end a connection lingers: what a client still sends is thrown away, so that it can read
 * the response. */
typedef enum state { READING, COMPUTING, WRITING, LINGERING } state;

/* A connection. While it computes it belongs to a worker, else to the thread of connections. */
typedef struct connection {
  int fd;
  state state;
  http_request request;
  bool has_head;
  buffer in, out;
  size_t sent;
  int status;
  int64_t deadline; /* in milliseconds */
  struct connection *next;
} connection;

/* A list of connections: the first in is the first out. */
typedef struct queue {
  connection *first, *last;
  int n;
} queue;

static struct server {
  const char *file, *libraries, *address;
  int port, n_workers, threads, timeout_ms;
  bool maps;
  size_t largest; /* body, in bytes */
  buffer description;
  int listener, wake[2];
  connection *all[MOST_CONNECTIONS];
  int n, most; /* connections */
  unsigned long long answers, errors;
  pthread_mutex_t lock; /* of what follows */
  pthread_cond_t has_work;
  queue work, done;
  bool ends;
} server = {.address = "127.0.0.1",
            .port = 8000,
            .n_workers = 2,
            .threads = 1,
            .timeout_ms = 10000,
            .listener = -1,
            .lock = PTHREAD_MUTEX_INITIALIZER,
            .has_work = PTHREAD_COND_INITIALIZER};

static volatile sig_atomic_t stops;

static int64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void wake(void) {
  const char byte = 0;
  if (write(server.wake[1], &byte, 1) < 0) return; /* the pipe is full: it is awake */
}

static void stop(int signal_number) {
  (void)signal_number;
  const int saved = errno;
  stops = 1;
  wake();
  errno = saved;
}

static void push(queue *q, connection *c) {
  c->next = NULL;
  if (q->last)
    q->last->next = c;
  else
    q->first = c;
  q->last = c;
  q->n++;
}

static connection *pop(queue *q) {
  connection *c = q->first;
  if (!c) return NULL;
  q->first = c->next;
  if (!q->first) q->last = NULL;
  q->n--;
  return c;
}

/* ---- responses ------------------------------------------------------------------------------- */

/* Put a head before the body, which is what `body` has; the connection is written from now on. */
static void respond(connection *c, int status, const char *type, const buffer *body) {
  char head[512];
  if (body->failed) status = 503;
  c->request.keep_alive &= !stops && status != 408;
  c->out.n = c->sent = 0;
  const size_t n = body->failed ? 0 : body->n;
  buffer_add(&c->out, head, http_write_head(head, status, type, n, c->request.keep_alive));
  buffer_add(&c->out, body->data, n);
  c->status = status;
}

static void respond_error(connection *c, int status, const char *text) {
  char clean[256];
  size_t n = 0;
  for (; text[n] && n < sizeof clean - 1; n++) {
    const unsigned char x = (unsigned char)text[n];
    clean[n] = x < 32 || x > 126 || x == '"' || x == '\\' ? '\'' : (char)x;
  }
  clean[n] = 0;
  buffer body = {0};
  buffer_print(&body, "{\"error\": \"%s\"}\n", clean);
  respond(c, status, TYPE_JSON, &body);
  free(body.data);
}

/* ---- workers --------------------------------------------------------------------------------- */

static int status_of(int code) {
  switch (code) {
    case PLAIT_RUN_MEMORY_ERROR: return 503;
    case PLAIT_RUN_SHAPE_ERROR:
    case PLAIT_RUN_DTYPE_ERROR:
    case PLAIT_RUN_VALUE_ERROR:
    case PLAIT_RUN_INDEX_ERROR: return 400; /* of values, such as an index that is too large */
    default: return 500;
  }
}

static void predict(plait_run *run, connection *c) {
  char error[256] = "", *body = c->in.data + c->request.head;
  const char next = body[c->request.body]; /* of a request that came with this one */
  body[c->request.body] = 0;
  int status = read_inputs(run, c->request.content_type, body, c->request.body, error);
  body[c->request.body] = next;
  if (status == 200) {
    const int code = plait_run_execute(run);
    if (code) {
      status = status_of(code);
      snprintf(error, sizeof error, "%s", plait_run_error(run));
    }
  }
  const char *type = c->request.accept;
  if (!*type || !strcmp(type, "*/*")) type = c->request.content_type;
  buffer out = {0};
  if (status == 200) status = write_outputs(run, type, &out, error);
  if (status == 200)
    respond(c, status, type, &out);
  else
    respond_error(c, status, error);
  free(out.data);
}

static void *work(void *run) {
  for (;;) {
    pthread_mutex_lock(&server.lock);
    while (!server.work.first && !server.ends) pthread_cond_wait(&server.has_work, &server.lock);
    connection *c = pop(&server.work);
    pthread_mutex_unlock(&server.lock);
    if (!c) break;
    predict(run, c);
    pthread_mutex_lock(&server.lock);
    push(&server.done, c);
    pthread_mutex_unlock(&server.lock);
    wake();
  }
  plait_run_close(run);
  return NULL;
}

/* ---- connections ----------------------------------------------------------------------------- */

static void close_at(int i) {
  connection *c = server.all[i];
  close(c->fd);
  free(c->in.data);
  free(c->out.data);
  free(c);
  server.all[i] = server.all[--server.n];
}

static void begin_to_write(connection *c) {
  c->state = WRITING;
  c->deadline = now_ms() + server.timeout_ms;
  if (c->status == 200)
    server.answers++;
  else
    server.errors++;
}

static void hand_over(connection *c) {
  pthread_mutex_lock(&server.lock);
  const bool is_full = server.work.n >= 16 * server.n_workers;
  if (!is_full) {
    c->state = COMPUTING;
    push(&server.work, c);
    pthread_cond_signal(&server.has_work);
  }
  pthread_mutex_unlock(&server.lock);
  if (!is_full) return;
  respond_error(c, 503, "too many requests wait");
  begin_to_write(c);
}

/* Answer a whole request, or give it to a worker. */
static void answer(connection *c) {
  const http_request *r = &c->request;
  buffer body = {0};
  const bool gets = !strcmp(r->method, "GET");
  if (!strcmp(r->path, "/predict") && !strcmp(r->method, "POST")) {
    hand_over(c);
    return;
  }
  if (!strcmp(r->path, "/health") && gets) {
    buffer_print(&body, "{\"status\": \"ok\", \"answers\": %llu, \"errors\": %llu}\n",
                 server.answers, server.errors);
    respond(c, 200, TYPE_JSON, &body);
  } else if (!strcmp(r->path, "/model") && gets) {
    respond(c, 200, TYPE_JSON, &server.description);
  } else if (!strcmp(r->path, "/predict") || !strcmp(r->path, "/health") ||
             !strcmp(r->path, "/model")) {
    respond_error(c, 405, "POST /predict, GET /health and GET /model are there");
  } else {
    respond_error(c, 404, "there are /predict, /health and /model");
  }
  free(body.data);
  begin_to_write(c);
}

/* Look at the bytes that have arrived. */
static void look(connection *c) {
  if (!c->has_head) {
    const int status = http_read_head(c->in.data, c->in.n, server.largest, &c->request);
    if (!status) return;
    if (status != 200) {
      c->request.keep_alive = false; /* where the next request begins is not known */
      respond_error(c, status, http_reason(status));
      begin_to_write(c);
      return;
    }
    c->has_head = true;
    static const char more[] = "HTTP/1.1 100 Continue\r\n\r\n";
    if (c->request.expects_continue && c->in.n < c->request.head + c->request.body &&
        send(c->fd, more, sizeof more - 1, MSG_NOSIGNAL) < 0)
      return; /* the next read tells that the connection has ended */
  }
  if (c->in.n >= c->request.head + c->request.body) answer(c);
}

/* Read what there is. False: the connection has ended. */
static bool receive(connection *c) {
  char bytes[65536];
  const ssize_t n = recv(c->fd, bytes, sizeof bytes, 0);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  if (!n) return false;
  if (c->state == LINGERING) return true;
  if (!c->in.n) c->deadline = now_ms() + server.timeout_ms; /* of the whole request */
  buffer_add(&c->in, bytes, (size_t)n);
  buffer_add(&c->in, "", 1); /* room for the null character behind a body */
  if (c->in.failed) return false;
  c->in.n--;
  look(c);
  return true;
}

/* Write what is left. False: the connection has ended, or is to be closed. */
static bool transmit(connection *c) {
  if (c->out.failed) return false;
  while (c->sent < c->out.n) {
    const ssize_t n = send(c->fd, c->out.data + c->sent, c->out.n - c->sent, MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    c->sent += (size_t)n;
  }
  if (!c->request.keep_alive) {
    c->state = LINGERING;
    c->deadline = now_ms() + LINGER_MS;
    return !shutdown(c->fd, SHUT_WR);
  }
  const size_t used = c->request.head + c->request.body;
  memmove(c->in.data, c->in.data + used, c->in.n - used);
  c->in.n -= used;
  c->has_head = false;
  c->state = READING;
  c->deadline = now_ms() + (c->in.n ? 1 : 3) * (int64_t)server.timeout_ms;
  if (c->in.n) look(c);
  return true;
}

/* Accept connections that wait, not all that a client may open meanwhile. */
static void accept_some(void) {
  for (int i = 0; i < 64; i++) {
    const int fd = accept(server.listener, NULL, NULL);
    if (fd < 0) return;
    const int one = 1;
    connection *c = server.n < server.most ? calloc(1, sizeof *c) : NULL;
    if (!c || fcntl(fd, F_SETFL, O_NONBLOCK) < 0) {
      free(c);
      close(fd);
      continue;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->fd = fd;
    c->deadline = now_ms() + server.timeout_ms;
    server.all[server.n++] = c;
  }
}

static void take_results(void) {
  char bytes[256];
  while (read(server.wake[0], bytes, sizeof bytes) > 0) continue;
  for (;;) {
    pthread_mutex_lock(&server.lock);
    connection *c = pop(&server.done);
    pthread_mutex_unlock(&server.lock);
    if (!c) return;
    begin_to_write(c);
  }
}

/* Serve connection `i`, for which poll() has told `events`. False: it is closed. */
static bool serve(int i, short events, int64_t now) {
  connection *c = server.all[i];
  bool stays = true;
  if ((c->state == READING || c->state == LINGERING) && events & (POLLIN | POLLHUP | POLLERR))
    stays = receive(c);
  if (stays && c->state == WRITING) stays = transmit(c);
  if (stays && c->state != COMPUTING && now > c->deadline) {
    stays = c->state == READING && c->in.n; /* a part of a request */
    if (stays) {
      respond_error(c, 408, "the request took too long");
      begin_to_write(c);
    }
  }
  if (stays && stops && c->state == READING && !c->in.n) stays = false;
  if (!stays) close_at(i);
  return stays;
}

/* Run until a signal has come and all requests are answered. */
static void run_connections(void) {
  static struct pollfd polled[MOST_CONNECTIONS + 2];
  int64_t end = 0;
  while (!stops || !end || (server.n && now_ms() < end)) {
    polled[0] = (struct pollfd){.fd = server.wake[0], .events = POLLIN};
    polled[1] = (struct pollfd){.fd = server.listener, .events = POLLIN};
    const int n = server.n;
    for (int i = 0; i < n; i++) {
      const connection *c = server.all[i];
      polled[2 + i].fd = c->state == COMPUTING ? -1 : c->fd;
      polled[2 + i].events = c->state == WRITING ? POLLOUT : POLLIN;
      polled[2 + i].revents = 0;
    }
    poll(polled, (nfds_t)n + 2, 200);
    take_results();
    const int64_t now = now_ms();
    if (stops && !end) {
      end = now + GRACE_MS;
      close(server.listener);
      server.listener = -1;
    }
    for (int i = n - 1; i >= 0; i--) serve(i, polled[2 + i].revents, now);
    if (!stops && polled[1].revents) accept_some();
  }
}

/* ---- start and end --------------------------------------------------------------------------- */

static int fail(const char *what, const char *why) {
  fprintf(stderr, "serve_graph: %s: %s\n", what, why);
  return 1;
}

static int open_listener(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)server.port)};
  const int one = 1;
  if (inet_pton(AF_INET, server.address, &address.sin_addr) != 1)
    return fail(server.address, "is no address of IPv4");
  server.listener = socket(AF_INET, SOCK_STREAM, 0);
  socklen_t size = sizeof address;
  if (server.listener < 0 ||
      setsockopt(server.listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0 ||
      bind(server.listener, (struct sockaddr *)&address, size) < 0 ||
      listen(server.listener, 128) < 0 || fcntl(server.listener, F_SETFL, O_NONBLOCK) < 0 ||
      getsockname(server.listener, (struct sockaddr *)&address, &size) < 0)
    return fail("the port cannot be opened", strerror(errno));
  server.port = ntohs(address.sin_port);
  return 0;
}

/* Open a graph for a worker. */
static plait_run *open_graph(void) {
  plait_run *run = NULL;
  plait_run_settings settings = {.size = sizeof settings,
                                 .libraries = server.libraries,
                                 .threads = (uint32_t)server.threads,
                                 .flags = server.maps ? PLAIT_RUN_MAP_WEIGHTS : 0};
  const char *problem = NULL;
  if (plait_run_open(server.file, &settings, &run))
    problem = plait_run_error(run);
  else if (plait_run_count(run, PLAIT_RUN_NUMBER))
    problem = "the graph trains; only graphs without numbers are served";
  if (!problem) return run;
  fail(server.file, problem);
  plait_run_close(run);
  return NULL;
}

static int serve_graph(void) {
  pthread_t *threads = calloc((size_t)server.n_workers, sizeof *threads);
  plait_run **runs = calloc((size_t)server.n_workers, sizeof *runs);
  int n = 0, code = !threads || !runs ? fail("start", "no memory") : 0;
  for (; !code && n < server.n_workers; n++) code = !(runs[n] = open_graph());
  if (!code) {
    server.largest = largest_body(runs[0]);
    const size_t most = kMostBytes / (server.largest + HTTP_LARGEST_HEAD);
    server.most = most > MOST_CONNECTIONS ? MOST_CONNECTIONS : most < 16 ? 16 : (int)most;
    write_description(runs[0], &server.description);
    code = open_listener();
  }
  for (n = 0; !code && n < server.n_workers; n++)
    if (pthread_create(&threads[n], NULL, work, runs[n])) code = fail("start", "no thread");
  if (!code) {
    printf("serve_graph: http://%s:%d\n", server.address, server.port);
    fflush(stdout);
    run_connections();
  }
  pthread_mutex_lock(&server.lock);
  server.ends = true;
  pthread_cond_broadcast(&server.has_work);
  pthread_mutex_unlock(&server.lock);
  for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
  while (server.n) close_at(server.n - 1);
  if (!code) printf("serve_graph: %llu answers, %llu errors\n", server.answers, server.errors);
  free(server.description.data);
  free(threads);
  free(runs);
  return code;
}

static int read_options(int argc, char **argv) {
  int option;
  while ((option = getopt(argc, argv, "a:p:w:t:s:l:m")) >= 0) {
    const long number = optarg ? strtol(optarg, NULL, 10) : 0;
    switch (option) {
      case 'a': server.address = optarg; break;
      case 'p': server.port = (int)number; break;
      case 'w': server.n_workers = (int)number; break;
      case 't': server.threads = (int)number; break;
      case 's': server.timeout_ms = (int)number * 1000; break;
      case 'l': server.libraries = optarg; break;
      case 'm': server.maps = true; break;
      default: return 2;
    }
  }
  server.file = argv[optind];
  return optind + 1 != argc || server.port < 0 || server.port > 65535 || server.n_workers < 1 ||
         server.n_workers > 256 || server.threads < 1 || server.timeout_ms < 1000 ||
         server.timeout_ms > 1000000;
}

int main(int argc, char **argv) {
  if (read_options(argc, argv))
    return fprintf(stderr,
                   "usage: serve_graph [options] FILE\n"
                   "  -a ADDRESS    127.0.0.1; 0.0.0.0 for all of the machine\n"
                   "  -p PORT       8000; 0 for any free one\n"
                   "  -w WORKERS    graphs that compute at once, 2\n"
                   "  -t THREADS    of the kernels, 1\n"
                   "  -s SECONDS    the longest time of a request, 10\n"
                   "  -m            weights stay in the file, shared by the workers\n"
                   "  -l LIBRARIES  folders of plait's libraries, separated by colons\n"),
           2;
  if (pipe(server.wake) || fcntl(server.wake[0], F_SETFL, O_NONBLOCK) < 0 ||
      fcntl(server.wake[1], F_SETFL, O_NONBLOCK) < 0)
    return fail("start", strerror(errno));
  struct sigaction action = {.sa_handler = stop};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  return serve_graph();
}
