/* Tiles of AMX, in assembly: compilers have no type for them, and some no intrinsics. */
#include "amx.h"

#ifdef TILES
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

int irx_has_tiles(void)
{
    enum { ASK = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM, for all threads of the process */
    unsigned a = 0, b = 0, c = 0, d = 0, low = 0, high = 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d >> 24 & 3) != 3) return 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low >> 17 & 3) == 3 && syscall(SYS_arch_prctl, ASK, TILE_DATA) == 0;
}

void irx_shape_tiles(i64 bytes)
{
    struct {
        uint8_t palette, from, zeros[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } shape = {1, 0, {0}, {64, 64, 64, 64, (uint16_t)bytes, (uint16_t)bytes, 64, 64}, {16, 16, 16, 16, 16, 16}};
    shape.rows[6] = shape.rows[7] = (uint8_t)(bytes / 4);
    if (bytes) __asm__ volatile("ldtilecfg %0" : : "m"(shape));
    else __asm__ volatile("tilerelease");
}

#define READ(TILE, FROM, STEP)                                                                                        \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #TILE : : "r"(FROM), "r"((i64)(STEP)) : "memory")
#define WRITE(TILE, TO, STEP)                                                                                         \
    __asm__ volatile("tilestored %%tmm" #TILE ", (%0,%1,1)" : : "r"(TO), "r"((i64)(STEP)) : "memory")
#define DOT(SUM, A, B) __asm__ volatile("tdpbusd %%tmm" #B ", %%tmm" #A ", %%tmm" #SUM : :)

/* T tiles of rows by V vectors. */
#define MULTIPLY(T, V)                                                                                                \
    static void multiply_##T##_##V(const tile_product *p, int32_t *to)                                                \
    {                                                                                                                 \
        const i64 taps = p->taps, depth = p->depth, bytes = p->bytes, lines = p->lines;                               \
        const char *b = p->b, *later = p->later;                                                                      \
        READ(0, p->start, 0);                                                                                         \
        if (V == 2) READ(1, p->start + 16, 0);                                                                        \
        if (T == 2) READ(2, p->start, 0);                                                                             \
        if (T == 2 && V == 2) READ(3, p->start + 16, 0);                                                              \
        for (i64 tap = 0; tap < taps; tap++) {                                                                        \
            const tile_rows x = p->rows[tap], y = p->rows[(T - 1) * taps + tap];                                      \
            for (i64 k = 0; k < depth; k += bytes, b += bytes * V * 16) {                                             \
                const i64 at = smaller(k, depth - bytes);                                                             \
                for (i64 i = 0; i < lines; i++, later += 64) __builtin_prefetch(later, 0, 2);                         \
                READ(4, x.from + at, x.step);                                                                         \
                READ(6, b, V * 64);                                                                                   \
                DOT(0, 4, 6);                                                                                         \
                if (V == 2) READ(7, b + 64, V * 64);                                                                  \
                if (V == 2) DOT(1, 4, 7);                                                                             \
                if (T == 2) READ(5, y.from + at, y.step);                                                             \
                if (T == 2) DOT(2, 5, 6);                                                                             \
                if (T == 2 && V == 2) DOT(3, 5, 7);                                                                   \
            }                                                                                                         \
        }                                                                                                             \
        WRITE(0, to, V * 64);                                                                                         \
        if (V == 2) WRITE(1, to + 16, V * 64);                                                                        \
        if (T == 2) WRITE(2, to + 256 * V, V * 64);                                                                   \
        if (T == 2 && V == 2) WRITE(3, to + 256 * V + 16, V * 64);                                                    \
    }
MULTIPLY(1, 1)
MULTIPLY(1, 2)
MULTIPLY(2, 1)
MULTIPLY(2, 2)

void irx_multiply_tiles(const tile_product *p, int32_t *to)
{
    if (p->tiles == 2 && p->vectors == 2) multiply_2_2(p, to);
    else if (p->tiles == 2) multiply_2_1(p, to);
    else if (p->vectors == 2) multiply_1_2(p, to);
    else multiply_1_1(p, to);
}

/* Whether 16 pointers are evenly spaced. */
INLINE int is_even(const char *const *from)
{
    const __m512i step = _mm512_set1_epi64(from[1] - from[0]);
    const __m512i low = _mm512_sub_epi64(_mm512_loadu_si512(from + 1), _mm512_loadu_si512(from));
    const __m512i high = _mm512_sub_epi64(_mm512_loadu_si512(from + 8), _mm512_loadu_si512(from + 7));
    return (_mm512_cmpneq_epi64_mask(low, step) | _mm512_cmpneq_epi64_mask(high, step)) == 0;
}

void irx_find_tiles(const char *const *table, i64 pitch, i64 taps, i64 depth, i64 count, tile_rows *found, char *room)
{
    const i64 step = (depth + 63) / 64 * 64;
    const __mmask64 rest = ~(__mmask64)0 >> (step - depth);
    for (i64 tile = 0; tile * TILE_ROWS < count; tile++)
        for (i64 tap = 0; tap < taps; tap++, found++) {
            const char *const *from = table + tap * pitch + first_row(tile, count);
            *found = (tile_rows){from[0], from[1] - from[0]};
            if (count >= TILE_ROWS && is_even(from)) continue;
            *found = (tile_rows){room, step};
            for (i64 r = 0; r < TILE_ROWS; r++, room += step) {
                const char *row = from[smaller(r, count - 1)];
                for (i64 k = 0; k < step; k += 64)
                    _mm512_storeu_si512(room + k, _mm512_maskz_loadu_epi8(k + 64 < step ? ~(__mmask64)0 : rest, row + k));
            }
        }
}
#else
int irx_has_tiles(void) { return 0; }
#endif
