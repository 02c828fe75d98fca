/* A library with a thread, whose destructor waits for it, as those of Ray and gRPC do. In the child
 * of a fork there is no such thread, and the destructor waits for ever. */
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static enum state { RUN, STOP, ENDED } state;

static void set(enum state new) {
  pthread_mutex_lock(&lock);
  state = new;
  pthread_cond_broadcast(&change);
  pthread_mutex_unlock(&lock);
}

static void wait_for(enum state required) {
  pthread_mutex_lock(&lock);
  while (state != required) pthread_cond_wait(&change, &lock);
  pthread_mutex_unlock(&lock);
}

static void *serve(void *unused) {
  wait_for(STOP);
  set(ENDED);
  return unused;
}

__attribute__((constructor)) static void start(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, serve, NULL)) abort();
}

__attribute__((destructor)) static void end(void) {
  set(STOP);
  wait_for(ENDED);
}
