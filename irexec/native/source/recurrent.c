/* The steps of LSTM, GRU and RNN, over cells and whole sequences, after the inputs of all steps were multiplied by W.
 *
 * A block is some sequences of one direction from their first step to their last: their states stay in scratch, and a
 * step multiplies them by packed panels of R, adds the projected input and applies the gates. A sequence may be shorter
 * than the others; then its state stays, and the rest of its results is zero.
 */
#include "micro.h"

enum { LSTM, GRU, GRU_LINEAR, RNN };
enum { BY_SIGMOID, BY_TANH, BY_RELU };

/* A state (batch, directions, size) or the results of all steps; strides in elements, the last axis is contiguous. */
typedef struct {
    float *base; /* or null */
    i64 sequence, direction, step;
} states;

typedef struct {
    i64 kind, batch, steps, directions, size;
    i64 activations[3];     /* of the gates, of the candidate, and of the cell of an LSTM; of an RNN the first */
    double clip;            /* what gates and candidates are limited to, infinite for nothing */
    i64 reversed;           /* bit d: direction d reads from the last step */
    i64 parts;              /* of the batch, each a block for each direction */
    const float *projected; /* (batch, steps, directions, gates * size), and a vector that is read but not used */
    const float *first;     /* for each direction panels of R: of all gates, of a GRU the first two */
    const float *second;    /* of a GRU the last gate, else null */
    const float *zeros;     /* as many as the first product has columns, in whole vectors */
    const float *bias;      /* (directions, size in whole vectors), of the second product */
    i64 panels[2];          /* vectors of the panels of both */
    const char *lengths;    /* of the sequences, or null */
    i64 length_bytes, length_step;
    states hidden, cell;    /* before the first step */
    states all, last_hidden, last_cell;
} recurrence;

/* Floats of rows of `count` columns, so that whole vectors may be read and written. */
INLINE i64 whole(i64 count) { return (count + VECTOR - 1) / VECTOR * VECTOR; }

/* Rows, to which a table points, by one panel; what is at `from` is added. */
static void multiply_panel(const sums *p, i64 vectors, const float *b, const float *const *table, i64 count,
                           const float *bias, float *to, i64 to_row)
{
    sums s = *p;
    for (i64 r = 0, done; r < count; r += done) {
        done = count - r >= irx_rows_of_tile[vectors - 1] ? irx_rows_of_tile[vectors - 1] : 1;
        irx_micro *run = done == 1 ? irx_one[vectors - 1] : irx_several[vectors - 1];
        if (p->from) s.from = p->from + r * p->from_row;
        run(&s, table + r, 1, b, bias, to + r * to_row, to_row);
    }
}

/* Rows by all panels of a matrix (depth, columns). Rows that fill no tile are multiplied by several panels at once. */
static __attribute__((noinline)) void multiply(const sums *p, i64 columns, i64 panel, const float *b, const float *const *table, i64 count,
                     const float *bias, float *to, i64 to_row)
{
    for (i64 c = 0, together, vectors; c < columns; c += together * vectors * VECTOR) {
        vectors = smaller(panel, (columns - c + VECTOR - 1) / VECTOR);
        const i64 width = vectors * VECTOR, each = p->depth * width, tile = irx_rows_of_tile[vectors - 1];
        together = c + PANELS * width <= columns ? PANELS : 1;
        const i64 tiled = together == 1 ? count : count / tile * tile;
        for (i64 i = 0; i < together; i++) {
            sums s = *p;
            if (p->from) s.from += c + i * width;
            multiply_panel(&s, vectors, b + i * each, table, tiled, bias + c + i * width, to + c + i * width, to_row);
        }
        for (i64 r = tiled; r < count; r++) {
            float start[PANELS * 3 * VECTOR] __attribute__((aligned(64)));
            for (i64 k = 0; k < together * width; k += VECTOR) {
                const vf x = load(bias + c + k);
                store(start + k, p->from ? x + load(p->from + r * p->from_row + c + k) : x);
            }
            irx_row_by_panels[vectors - 1](p, table + r, 1, b, each, start, to + r * to_row + c);
        }
        b += together * each;
    }
}

/* Gates are short beside the products: this is not written out at every place. */
static __attribute__((noinline)) vf activated(i64 activation, vf x)
{
    if (activation == BY_RELU) return maximum(x, spread(0.0f));
    return activation == BY_TANH ? hyperbolic_tangent(x) : sigmoid(x);
}

/* Gate or candidate: the sum of its products, limited and activated. */
INLINE vf gate(const recurrence *p, int activation, vf sum)
{
    return activated(p->activations[activation], clamped(sum, spread((float)-p->clip), spread((float)p->clip)));
}

/* The gates of one sequence: h and c become the next states. `last` is the second product of a GRU. */
static void lstm(const recurrence *p, const float *gates, float *h, float *c)
{
    for (i64 k = 0, size = p->size; k < size; k += VECTOR) {
        const vf forget = gate(p, 0, load(gates + k)), input = gate(p, 0, load(gates + size + k));
        const vf candidate = gate(p, 1, load(gates + 2 * size + k)), out = gate(p, 0, load(gates + 3 * size + k));
        const vf cell = forget * load(c + k) + input * candidate;
        store(c + k, cell);
        store(h + k, out * activated(p->activations[2], cell));
    }
}

static void gru(const recurrence *p, const float *gates, const float *last, const float *projected, float *h)
{
    for (i64 k = 0, size = p->size; k < size; k += VECTOR) {
        vf x = load(last + k);
        if (projected) x = load(projected + k) + gate(p, 0, load(gates + size + k)) * x;
        const vf candidate = gate(p, 1, x), update = gate(p, 0, load(gates + k));
        store(h + k, (1.0f - update) * candidate + update * load(h + k));
    }
}

static void rnn(const recurrence *p, const float *sums, float *h)
{
    for (i64 k = 0; k < p->size; k += VECTOR) store(h + k, gate(p, 0, load(sums + k)));
}

static void reset(const recurrence *p, const float *gates, const float *h, float *out)
{
    for (i64 k = 0, size = p->size; k < size; k += VECTOR)
        store(out + k, gate(p, 0, load(gates + size + k)) * load(h + k));
}

/* Where the arrays of a block are in scratch: rows of whole vectors. */
typedef struct {
    float *h, *c, *gates, *kept, *last;
    const float **table, **second;
    i64 row, gate_row;
} arrays;

/* One step of `count` sequences that follow each other, from row `first` of the block on; x is the first projection. */
static void step(const recurrence *p, i64 direction, const arrays *a, i64 first, i64 count, const float *x, i64 x_row)
{
    const i64 size = p->size, columns = p->kind == LSTM ? 4 * size : p->kind == RNN ? size : 2 * size;
    const i64 at = first * a->row;
    const float big = __builtin_inff();
    sums s = {1, size, -big, big, x, x_row};
    multiply(&s, columns, p->panels[0], p->first + direction * whole(columns) * size, a->table + first, count,
             p->zeros, a->gates, a->gate_row);
    if (p->second) {
        const int linear = p->kind == GRU_LINEAR;
        for (i64 r = 0; !linear && r < count; r++)
            reset(p, a->gates + r * a->gate_row, a->h + at + r * a->row, a->kept + r * a->row);
        s.from = linear ? NULL : x + 2 * size;
        multiply(&s, size, p->panels[1], p->second + direction * whole(size) * size,
                 linear ? a->table + first : a->second, count, p->bias + direction * whole(size), a->last, a->row);
    }
    for (i64 r = 0; r < count; r++) {
        float *h = a->h + at + r * a->row, *c = a->c + at + r * a->row;
        const float *gates = a->gates + r * a->gate_row, *last = a->last + r * a->row;
        if (p->kind == LSTM) lstm(p, gates, h, c);
        else if (p->kind == RNN) rnn(p, gates, h);
        else gru(p, gates, last, p->kind == GRU_LINEAR ? x + r * x_row + 2 * size : NULL, h);
    }
}

INLINE i64 length_of(const recurrence *p, i64 sequence)
{
    if (!p->lengths) return p->steps;
    const char *at = p->lengths + sequence * p->length_step * p->length_bytes;
    i64 length;
    int32_t narrow;
    if (p->length_bytes == 4) memcpy(&narrow, at, 4), length = narrow;
    else memcpy(&length, at, 8);
    return larger(0, smaller(length, p->steps));
}

INLINE float *row_of(const states *s, i64 sequence, i64 direction, i64 step)
{
    return s->base + sequence * s->sequence + direction * s->direction + step * s->step;
}

/* Copies between rows of a state in scratch and a tensor. */
static void exchange(const recurrence *p, const states *s, i64 direction, i64 first, i64 count, float *rows, i64 row,
                     int is_written)
{
    for (i64 r = 0; s->base && r < count; r++) {
        float *tensor = row_of(s, first + r, direction, 0), *own = rows + r * row;
        memcpy(is_written ? tensor : own, is_written ? own : tensor, (size_t)p->size * sizeof(float));
    }
}

/* Block: direction and part of the batch, the part changing fastest. */
EXPORT void irx_recurrence(const void *parameters, i64 block, char *scratch)
{
    const recurrence *p = parameters;
    const i64 size = p->size, direction = block / p->parts, part = block % p->parts;
    const i64 begin = start_of(part, p->parts, p->batch), count = start_of(part + 1, p->parts, p->batch) - begin;
    const i64 gates = p->kind == LSTM ? 4 : p->kind == RNN ? 1 : 3, width = p->directions * gates * size;
    const int reversed = p->reversed >> direction & 1;
    /* Panels are whole vectors wide, and gates are read in whole vectors. */
    arrays a = {.row = whole(size) + VECTOR, .gate_row = whole(4 * size) + 3 * VECTOR};
    a.h = (float *)scratch;
    a.c = a.h + count * a.row;
    a.gates = a.c + count * a.row;
    a.kept = a.gates + count * a.gate_row;
    a.last = a.kept + count * a.row;
    a.table = (const float **)(a.last + count * a.row);
    a.second = a.table + count + 8;
    memset(scratch, 0, (size_t)((char *)a.table - scratch));
    for (i64 r = 0; r < count; r++) a.table[r] = a.h + r * a.row, a.second[r] = a.kept + r * a.row;
    exchange(p, &p->hidden, direction, begin, count, a.h, a.row, 0);
    exchange(p, &p->cell, direction, begin, count, a.c, a.row, 0);
    for (i64 s = 0; s < p->steps; s++) {
        for (i64 r = 0, together; r < count; r += together) {
            const i64 length = length_of(p, begin + r), t = reversed && s < length ? length - 1 - s : s;
            for (together = 1; r + together < count; together++) {
                const i64 other = length_of(p, begin + r + together);
                if (reversed ? other != length : (s < other) != (s < length)) break;
            }
            if (s < length) {
                const float *x = p->projected + ((begin + r) * p->steps + t) * width + direction * gates * size;
                step(p, direction, &a, r, together, x, p->steps * width);
            }
            for (i64 i = 0; p->all.base && i < together; i++) {
                float *out = row_of(&p->all, begin + r + i, direction, t);
                if (s < length) memcpy(out, a.h + (r + i) * a.row, (size_t)size * sizeof(float));
                else memset(out, 0, (size_t)size * sizeof(float));
            }
        }
    }
    exchange(p, &p->last_hidden, direction, begin, count, a.h, a.row, 1);
    exchange(p, &p->last_cell, direction, begin, count, a.c, a.row, 1);
}
