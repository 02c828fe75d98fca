/* Sends POST /predict with bytes again and again over several connections at once, and prints the
 * requests per second and the latencies. Usage: load_test PORT CONNECTIONS SECONDS BYTES */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef struct client {
  pthread_t thread;
  uint32_t *latencies; /* in microseconds */
  size_t n, room;
  bool failed;
} client;

static int port, bytes;
static double seconds;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Send a request and read its response; false if it is not one of status 200. */
static bool ask(int fd, const char *request, size_t n) {
  char answer[65536];
  size_t got = 0, length = 0;
  if (send(fd, request, n, MSG_NOSIGNAL) != (ssize_t)n) return false;
  const char *end = NULL;
  while (!end) {
    const ssize_t k = recv(fd, answer + got, sizeof answer - 1 - got, 0);
    if (k <= 0) return false;
    got += (size_t)k;
    answer[got] = 0;
    end = strstr(answer, "\r\n\r\n");
  }
  const char *field = strstr(answer, "Content-Length: ");
  if (strncmp(answer, "HTTP/1.1 200", 12) || !field) return false;
  length = strtoul(field + 16, NULL, 10);
  size_t left = length - (got - (size_t)(end + 4 - answer));
  while (left) {
    const ssize_t k = recv(fd, answer, left < sizeof answer ? left : sizeof answer, 0);
    if (k <= 0) return false;
    left -= (size_t)k;
  }
  return true;
}

static void *run(void *argument) {
  client *c = argument;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  char *request = calloc(1, (size_t)bytes + 256);
  c->failed = fd < 0 || !request || connect(fd, (struct sockaddr *)&address, sizeof address);
  if (!c->failed) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    const int head =
        snprintf(request, 256,
                 "POST /predict HTTP/1.1\r\nHost: localhost\r\n"
                 "Content-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n",
                 bytes);
    memset(request + head, 0, (size_t)bytes);
    const double end = now() + seconds;
    for (double begin = now(); !c->failed && begin < end && c->n < c->room;) {
      c->failed = !ask(fd, request, (size_t)head + (size_t)bytes);
      const double finish = now();
      c->latencies[c->n++] = (uint32_t)((finish - begin) * 1e6);
      begin = finish;
    }
  }
  if (fd >= 0) close(fd);
  free(request);
  return NULL;
}

static int compare(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  const int n = argc == 5 ? atoi(argv[2]) : 0;
  if (n < 1 || n > 1000)
    return fprintf(stderr, "usage: load_test PORT CONNECTIONS SECONDS BYTES\n"), 2;
  port = atoi(argv[1]);
  seconds = atof(argv[3]);
  bytes = atoi(argv[4]);
  client *clients = calloc((size_t)n, sizeof *clients);
  const size_t room = (size_t)(seconds * 200000) + 1;
  uint32_t *all = malloc((size_t)n * room * sizeof *all);
  if (!clients || !all) return fprintf(stderr, "load_test: no memory\n"), 1;
  const double begin = now();
  for (int i = 0; i < n; i++) {
    clients[i].room = room;
    clients[i].latencies = all + (size_t)i * room;
    if (pthread_create(&clients[i].thread, NULL, run, &clients[i]))
      return fprintf(stderr, "load_test: no thread\n"), 1;
  }
  size_t total = 0;
  int failures = 0;
  for (int i = 0; i < n; i++) {
    pthread_join(clients[i].thread, NULL);
    memmove(all + total, clients[i].latencies, clients[i].n * sizeof *all);
    total += clients[i].n;
    failures += clients[i].failed;
  }
  const double elapsed = now() - begin;
  qsort(all, total, sizeof *all, compare);
  if (total)
    printf(
        "%.0f requests/s, %zu in all; latency in ms: median %.3f, 95 %% %.3f, 99 %% %.3f, "
        "longest %.3f\n",
        (double)total / elapsed, total, all[total / 2] * 1e-3, all[total * 95 / 100] * 1e-3,
        all[total * 99 / 100] * 1e-3, all[total - 1] * 1e-3);
  if (failures) fprintf(stderr, "load_test: %d connections failed\n", failures);
  free(all);
  free(clients);
  return failures != 0;
}
