/* How far two cores are from each other: nanoseconds until one sees what the other wrote, at best within a time. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

static _Alignas(128) _Atomic long word;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void stay_on(int core)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    sched_setaffinity(0, sizeof cores, &cores);
}

static void *answer(void *core)
{
    stay_on(*(int *)core);
    for (long seen; (seen = atomic_load(&word)) >= 0;)
        if (seen % 2) atomic_store(&word, seen + 1);
    return NULL;
}

double distance(int first, int second, double nanoseconds)
{
    enum { TIMES = 50 };
    pthread_t other;
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    stay_on(first);
    atomic_store(&word, 0);
    pthread_create(&other, NULL, answer, &second);
    double best = 1e9;
    for (double start = now(), time = start; time < start + nanoseconds;) {
        for (int i = 0; i < TIMES; i++) {
            const long question = atomic_load(&word) + 1;
            atomic_store(&word, question);
            while (atomic_load(&word) == question) continue;
        }
        const double end = now();
        if ((end - time) / (2 * TIMES) < best) best = (end - time) / (2 * TIMES);
        time = end;
    }
    atomic_store(&word, -2);
    pthread_join(other, NULL);
    sched_setaffinity(0, sizeof before, &before);
    return best;
}
