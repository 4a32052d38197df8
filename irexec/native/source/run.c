/* Runs the calls of a job, on one thread or on several that meet between the calls.
 *
 * Every thread that takes part does the same: call by call it claims blocks until none is left, then waits until the
 * blocks that others claimed are done. A thread that comes late finds fewer blocks, and one that never comes is never
 * waited for. Waiting is a bounded spin and then a sleep, so that a core that somebody else needs is given up.
 */
#include "irx.h"
#include <stdatomic.h>
#include <time.h>
#if defined(_WIN32)
#include <windows.h>
#elif defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <sched.h>
#endif

#define LINE 64

/* One call of a kernel. `next` and `done` lie on cache lines of their own, since all threads write them. */
typedef struct {
    kernel *run;
    const void *parameters;
    i64 blocks;
    char *scratch;
    i64 scratch_each; /* bytes from the scratch of one thread to that of the next */
    char pad[LINE - 40];
    _Atomic i64 next;
    _Atomic int waiting;
    char pad2[LINE - 12];
    _Atomic i64 done;
    _Atomic int word; /* is 1 once all blocks are done: threads sleep on it */
    char pad3[LINE - 12];
} call;

enum { SPINS = 2000 };

INLINE void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void sleep_until_done(call *c)
{
#if defined(__linux__)
    atomic_fetch_add(&c->waiting, 1);
    while (!atomic_load(&c->word)) syscall(SYS_futex, &c->word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
#elif defined(_WIN32)
    while (!atomic_load(&c->word)) Sleep(0);
#else
    while (!atomic_load(&c->word)) {
        struct timespec time = {0, 30000};
        nanosleep(&time, NULL);
    }
#endif
}

static void wake(call *c)
{
    atomic_store(&c->word, 1);
#if defined(__linux__)
    if (atomic_load(&c->waiting)) syscall(SYS_futex, &c->word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
#endif
}

static void wait(call *c)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&c->done, memory_order_acquire) >= c->blocks) return;
        relax();
    }
    sleep_until_done(c);
}

/* Bytes of a call, for the allocation of an array of them. */
EXPORT i64 irx_call_size(void) { return sizeof(call); }

/* Makes the calls ready for a run. No thread may be in irx_run with them. */
EXPORT void irx_reset(call *calls, i64 count)
{
    for (i64 i = 0; i < count; i++) {
        atomic_store_explicit(&calls[i].next, 0, memory_order_relaxed);
        atomic_store_explicit(&calls[i].waiting, 0, memory_order_relaxed);
        atomic_store_explicit(&calls[i].word, 0, memory_order_relaxed);
        atomic_store_explicit(&calls[i].done, 0, memory_order_release);
    }
}

/* Takes part in a job as the thread of this number. Returns once all blocks of all calls are done. */
EXPORT void irx_run(call *calls, i64 count, i64 thread)
{
    for (call *c = calls; c < calls + count; c++) {
        char *scratch = c->scratch + thread * c->scratch_each;
        i64 own = 0;
        for (;;) {
            i64 block = atomic_fetch_add_explicit(&c->next, 1, memory_order_relaxed);
            if (block >= c->blocks) break;
            c->run(c->parameters, block, scratch);
            own++;
        }
        if (own && atomic_fetch_add_explicit(&c->done, own, memory_order_acq_rel) + own == c->blocks) wake(c);
        else wait(c);
    }
}

/* Runs calls on the calling thread alone, without atomic operations. */
EXPORT void irx_run_alone(call *calls, i64 count)
{
    for (call *c = calls; c < calls + count; c++)
        for (i64 block = 0; block < c->blocks; block++) c->run(c->parameters, block, c->scratch);
}

/* Seconds are measured for each call; for profiles. */
EXPORT void irx_run_timed(call *calls, i64 count, double *seconds)
{
    for (i64 i = 0; i < count; i++) {
        struct timespec start, end;
        timespec_get(&start, TIME_UTC);
        irx_run_alone(calls + i, 1);
        timespec_get(&end, TIME_UTC);
        seconds[i] = (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
    }
}

EXPORT i64 irx_vector(void) { return VECTOR; }
