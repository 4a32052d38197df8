/* Depthwise convolution and maxima of levels, channels last: each channel has a kernel of its own.
 *
 * As for products, sums are exact: four taps of a column of the kernel are one instruction with VNNI, elsewhere two.
 */
#include "levels.h"
#include "windows.h"

typedef struct {
    windows window;
    const char *weights;  /* for each chunk of channels the words of its taps */
    const int32_t *start; /* for each channel, padded by a vector */
    ending end;
    i64 channels;
    i64 unit; /* taps of a word, of a column of the kernel: 4, or 2 */
    i64 rows, row_parts; /* pixels of an image, and the parts that a block is one of */
} integer_depthwise;

/* Pixels of pairs whose sums are in registers, pixels of a strip of many channels, and channels of a chunk. */
enum { PIXELS = 4, STRIP_PIXELS = 8, CHUNK = 64 };

/* Channels of a chunk without VNNI, and vectors of their sums. */
enum { PART = 16, VECTORS = PART / VECTOR };

/* Words of the bytes of two taps of a chunk: (a, b) in 16 bits each, channel after channel. */
INLINE void interleave(const char *a, const char *b, vi *words)
{
#if defined(__SSE2__)
    __m128i x, y;
    memcpy(&x, a, PART);
    memcpy(&y, b, PART);
    const __m128i low = _mm_unpacklo_epi8(x, y), high = _mm_unpackhi_epi8(x, y);
#if VECTOR == 16
    words[0] = (vi)_mm512_cvtepu8_epi16(_mm256_set_m128i(high, low));
#elif VECTOR == 8
    words[0] = (vi)_mm256_cvtepu8_epi16(low);
    words[1] = (vi)_mm256_cvtepu8_epi16(high);
#else
    const __m128i zero = _mm_setzero_si128();
    words[0] = (vi)_mm_unpacklo_epi8(low, zero);
    words[1] = (vi)_mm_unpackhi_epi8(low, zero);
    words[2] = (vi)_mm_unpacklo_epi8(high, zero);
    words[3] = (vi)_mm_unpackhi_epi8(high, zero);
#endif
#else
    for (int v = 0; v < VECTORS; v++) {
        vb x, y;
        memcpy(&x, a + v * VECTOR, VECTOR);
        memcpy(&y, b + v * VECTOR, VECTOR);
        words[v] = __builtin_convertvector(x, vi) | (__builtin_convertvector(y, vi) << 16);
    }
#endif
}

/* Positions of the data along the last axis that a strip of pixels reads, at most. */
enum { POSITIONS = 32 };

/* A strip: pixels of one row of the result, and where its windows begin in the data. */
typedef struct {
    const char *base; /* the image, from the first channel of a chunk on */
    i64 z, y, x, pixels;
} strip;

INLINE strip strip_at(const windows *w, const char *base, i64 row, i64 most)
{
    const i64 out_row = row / w->counts[2], x = row % w->counts[2];
    return (strip){base, out_row / w->counts[1] * w->strides[0] - w->pads[0],
                   out_row % w->counts[1] * w->strides[1] - w->pads[1], x * w->strides[2] - w->pads[2],
                   smaller(most, w->counts[2] - x)};
}

/* A row of the data that a row of the kernel reads for a strip; null in the padding. */
INLINE const char *row_at(const windows *w, const strip *s, i64 row)
{
    const i64 plane = w->kernel[0] == 1 ? 0 : row / w->kernel[1];
    const i64 z = s->z + plane * w->dilations[0], y = s->y + (row - plane * w->kernel[1]) * w->dilations[1];
    if (z < 0 || z >= w->sizes[0] || y < 0 || y >= w->sizes[1]) return 0;
    return s->base + z * w->data_strides[0] + y * w->data_strides[1];
}

/* Steps of `far` that reach a distance. A division takes as long as the words of two positions. */
INLINE i64 steps_to(i64 distance, i64 far) { return far == 1 ? distance : (distance + far - 1) / far; }

/* The positions of a strip, at every `far`-th one of the data, that are inside of it: begin <= j < end. */
typedef struct {
    i64 begin, end;
} inside;

INLINE inside inside_of(const windows *w, const strip *s, i64 far, i64 positions)
{
    const i64 begin = s->x < 0 ? smaller(positions, steps_to(-s->x, far)) : 0;
    return (inside){begin, larger(begin, smaller(positions, steps_to(w->sizes[2] - s->x, far)))};
}

/* The channels at a position of a row of the data, and bytes to the next position; zeros for a row in the padding. */
typedef struct {
    const char *channels;
    i64 step;
} walk;

INLINE walk walk_from(const windows *w, const char *row, i64 x, i64 far)
{
    return row ? (walk){row + x * w->data_strides[2], far * w->data_strides[2]} : (walk){(const char *)w->zeros, 0};
}

/* Words of two rows of the kernel for all positions of a strip. With few channels left, their bytes are copied first. */
INLINE void words_of_rows(const windows *w, const strip *s, i64 first, i64 far, i64 positions, i64 count, vi *words)
{
    char copies[2 * PART] = {0};
    const i64 rows = w->kernel[0] * w->kernel[1];
    const char *zeros = (const char *)w->zeros;
    const inside in = inside_of(w, s, far, positions);
    walk one = walk_from(w, row_at(w, s, first), s->x + in.begin * far, far);
    walk two = walk_from(w, row_at(w, s, smaller(first + 1, rows - 1)), s->x + in.begin * far, far);
    if (count < PART) zeros = memcpy(copies, zeros, (size_t)count);
    for (i64 j = 0; j < in.begin; j++) interleave(zeros, zeros, words + j * VECTORS);
    for (i64 j = in.end; j < positions; j++) interleave(zeros, zeros, words + j * VECTORS);
    for (i64 j = in.begin; j < in.end; j++, one.channels += one.step, two.channels += two.step) {
        if (count < PART) {
            memcpy(copies, one.channels, (size_t)count);
            memcpy(copies + PART, two.channels, (size_t)count);
            interleave(copies, copies + PART, words + j * VECTORS);
        } else {
            interleave(one.channels, two.channels, words + j * VECTORS);
        }
    }
}

/* Sums of a part of the channels of a strip, `pitch` for each pixel. Two rows of the kernel are a word: the words of each
 * position are made once for all pixels that read it.
 */
static void strip_of_pairs(const windows *w, const strip *s, i64 count, const char *weights, const int32_t *start,
                           int32_t *to, i64 pitch)
{
    vi words[POSITIONS * VECTORS];
    const i64 taps = w->kernel[2], rows = w->kernel[0] * w->kernel[1], pixels = s->pixels;
    const i64 far = pixels > 1 ? 1 : w->dilations[2], step = pixels > 1 ? w->dilations[2] : 1;
    const i64 positions = (pixels - 1) * w->strides[2] + (taps - 1) * step + 1;
    for (i64 first = 0; first < rows; first += 2, weights += taps * PART * 4) {
        words_of_rows(w, s, first, far, positions, count, words);
        for (i64 pixel = 0; pixel < pixels; pixel += PIXELS) {
            int32_t *const sums = to + pixel * pitch;
            vi sum[PIXELS * VECTORS];
            const vi *from[PIXELS];
            for (int k = 0; k < PIXELS; k++) from[k] = words + smaller(pixel + k, pixels - 1) * w->strides[2] * VECTORS;
            EACH_SUM(PIXELS, VECTORS)
            sum[i] = load_words((const char *)((first ? sums + i / VECTORS * pitch : start) + i % VECTORS * VECTOR));
            for (i64 tap = 0; tap < taps; tap++)
                EACH_SUM(PIXELS, VECTORS)
                sum[i] = pairs(sum[i], from[i / VECTORS][tap * step * VECTORS + i % VECTORS],
                               load_words(weights + (tap * VECTORS + i % VECTORS) * (i64)sizeof(vi)));
            EACH_SUM(PIXELS, VECTORS) memcpy(sums + i / VECTORS * pitch + i % VECTORS * VECTOR, &sum[i], sizeof(vi));
        }
    }
}

#if VECTOR == 16
/* The bytes of up to 64 channels. */
INLINE __m512i channels_of(const char *p, i64 count)
{
    return _mm512_maskz_loadu_epi8(count >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << count) - 1, p);
}

/* Words of four rows of 64 channels: four vectors, of which each has four channels of each 16. */
INLINE void words_of_64(const char *const *rows, i64 count, vi *words)
{
    const __m512i a = channels_of(rows[0], count), b = channels_of(rows[1], count);
    const __m512i c = channels_of(rows[2], count), d = channels_of(rows[3], count);
    const __m512i low = _mm512_unpacklo_epi8(a, b), high = _mm512_unpackhi_epi8(a, b);
    const __m512i low2 = _mm512_unpacklo_epi8(c, d), high2 = _mm512_unpackhi_epi8(c, d);
    words[0] = (vi)_mm512_unpacklo_epi16(low, low2);
    words[1] = (vi)_mm512_unpackhi_epi16(low, low2);
    words[2] = (vi)_mm512_unpacklo_epi16(high, high2);
    words[3] = (vi)_mm512_unpackhi_epi16(high, high2);
}

/* Words of four rows of 16 channels, in order. */
INLINE void words_of_16(const char *const *rows, i64 count, vi *words)
{
    const __m512i lanes = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m128i bytes = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i x = _mm512_castsi128_si512(bytes_of(rows[0], count));
    x = _mm512_inserti32x4(x, bytes_of(rows[1], count), 1);
    x = _mm512_inserti32x4(x, bytes_of(rows[2], count), 2);
    x = _mm512_inserti32x4(x, bytes_of(rows[3], count), 3);
    words[0] = (vi)_mm512_shuffle_epi8(_mm512_permutexvar_epi32(lanes, x), _mm512_broadcast_i32x4(bytes));
}

/* The lanes of four vectors of sums, the first ones of all first. */
INLINE void in_order(const vi *sum, int32_t *to)
{
    const __m512i a = (__m512i)sum[0], b = (__m512i)sum[1], c = (__m512i)sum[2], d = (__m512i)sum[3];
    const __m512i x = _mm512_shuffle_i32x4(a, b, 0x44), y = _mm512_shuffle_i32x4(a, b, 0xee);
    const __m512i z = _mm512_shuffle_i32x4(c, d, 0x44), w = _mm512_shuffle_i32x4(c, d, 0xee);
    _mm512_storeu_si512(to, _mm512_shuffle_i32x4(x, z, 0x88));
    _mm512_storeu_si512(to + 16, _mm512_shuffle_i32x4(x, z, 0xdd));
    _mm512_storeu_si512(to + 32, _mm512_shuffle_i32x4(y, w, 0x88));
    _mm512_storeu_si512(to + 48, _mm512_shuffle_i32x4(y, w, 0xdd));
}

/* Sums of V vectors of channels of a strip, AT_ONCE pixels in registers. Four rows of the kernel are a word: the words of
 * each position are made once for all pixels that read it.
 */
#define STRIP(V, WIDE, AT_ONCE)                                                                                       \
    static void strip_##WIDE(const windows *w, const strip *at, i64 count, const char *weights, const int32_t *start, \
                             int32_t *to)                                                                             \
    {                                                                                                                 \
        vi words[POSITIONS * V];                                                                                      \
        const i64 taps = w->kernel[2], rows = w->kernel[0] * w->kernel[1], pixels = at->pixels;                       \
        const i64 far = pixels > 1 ? 1 : w->dilations[2], step = pixels > 1 ? w->dilations[2] : 1;                    \
        const i64 positions = (pixels - 1) * w->strides[2] + (taps - 1) * step + 1;                                   \
        const char *zeros = (const char *)w->zeros, *padding[4] = {zeros, zeros, zeros, zeros}, *from[4];             \
        const inside in = inside_of(w, at, far, positions);                                                           \
        for (i64 first = 0; first < rows; first += 4, weights += taps * V * (i64)sizeof(vi)) {                        \
            walk row[4];                                                                                              \
            for (int i = 0; i < 4; i++)                                                                               \
                row[i] = walk_from(w, row_at(w, at, smaller(first + i, rows - 1)), at->x + in.begin * far, far);      \
            for (i64 j = 0; j < in.begin; j++) words_of_##WIDE(padding, count, words + j * V);                        \
            for (i64 j = in.end; j < positions; j++) words_of_##WIDE(padding, count, words + j * V);                  \
            for (i64 j = in.begin; j < in.end; j++) {                                                                 \
                _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++)                                                   \
                {                                                                                                     \
                    from[i] = row[i].channels;                                                                        \
                    row[i].channels += row[i].step;                                                                   \
                }                                                                                                     \
                words_of_##WIDE(from, count, words + j * V);                                                          \
            }                                                                                                         \
            const int is_last = first + 4 >= rows;                                                                    \
            for (i64 pixel = 0; pixel < pixels; pixel += AT_ONCE) {                                                   \
                const vi *x[AT_ONCE];                                                                                 \
                vi sum[AT_ONCE * V];                                                                                  \
                _Pragma("GCC unroll 8") for (int k = 0; k < AT_ONCE; k++)                                             \
                    x[k] = words + smaller(pixel + k, pixels - 1) * w->strides[2] * V;                                \
                int32_t *sums = to + pixel * WIDE;                                                                    \
                EACH_SUM(AT_ONCE, V)                                                                                  \
                sum[i] = load_words((const char *)(first ? sums + i * VECTOR : start + i % V * VECTOR));              \
                for (i64 tap = 0; tap < taps; tap++)                                                                  \
                    EACH_SUM(AT_ONCE, V)                                                                              \
                    sum[i] = quads(sum[i], x[i / V][tap * step * V + i % V],                                          \
                                   load_words(weights + (tap * V + i % V) * (i64)sizeof(vi)));                        \
                if (V == 4 && is_last)                                                                                \
                    _Pragma("GCC unroll 4") for (int k = 0; k < AT_ONCE; k++) in_order(sum + k * V, sums + k * WIDE); \
                else EACH_SUM(AT_ONCE, V) memcpy(sums + i * VECTOR, &sum[i], sizeof(vi));                             \
            }                                                                                                         \
        }                                                                                                             \
    }

STRIP(4, 64, 4)
STRIP(1, 16, 8)
#endif

/* Block: image and pixels, in strips: all channels of one after the other. */
EXPORT void irx_integer_depthwise(const void *parameters, i64 block, char *scratch)
{
    (void)scratch;
    const integer_depthwise *p = parameters;
    const windows *w = &p->window;
    const i64 part = block % p->row_parts, image = block / p->row_parts, tiles = (p->rows + PIXELS - 1) / PIXELS;
    const i64 row = start_of(part, p->row_parts, tiles) * PIXELS;
    const i64 count = smaller(start_of(part + 1, p->row_parts, tiles) * PIXELS, p->rows) - row;
    const i64 reach = (w->kernel[2] - 1) * w->dilations[2] + 1, rows = w->kernel[0] * w->kernel[1];
    const i64 longest = p->unit == 4 && p->channels <= 32 ? POSITIONS : STRIP_PIXELS;
    const i64 most = reach > POSITIONS ? 1 : smaller(longest, (POSITIONS - reach) / w->strides[2] + 1);
    const i64 words = (rows + p->unit - 1) / p->unit * w->kernel[2];
    int32_t sums[STRIP_PIXELS * CHUNK] __attribute__((aligned(64)));
    strip s;
    for (i64 r = 0; r < count; r += s.pixels) {
        s = strip_at(w, (const char *)w->data + image * w->data_image, row + r, smaller(most, count - r));
        const char *weights = p->weights;
        for (i64 c = 0, wide; c < p->channels; c += wide, s.base += wide, weights += words * wide * 4) {
            const i64 left = p->channels - c;
            wide = left > 32 ? 64 : left > 16 && p->unit == 2 ? 32 : 16;
            if (p->unit == 2)
                for (i64 part = 0; part < smaller(wide, left); part += PART) {
                    const strip of_part = {s.base + part, s.z, s.y, s.x, s.pixels};
                    strip_of_pairs(w, &of_part, left - part, weights + words * part * 4, p->start + c + part,
                                   sums + part, wide);
                }
#if VECTOR == 16
            else if (wide == 64) strip_64(w, &s, left, weights, p->start + c, sums);
            else strip_16(w, &s, left, weights, p->start + c, sums);
#endif
            const place at = {image, row + r, c, s.pixels, smaller(wide, left)};
            irx_end_sums(&p->end, &at, wide, sums);
        }
    }
}

typedef struct {
    windows window;
    uint8_t *out;
    i64 out_image, out_row, channels, rows, row_parts;
} level_maxima;

/* The largest of all taps of `count` channels. */
INLINE void out_maxima(const uint8_t *const *table, i64 pitch, i64 taps, i64 channel, uint8_t *out, const i64 count)
{
    uint8_t found[CHUNK];
    for (i64 c = 0; c < count; c++) found[c] = table[0][channel + c];
    for (i64 t = 1; t < taps; t++) {
        const uint8_t *x = table[t * pitch] + channel;
        for (i64 c = 0; c < count; c++) found[c] = x[c] > found[c] ? x[c] : found[c];
    }
    for (i64 c = 0; c < count; c++) out[c] = found[c];
}

/* The largest level of each window. Block and scratch as above. */
EXPORT void irx_level_maxima(const void *parameters, i64 block, char *scratch)
{
    const level_maxima *p = parameters;
    const i64 part = block % p->row_parts, image = block / p->row_parts, taps = taps_of(&p->window);
    const i64 row = start_of(part, p->row_parts, p->rows), count = start_of(part + 1, p->row_parts, p->rows) - row;
    const i64 pitch = count + 8;
    const uint8_t *const *table = (const uint8_t *const *)scratch;
    fill_table_of(&p->window, image, 0, row, count, pitch, (const float **)scratch, 1);
    for (i64 r = 0; r < count; r++) {
        uint8_t *out = p->out + image * p->out_image + (row + r) * p->out_row;
        i64 c = 0;
        for (; c + CHUNK <= p->channels; c += CHUNK) out_maxima(table + r, pitch, taps, c, out + c, CHUNK);
        for (; c < p->channels; c++) out_maxima(table + r, pitch, taps, c, out + c, 1);
    }
}
