/* Jobs of run.c that end early, several callers with few helpers between them.
 *
 * A call may write where the next one has its scratch, so that no two calls of a job may run at once, whoever stops it.
 * A caller that waits for its helper must be woken, whoever else waits for the same one: ends.c prints "hang" if not.
 */
#include "irx.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#ifndef HELPERS
#define HELPERS 3
#endif
enum { CALLS = 20, BLOCKS = 4, CALLERS = 3, LINE = 64 };

i64 irx_call_size(void);
void irx_stop(void *calls, i64 count);
i64 irx_run(void *calls, i64 count, i64 thread, i64 *position, i64 nanoseconds);
void irx_clear_seats(void);
void irx_serve(i64 index, i64 stays);
void irx_hire(void *calls, i64 count, i64 wanted, i64 served, i64 *hired);
void irx_dismiss(i64 *hired);

typedef struct {
    char *calls;
    _Atomic i64 running; /* the call, times BLOCKS, and its blocks that are running */
    _Atomic i64 ended;
} job;

typedef struct {
    job *job;
    i64 call;
} step;

static _Atomic i64 overlaps;
static pthread_barrier_t together;

static void wait_for(i64 nanoseconds)
{
    struct timespec start, t;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do clock_gettime(CLOCK_MONOTONIC, &t);
    while ((t.tv_sec - start.tv_sec) * 1000000000 + t.tv_nsec - start.tv_nsec < nanoseconds);
}

static void block(const void *parameters, i64 index, char *scratch)
{
    const step *s = parameters;
    i64 running = atomic_load(&s->job->running), mine;
    (void)scratch;
    do {
        const i64 count = running % (BLOCKS + 1);
        if (count && running / (BLOCKS + 1) != s->call) atomic_fetch_add(&overlaps, 1);
        mine = s->call * (BLOCKS + 1) + count + 1;
    } while (!atomic_compare_exchange_weak(&s->job->running, &running, mine));
    if (index == 1) usleep(60);
    else wait_for(index * 500);
    atomic_fetch_sub(&s->job->running, 1);
}

static void *serve(void *index)
{
    for (;;) irx_serve((i64)(intptr_t)index, 1);
    return NULL;
}

static void *call(void *given)
{
    job *j = given;
    step *steps = calloc(CALLS, sizeof(step));
    const i64 size = irx_call_size();
    unsigned seed = (unsigned)(intptr_t)given;
    char scratch[LINE * (HELPERS + 1)];
    j->calls = aligned_alloc(LINE, (size_t)(size * CALLS));
    memset(j->calls, 0, (size_t)(size * CALLS));
    for (i64 i = 0; i < CALLS; i++) {
        steps[i] = (step){j, i};
        i64 *words = (i64 *)(j->calls + i * size);
        words[0] = (i64)(intptr_t)block;
        words[1] = (i64)(intptr_t)&steps[i];
        words[2] = BLOCKS;
        words[3] = (i64)(intptr_t)scratch;
        words[4] = LINE;
    }
    for (;;) {
        i64 hired[1 + 2 * HELPERS] = {0}, position = 0;
        /* Nobody begins another job, which would wake who was forgotten. */
        pthread_barrier_wait(&together);
        wait_for(rand_r(&seed) % 200000);
        irx_hire(j->calls, CALLS, HELPERS, HELPERS, hired);
        if (rand_r(&seed) % 4) {
            if (rand_r(&seed) % 2) wait_for(rand_r(&seed) % 100000);
            irx_stop(j->calls, CALLS);
        } else {
            irx_run(j->calls, CALLS, 0, &position, -1);
        }
        irx_dismiss(hired);
        atomic_fetch_add(&j->ended, 1);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    static job jobs[CALLERS];
    pthread_t thread;
    irx_clear_seats();
    pthread_barrier_init(&together, NULL, CALLERS);
    for (i64 i = 0; i < HELPERS; i++) pthread_create(&thread, NULL, serve, (void *)(intptr_t)i);
    for (int i = 0; i < CALLERS; i++) pthread_create(&thread, NULL, call, &jobs[i]);
    i64 before[CALLERS] = {0}, idle[CALLERS] = {0}, sum = 0;
    for (int tenth = 0; tenth < 10 * (count > 1 ? atoi(arguments[1]) : 5); tenth++) {
        usleep(100000);
        for (int i = 0; i < CALLERS; i++) {
            const i64 ended = atomic_load(&jobs[i].ended);
            idle[i] = ended == before[i] ? idle[i] + 1 : 0;
            before[i] = ended;
            if (idle[i] > 50) {
                printf("hang of caller %d after %ld jobs\n", i, (long)ended);
                return 1;
            }
        }
    }
    for (int i = 0; i < CALLERS; i++) sum += before[i];
    printf("%ld jobs, %ld overlaps\n", (long)sum, (long)atomic_load(&overlaps));
    return atomic_load(&overlaps) != 0;
}
