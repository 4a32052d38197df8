/* Runs the calls of a job, on one thread or on several that meet between the calls.
 *
 * Every thread that takes part does the same: call by call it claims blocks until none is left, then waits until the
 * blocks that others claimed are done. A thread that comes late finds fewer blocks, and one that never comes is never
 * waited for. Waiting is a bounded spin and then a sleep, so that a core that somebody else needs is given up. The
 * thread that has to look at limits of time and at interruptions leaves the job now and then, and goes on with it.
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

/* Word alone is looked at: it is set by the thread that computes the last block, and by a stop. */
static void wait(call *c)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&c->word, memory_order_acquire)) return;
        relax();
    }
    sleep_until_done(c);
}

/* Nanoseconds of a clock that only goes forward. */
static i64 now(void)
{
#if defined(_WIN32)
    LARGE_INTEGER count, rate;
    QueryPerformanceCounter(&count);
    QueryPerformanceFrequency(&rate);
    return (i64)((double)count.QuadPart * (1e9 / (double)rate.QuadPart));
#else
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (i64)time.tv_sec * 1000000000 + time.tv_nsec;
#endif
}

/* The part of a run until the caller wants to look at its own limits. */
typedef struct {
    i64 end; /* on the clock; NEVER for a part without an end */
    i64 blocks;
} part;

enum { NEVER = -1, BLOCKS_BETWEEN_LOOKS = 8 };

static part part_of(i64 nanoseconds) { return (part){nanoseconds < 0 ? NEVER : now() + nanoseconds, 0}; }

/* Whether the part ends after the block that was computed. */
INLINE int is_over(part *p)
{
    return p->end != NEVER && ++p->blocks % BLOCKS_BETWEEN_LOOKS == 0 && now() >= p->end;
}

/* Bytes of a call, for the allocation of an array of them. */
EXPORT i64 irx_call_size(void) { return sizeof(call); }

/* Makes the calls ready for irx_run. No thread may be in irx_run with them. */
EXPORT void irx_reset(call *calls, i64 count)
{
    for (i64 i = 0; i < count; i++) {
        atomic_store_explicit(&calls[i].next, 0, memory_order_relaxed);
        atomic_store_explicit(&calls[i].waiting, 0, memory_order_relaxed);
        atomic_store_explicit(&calls[i].word, 0, memory_order_relaxed);
        atomic_store_explicit(&calls[i].done, 0, memory_order_release);
    }
}

/* Ends a job early: threads in irx_run begin no further block, and return. */
EXPORT void irx_stop(call *calls, i64 count)
{
    for (call *c = calls; c < calls + count; c++) {
        atomic_store(&c->next, c->blocks);
        wake(c);
    }
}

/* Takes part in a job as the thread of this number, from call *position on; position is 0 at first.
 *
 * Returns 1 once all blocks of all calls are done, or the job was stopped. Returns 0 after the nanoseconds, between two
 * blocks, and is called again with the position that it wrote; a negative number is for no such end.
 */
EXPORT i64 irx_run(call *calls, i64 count, i64 thread, i64 *position, i64 nanoseconds)
{
    part current = part_of(nanoseconds);
    for (call *c = calls + *position; c < calls + count; c++) {
        char *scratch = c->scratch + thread * c->scratch_each;
        i64 own = 0;
        int over = 0;
        while (!over) {
            i64 block = atomic_fetch_add_explicit(&c->next, 1, memory_order_relaxed);
            if (block >= c->blocks) break;
            c->run(c->parameters, block, scratch);
            own++;
            over = is_over(&current);
        }
        if (own && atomic_fetch_add_explicit(&c->done, own, memory_order_acq_rel) + own == c->blocks) wake(c);
        else if (!over) wait(c);
        if (over) {
            *position = c - calls;
            return 0;
        }
    }
    return 1;
}

/* Runs calls on the calling thread alone, without atomic operations, from position[0] and its block position[1] on.
 *
 * Returns 1 once all is done, 0 after the nanoseconds, as irx_run.
 */
EXPORT i64 irx_run_alone(call *calls, i64 count, i64 *position, i64 nanoseconds)
{
    part current = part_of(nanoseconds);
    i64 block = position[1];
    for (call *c = calls + *position; c < calls + count; c++) {
        while (block < c->blocks) {
            c->run(c->parameters, block++, c->scratch);
            if (is_over(&current)) {
                position[0] = c - calls;
                position[1] = block;
                return 0;
            }
        }
        block = 0;
    }
    return 1;
}

EXPORT i64 irx_vector(void) { return VECTOR; }

/* A hash of the sources that the library was built from; irexec/native/sources.py computes it. */
EXPORT i64 irx_sources(void) { return SOURCES_HASH; }
