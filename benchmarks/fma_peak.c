/* The rate of float32 multiply-adds: prints operations in a second on argv[1] threads.
 *
 * Each thread runs 12 independent chains of vector multiply-adds in registers: more than the
 * latency of two units needs, and few enough for 16 registers. The best of several runs counts.
 * WIDTH, the number of floats in a register, is given on the compiler's command line. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CHAINS = 12, LOOPS = 4000000, RUNS = 5 };

typedef float vector __attribute__((vector_size(WIDTH * sizeof(float))));

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *chains(void *result) {
  vector sum[CHAINS], factor, term;
  for (int i = 0; i < WIDTH; ++i) {
    factor[i] = 0.999f;
    term[i] = 0.001f;
    for (int j = 0; j < CHAINS; ++j) sum[j][i] = (float)j;
  }
  for (int loop = 0; loop < LOOPS; ++loop)
#pragma GCC unroll 12
    for (int j = 0; j < CHAINS; ++j) sum[j] = sum[j] * factor + term;
  for (int j = 1; j < CHAINS; ++j) sum[0] += sum[j];
  *(float *)result = sum[0][0];
  return NULL;
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 1;
  if (threads < 1 || threads > 1024) {
    fprintf(stderr, "usage: fma_peak THREADS\n");
    return 2;
  }
  pthread_t *handles = malloc(sizeof(pthread_t) * (size_t)threads);
  float *results = calloc((size_t)threads, sizeof(float));
  if (!handles || !results) return 1;
  double best = 0;
  for (int run = 0; run < RUNS; ++run) {
    double begin = seconds();
    for (int i = 0; i < threads; ++i)
      if (pthread_create(&handles[i], NULL, chains, &results[i])) return 1;
    for (int i = 0; i < threads; ++i) pthread_join(handles[i], NULL);
    double rate = 2.0 * WIDTH * CHAINS * (double)LOOPS * threads / (seconds() - begin);
    if (rate > best) best = rate;
  }
  printf("%.6g\n", best);
  /* the sums are used, so that the compiler keeps them */
  return results[0] != results[0];
}
