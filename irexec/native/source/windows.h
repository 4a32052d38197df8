/* Positions of the values of windows: for each tap of the kernel and each pixel of a block a pointer to its channels.
 *
 * The data is channels last, of up to three spatial axes; fewer axes are sizes of 1. A tap in the padding is a pointer
 * to zeros. So kernels read data as it lies, without copies of windows, and need no case for edges.
 */
#ifndef WINDOWS_H
#define WINDOWS_H

#include "irx.h"

typedef struct {
    const float *data;
    i64 data_image;
    const float *zeros; /* as many as a tap reads */
    i64 data_strides[3];
    i64 sizes[3]; /* of the data */
    i64 counts[3]; /* of windows: the sizes of the result */
    i64 kernel[3], strides[3], dilations[3], pads[3];
} windows;

INLINE i64 taps_of(const windows *w) { return w->kernel[0] * w->kernel[1] * w->kernel[2]; }

/* The element `count` elements of `item` bytes after p. */
INLINE const float *after_elements(const float *p, i64 count, i64 item)
{
    return (const float *)((const char *)p + count * item);
}

/* The entries of `count` pixels that follow each other in a row of the result, from the pixel (z, y, x) on. */
INLINE void fill_row(const windows *w, const float *base, const i64 at[3], i64 count, i64 pitch, const float **table,
                     const i64 item)
{
    const i64 step = w->strides[2], size = w->sizes[2];
    for (i64 a = 0; a < w->kernel[0]; a++) {
        const i64 z = at[0] * w->strides[0] - w->pads[0] + a * w->dilations[0];
        for (i64 b = 0; b < w->kernel[1]; b++) {
            const i64 y = at[1] * w->strides[1] - w->pads[1] + b * w->dilations[1];
            const int inside = z >= 0 && z < w->sizes[0] && y >= 0 && y < w->sizes[1];
            const float *row = after_elements(base, z * w->data_strides[0] + y * w->data_strides[1], item);
            for (i64 c = 0; c < w->kernel[2]; c++, table += pitch) {
                /* The pixels begin .. end - 1 have this tap in the data. */
                const i64 x = at[2] * step - w->pads[2] + c * w->dilations[2];
                const i64 begin = smaller(count, x < 0 ? (-1 - x) / step + 1 : 0);
                const i64 end = inside && x < size ? smaller(count, (size - 1 - x) / step + 1) : begin;
                for (i64 i = 0; i < begin; i++) table[i] = w->zeros;
                for (i64 i = begin; i < end; i++)
                    table[i] = after_elements(row, (x + i * step) * w->data_strides[2], item);
                for (i64 i = inside ? end : 0; i < count; i++) table[i] = w->zeros;
            }
        }
    }
}

/* Fills table[tap * pitch + i] for the pixels first .. first + count - 1; the last pixel is repeated up to pitch. The
 * data has elements of `item` bytes, which strides count.
 */
INLINE void fill_table_of(const windows *w, i64 image, i64 channel, i64 first, i64 count, i64 pitch,
                          const float **table, const i64 item)
{
    const float *base = after_elements(w->data, image * w->data_image + channel, item);
    for (i64 i = 0, pixel = first; i < count;) {
        const i64 x = pixel % w->counts[2], y = pixel / w->counts[2];
        const i64 at[3] = {y / w->counts[1], y % w->counts[1], x}, run = smaller(count - i, w->counts[2] - x);
        fill_row(w, base, at, run, pitch, table + i, item);
        i += run;
        pixel += run;
    }
    const i64 taps = taps_of(w);
    for (i64 tap = 0; tap < taps; tap++)
        for (i64 i = count; i < pitch; i++) table[tap * pitch + i] = table[tap * pitch + count - 1];
}

/* The same for floats. */
static void fill_table(const windows *w, i64 image, i64 channel, i64 first, i64 count, i64 pitch, const float **table)
{
    fill_table_of(w, image, channel, first, count, pitch, table, sizeof(float));
}

#endif
