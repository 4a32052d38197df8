/* Threads on one job of run.c, for the thread sanitizer: each block adds to what the call before it wrote, so that a
 * barrier that lets a thread through too early is a race and a wrong sum. Threads come late, some jobs are stopped, and
 * the first thread leaves the job and returns to it, as the caller in Python does. In every second run the other threads
 * are helpers that serve all jobs.
 */
#include "irx.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CALLS = 40, BLOCKS = 64, THREADS = 6, JOBS = 3, RUNS = 60, LINE = 64, HELPERS = 4 };

i64 irx_call_size(void);
void irx_reset(void *calls, i64 count, i64 threads);
void irx_stop(void *calls, i64 count);
i64 irx_run(void *calls, i64 count, i64 thread, i64 *position, i64 nanoseconds);
i64 irx_run_alone(void *calls, i64 count, i64 *position, i64 nanoseconds);
void irx_clear_seats(void);
void irx_serve(i64 index, i64 stays);
void irx_hire(void *calls, i64 count, i64 wanted, i64 served, i64 *hired);
void irx_dismiss(i64 *hired);

typedef struct {
    const i64 *from;
    i64 *to;
} step;

typedef struct {
    char *calls;
    i64 *values;
    step steps[CALLS];
    int stops, late;
} job;

typedef struct {
    job *job;
    i64 thread;
} member;

/* The neighbours of the block, as the call before wrote them: other threads may have computed them. */
static void add(const void *parameters, i64 block, char *scratch)
{
    const step *s = parameters;
    scratch[0]++;
    s->to[block] = s->from[block] + s->from[(block + 1) % BLOCKS] % 3 + 1;
}

static void *take_part(void *given)
{
    member *m = given;
    i64 position = 0;
    if (m->job->late) usleep((useconds_t)(m->thread * 300));
    while (!irx_run(m->job->calls, CALLS, m->thread, &position, m->thread ? -1 : 0))
        if (m->job->stops && position > CALLS / 2) irx_stop(m->job->calls, CALLS);
    return NULL;
}

static void set_up(job *j)
{
    const i64 size = irx_call_size();
    j->values = calloc((CALLS + 1) * BLOCKS, sizeof(i64));
    j->calls = aligned_alloc(LINE, (size_t)(size * CALLS));
    memset(j->calls, 0, (size_t)(size * CALLS));
    char *scratch = malloc(THREADS * LINE);
    memset(scratch, 0, THREADS * LINE);
    for (i64 i = 0; i < CALLS; i++) {
        j->steps[i] = (step){j->values + i * BLOCKS, j->values + (i + 1) * BLOCKS};
        i64 *words = (i64 *)(j->calls + i * size);
        words[0] = (i64)(intptr_t)add;
        words[1] = (i64)(intptr_t)&j->steps[i];
        words[2] = BLOCKS;
        words[3] = (i64)(intptr_t)scratch;
        words[4] = LINE;
    }
}

static i64 sum(const job *j)
{
    i64 total = 0;
    for (i64 i = 0; i < BLOCKS; i++) total = total * 31 + j->values[CALLS * BLOCKS + i];
    return total;
}

static void *serve(void *index)
{
    for (;;) irx_serve((i64)(intptr_t)index, (i64)(intptr_t)index % 2);
    return NULL;
}

/* One run whose other threads are helpers. */
static void run_hired(job *j)
{
    i64 hired[1 + 2 * THREADS] = {0};
    member caller = {j, 0};
    irx_hire(j->calls, CALLS, HELPERS, HELPERS, hired);
    take_part(&caller);
    irx_dismiss(hired);
}

static void run_threads(job *j)
{
    pthread_t threads[THREADS];
    member members[THREADS];
    irx_reset(j->calls, CALLS, THREADS);
    for (i64 t = 0; t < THREADS; t++) {
        members[t] = (member){j, t};
        pthread_create(&threads[t], NULL, take_part, &members[t]);
    }
    for (i64 t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
}

static void *run_job(void *given)
{
    job *j = given;
    i64 position[2] = {0, 0};
    while (!irx_run_alone(j->calls, CALLS, position, 0)) continue;
    const i64 expected = sum(j);
    for (int run = 0; run < RUNS; run++) {
        j->stops = run % 5 == 4;
        j->late = run % 3 == 2;
        memset(j->values + BLOCKS, 0, CALLS * BLOCKS * sizeof(i64));
        if (run % 2) run_hired(j);
        else run_threads(j);
        if (!j->stops && sum(j) != expected) {
            printf("run %d: a wrong sum\n", run);
            exit(1);
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[JOBS];
    static job jobs[JOBS];
    irx_clear_seats();
    for (i64 i = 0; i < HELPERS; i++) {
        pthread_t helper;
        pthread_create(&helper, NULL, serve, (void *)(intptr_t)i);
    }
    for (int i = 0; i < JOBS; i++) {
        set_up(&jobs[i]);
        pthread_create(&threads[i], NULL, run_job, &jobs[i]);
    }
    for (int i = 0; i < JOBS; i++) pthread_join(threads[i], NULL);
    puts("all sums are right");
    return 0;
}
