/* Runs the calls of a job, on one thread or on several that meet between the calls.
 *
 * Every thread that takes part does the same: call by call it claims blocks, those of its own share first, until none
 * is left, then waits until the blocks that others claimed are done. A thread that comes late finds fewer blocks, and
 * one that never comes is never waited for. Waiting is a bounded spin and then a sleep, so that a core that somebody
 * else needs is given up. The thread that has to look at limits of time and at interruptions leaves the job now and
 * then, and continues it. Helpers wait in the library for jobs, so that a job begins and ends without the
 * interpreter's lock.
 */
#define _GNU_SOURCE
#include "irx.h"
#include <stdatomic.h>
#include <time.h>
#if defined(_WIN32)
#include <windows.h>
#elif defined(__linux__)
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <sched.h>
#endif

#define LINE 64

/* Blocks of a call that one thread begins with, in order. A line of its own, since threads write `next`. */
typedef struct {
    _Atomic i64 next;
    i64 end;
    char pad[LINE - 16];
} share;

/* Threads beyond this number begin with the share of another thread. */
enum { SHARES = 8 };

/* One call of a kernel. What all threads write lies on a cache line of its own. */
typedef struct {
    kernel *run;
    const void *parameters;
    i64 blocks;
    char *scratch;
    i64 scratch_each; /* bytes from the scratch of one thread to that of the next */
    i64 shares;       /* that are in use, in this run */
    char pad[LINE - 48];
    _Atomic i64 done;
    _Atomic unsigned word; /* is 1 once all blocks are done: threads sleep on it */
    _Atomic int waiting;
    char pad2[LINE - 16];
    share share[SHARES];
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

/* Sleeps while the word has this value; elsewhere than on Linux for a moment. */
static void sleep_on(_Atomic unsigned *word, unsigned value)
{
#if defined(__linux__)
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
#elif defined(_WIN32)
    (void)word, (void)value;
    Sleep(0);
#else
    (void)word, (void)value;
    struct timespec time = {0, 30000};
    nanosleep(&time, NULL);
#endif
}

static void wake_all(_Atomic unsigned *word)
{
#if defined(__linux__)
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
#else
    (void)word;
#endif
}

/* Whether the word changes from a value within a short spin. */
static int changes_soon(_Atomic unsigned *word, unsigned value)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != value) return 1;
        relax();
    }
    return 0;
}

static void finish(call *c)
{
    atomic_store(&c->word, 1);
    if (atomic_load(&c->waiting)) wake_all(&c->word);
}

/* Word alone is looked at: it is set by the thread that computes the last block, and by a stop. */
static void wait(call *c)
{
    if (changes_soon(&c->word, 0)) return;
    atomic_fetch_add(&c->waiting, 1);
    while (!atomic_load(&c->word)) sleep_on(&c->word, 0);
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

/* Makes the calls ready for irx_run on this number of threads. No thread may be in irx_run with them. */
EXPORT void irx_reset(call *calls, i64 count, i64 threads)
{
    const i64 shares = threads < SHARES ? threads : SHARES;
    for (call *c = calls; c < calls + count; c++) {
        c->shares = shares;
        for (i64 i = 0; i < shares; i++) {
            c->share[i].end = (c->blocks * (i + 1) + shares - 1) / shares;
            atomic_store_explicit(&c->share[i].next, (c->blocks * i + shares - 1) / shares, memory_order_relaxed);
        }
        atomic_store_explicit(&c->waiting, 0, memory_order_relaxed);
        atomic_store_explicit(&c->word, 0, memory_order_relaxed);
        atomic_store_explicit(&c->done, 0, memory_order_release);
    }
}

/* Ends a job early: threads in irx_run begin no further block, and return.
 *
 * No thread is woken before all calls have ended: it would begin the next call while blocks of this one are running,
 * whose results may lie where the next one has its scratch.
 */
EXPORT void irx_stop(call *calls, i64 count)
{
    for (call *c = calls; c < calls + count; c++)
        for (share *s = c->share; s < c->share + c->shares; s++) atomic_store(&s->next, s->end);
    for (call *c = calls; c < calls + count; c++) finish(c);
}

/* Claims a block, of this share or, once it has none left, of the shares after it; -1 if no block is left.
 *
 * Consecutive calls have their blocks in the same order of the data, mostly. A thread that begins with its own share
 * finds in its cache what it wrote in the call before, and the weights of its last run.
 */
INLINE i64 claimed(call *c, i64 *from)
{
    for (i64 i = 0; i < c->shares; i++, *from = (*from + 1) % c->shares) {
        share *s = c->share + *from;
        if (atomic_load_explicit(&s->next, memory_order_relaxed) >= s->end) continue;
        i64 block = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
        if (block < s->end) return block;
    }
    return -1;
}

/* Takes part in a job as the thread of this number, from call *position on; position is 0 at first.
 *
 * Returns 1 once all blocks of all calls are done, or the job was stopped. Returns 0 after the nanoseconds, between two
 * blocks, and is called again with the position that it wrote. A negative number is for helpers, which stay
 * until the end, and do not wait for the last blocks of others.
 */
EXPORT i64 irx_run(call *calls, i64 count, i64 thread, i64 *position, i64 nanoseconds)
{
    part current = part_of(nanoseconds);
    for (call *c = calls + *position; c < calls + count; c++) {
        char *scratch = c->scratch + thread * c->scratch_each;
        i64 own = 0, block, from = thread % c->shares;
        int over = 0;
        while (!over && (block = claimed(c, &from)) >= 0) {
            c->run(c->parameters, block, scratch);
            own++;
            over = is_over(&current);
        }
        if (own && atomic_fetch_add_explicit(&c->done, own, memory_order_acq_rel) + own == c->blocks) finish(c);
        else if (!over && (c + 1 < calls + count || current.end != NEVER)) wait(c);
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

/* The place of one helper. The two lowest bits of its state are one of the names below, the others count its jobs. */
typedef struct {
    _Atomic unsigned state;
    _Atomic int asleep, awaiting; /* whether the helper sleeps on the state, and how many callers do */
    int helper, avoided; /* the helper's number in the system, and the core that it keeps off */
    call *calls;
    i64 count, thread;
    char pad[2 * LINE - 48];
} seat;

/* CHOSEN while a job is written down, GIVEN until the helper sees it. */
enum { IDLE, CHOSEN, GIVEN, WORKING, NAMES };
enum { SEATS = 64 };

static _Alignas(2 * LINE) seat seats[SEATS];

EXPORT i64 irx_seats(void) { return SEATS; }

/* Makes all seats those of helpers that are still to come, as in the child after a fork. */
EXPORT void irx_clear_seats(void)
{
    for (seat *s = seats; s < seats + SEATS; s++) {
        atomic_store(&s->state, IDLE);
        atomic_store(&s->asleep, 0);
        atomic_store(&s->awaiting, 0);
        s->avoided = -1;
    }
}

/* Helps with the jobs that are given to a seat. Between them the helper spins shortly, then sleeps: here if it `stays` and
 * the system can wake it, else it returns, and comes again when it is called.
 */
EXPORT void irx_serve(i64 index, i64 stays)
{
    seat *s = seats + index;
#if defined(__linux__)
    s->helper = (int)syscall(SYS_gettid);
#else
    stays = 0;
#endif
    for (;;) {
        unsigned state = atomic_load(&s->state);
        if (state % NAMES == GIVEN && atomic_compare_exchange_strong(&s->state, &state, state - GIVEN + WORKING)) {
            i64 position = 0;
            irx_run(s->calls, s->count, s->thread, &position, NEVER);
            atomic_store(&s->state, state - GIVEN + IDLE);
            if (atomic_load(&s->awaiting)) wake_all(&s->state);
        } else if (!changes_soon(&s->state, state)) {
            if (!stays) return;
            atomic_store(&s->asleep, 1);
            sleep_on(&s->state, state);
            atomic_store(&s->asleep, 0);
        }
    }
}

/* Keeps a helper off the core of the calling thread, if there are others for all helpers: woken there, it would wait until
 * the caller has finished.
 */
static void keep_apart(seat *s, i64 helpers)
{
#if defined(__linux__)
    cpu_set_t cores;
    const int own = sched_getcpu();
    if (own < 0 || own == s->avoided || sched_getaffinity(0, sizeof cores, &cores)) return;
    CPU_CLR(own, &cores);
    if (CPU_COUNT(&cores) < helpers) return;
    sched_setaffinity(s->helper, sizeof cores, &cores);
    s->avoided = own;
#else
    (void)s, (void)helpers;
#endif
}

/* Makes a job ready, and gives it to up to `wanted` idle helpers of the first `served` seats, as its threads 1, 2, ...
 * Writes how many they are, then the seat and the state of each.
 */
EXPORT void irx_hire(call *calls, i64 count, i64 wanted, i64 served, i64 *hired)
{
    irx_reset(calls, count, wanted + 1);
    for (seat *s = seats; s < seats + served && *hired < wanted; s++) {
        unsigned state = atomic_load(&s->state);
        if (state % NAMES != IDLE) continue;
        const unsigned given = state + NAMES + GIVEN;
        if (!atomic_compare_exchange_strong(&s->state, &state, state + NAMES + CHOSEN)) continue;
        hired[2 * *hired + 1] = s - seats;
        hired[2 * *hired + 2] = given;
        s->calls = calls;
        s->count = count;
        s->thread = ++*hired;
        atomic_store(&s->state, given);
        if (atomic_load(&s->asleep)) {
            keep_apart(s, wanted);
            wake_all(&s->state);
        }
    }
}

/* Returns once no helper is at work on the job that it was hired for; one that did not come is not waited for. */
EXPORT void irx_dismiss(i64 *hired)
{
    for (i64 i = 0; i < *hired; i++) {
        seat *s = seats + hired[2 * i + 1];
        unsigned given = (unsigned)hired[2 * i + 2];
        const unsigned working = given - GIVEN + WORKING;
        if (atomic_compare_exchange_strong(&s->state, &given, given - GIVEN + IDLE)) continue;
        if (given != working || changes_soon(&s->state, working)) continue;
        /* Others may wait for the same helper: one that has waited for an earlier job, and has not run since. */
        atomic_fetch_add(&s->awaiting, 1);
        while (atomic_load(&s->state) == working) sleep_on(&s->state, working);
        atomic_fetch_sub(&s->awaiting, 1);
    }
    *hired = 0;
}

EXPORT i64 irx_vector(void) { return VECTOR; }

/* A hash of the sources that the library was built from; irexec/native/sources.py computes it. */
EXPORT i64 irx_sources(void) { return SOURCES_HASH; }
