/* What one step of an LSTM does besides its multiplications, in one pass over memory.
 *
 *   in   drive    (S, B, 4H)  what the inputs add to the gates: input, forget, output, new
 *        product  (S, B, 4H)  what the state before adds to them
 *        bias     (S, 4H)     what is always added
 *   out  active   (S, B, 4H)  the gates, kept for the way back; cells and what they emit (S, B, H)
 *
 * Optional: cell.py does the same in several passes where this is not compiled. Every array may be
 * a slice of a longer one, its stacks then further apart. Values that are not numbers stay so: a run
 * that fails must show it.
 */

#include "gates.h"

typedef struct {
    count stacks, rows, cells, threads;
    float clip; /* the largest float where cells are free */
} shape;

#define AT(NUMBER, WHICH, WIDTH) \
    ((NUMBER *)arrays[WHICH].start + stack * arrays[WHICH].stride + row * (WIDTH))

#define FORWARD(NAME, NUMBER, KEPT, LOAD, STORE, KEEP)                                            \
    static void NAME##_row(count cells, float clip, const NUMBER *restrict drive,                 \
                           const NUMBER *restrict product, const float *restrict before,          \
                           KEPT *restrict active, float *restrict now,                            \
                           NUMBER *restrict emitted, const float *restrict bias) {                \
        const float most = LARGEST_POWER;                                                         \
        _Pragma("omp simd") for (count c = 0; c < cells; c++) {                                   \
            const count f = c + cells, o = f + cells, n = o + cells;                              \
            const float a =                                                                       \
                one_and_power(SIGMOID * (LOAD(drive[c]) + LOAD(product[c]) + bias[c]), most);     \
            const float b =                                                                       \
                one_and_power(SIGMOID * (LOAD(drive[f]) + LOAD(product[f]) + bias[f]), most);     \
            const float d =                                                                       \
                one_and_power(SIGMOID * (LOAD(drive[o]) + LOAD(product[o]) + bias[o]), most);     \
            const float e =                                                                       \
                one_and_power(TANH * (LOAD(drive[n]) + LOAD(product[n]) + bias[n]), most);        \
            const float ab = a * b, de = d * e;                                                   \
            const float shared = reciprocal(ab * de); /* one for four gates */                    \
            const float enter = shared * de * b, keep = shared * de * a;                          \
            const float leave = shared * ab * e, new = 1.0f - 2.0f * shared * ab * d;             \
            const float cell = within(keep * before[c] + enter * new, clip);                      \
            now[c] = cell;                                                                        \
            emitted[c] = STORE(leave * bend(cell, most));                                         \
            active[c] = KEEP(enter);                                                              \
            active[f] = KEEP(keep);                                                               \
            active[o] = KEEP(leave);                                                              \
            active[n] = KEEP(new);                                                                \
        }                                                                                         \
    }                                                                                             \
    static void NAME##_rows(const void *what, const array *arrays, count first, count last) {     \
        const shape *of = what;                                                                   \
        for (count line = first; line < last; line++) {                                           \
            const count stack = line / of->rows, row = line % of->rows, cells = of->cells;        \
            NAME##_row(cells, of->clip, AT(NUMBER, 0, 4 * cells), AT(NUMBER, 1, 4 * cells),       \
                       AT(float, 2, cells), AT(KEPT, 3, 4 * cells), AT(float, 4, cells),          \
                       AT(NUMBER, 5, cells), AT(float, 6, 0)); /* one bias for all rows */        \
        }                                                                                         \
    }                                                                                             \
    PUBLIC void NAME(const shape *of, const array *arrays) {                                      \
        const count lines = of->stacks * of->rows;                                                \
        share_out((job){NAME##_rows, of, arrays, lines}, of->threads, lines * of->cells);         \
    }

/* `pull` is the running gradient of the cells: after this step on entry, before it on return. */
#define BACKWARD(NAME, NUMBER, KEPT, LOAD, STORE, TAKE)                                           \
    static void NAME##_row(count cells, float clip, const KEPT *restrict active,                  \
                           const float *restrict before, const float *restrict now,               \
                           const NUMBER *restrict emitted, float *restrict pull,                  \
                           NUMBER *restrict slope) {                                              \
        const float most = LARGEST_POWER;                                                         \
        _Pragma("omp simd") for (count c = 0; c < cells; c++) {                                   \
            const count f = c + cells, o = f + cells, n = o + cells;                              \
            const float enter = TAKE(active[c]), keep = TAKE(active[f]);                          \
            const float leave = TAKE(active[o]), new = TAKE(active[n]);                           \
            const float bent = bend(now[c], most), emit = LOAD(emitted[c]);                       \
            const float whole = pull[c] + emit * leave * (1.0f - bent * bent);                    \
            const float size = now[c] < 0.0f ? -now[c] : now[c];                                  \
            const float cell = size >= clip ? 0.0f : whole; /* cut off: nothing passes */         \
            slope[c] = STORE(cell * new * enter * (1.0f - enter));                                \
            slope[f] = STORE(cell * before[c] * keep * (1.0f - keep));                            \
            slope[o] = STORE(emit * bent * leave * (1.0f - leave));                               \
            slope[n] = STORE(cell * enter * (1.0f - new * new));                                  \
            pull[c] = cell * keep;                                                                \
        }                                                                                         \
    }                                                                                             \
    static void NAME##_rows(const void *what, const array *arrays, count first, count last) {     \
        const shape *of = what;                                                                   \
        for (count line = first; line < last; line++) {                                           \
            const count stack = line / of->rows, row = line % of->rows, cells = of->cells;        \
            NAME##_row(cells, of->clip, AT(KEPT, 0, 4 * cells), AT(float, 1, cells),              \
                       AT(float, 2, cells), AT(NUMBER, 3, cells), AT(float, 4, cells),            \
                       AT(NUMBER, 5, 4 * cells));                                                 \
        }                                                                                         \
    }                                                                                             \
    PUBLIC void NAME(const shape *of, const array *arrays) {                                      \
        const count lines = of->stacks * of->rows;                                                \
        share_out((job){NAME##_rows, of, arrays, lines}, of->threads, lines * of->cells);         \
    }

FORWARD(forward_float32, float, float, load_float, store_float, store_float)
FORWARD(forward_bfloat16, uint16_t, int16_t, load_brain, store_brain, store_fixed)
BACKWARD(backward_float32, float, float, load_float, store_float, load_float)
BACKWARD(backward_bfloat16, uint16_t, int16_t, load_brain, store_brain, load_fixed)
