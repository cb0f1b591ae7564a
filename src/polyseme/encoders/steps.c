/* A whole step of an LSTM in float32, for processors with 512-bit vectors: see steps.h. */

#include "steps.h"

#ifdef __AVX512F__

/* Packed: (S, H / 16, D + P, 4, 16), so that a panel is read from one end to the other. */

#define MOST_ROWS 6 /* 24 sums, 4 weights: as many as fit in 32 registers */

#define NEAR 128 /* numbers taken in at a time: their weights stay in the nearest memory */
#define SIDE 132 /* rows whose sums wait there meanwhile */

typedef struct {
    const float *given; /* of the first row, the first number taken in */
    count apart;        /* rows, in numbers */
    count depth;
    const float *weights;
    int is_first, is_last;
} part;

typedef struct {
    const float *bias;
    float *cells, *emitted;
} panel;

INLINE void some_rows(const step *of, const panel *at, const part *some, count first,
                      const int rows, float *waiting) {
    lanes sums[MOST_ROWS][GATES];
    const float *begin = some->is_first ? at->bias : waiting;
    const count gates_apart = some->is_first ? of->cells : LANES;
    const count rows_apart = some->is_first ? 0 : PANEL;
    const float *given = some->given + first * some->apart, *weights = some->weights;
#pragma GCC unroll 8
    for (int row = 0; row < rows; row++)
#pragma GCC unroll 4
        for (int gate = 0; gate < GATES; gate++)
            sums[row][gate] = _mm512_loadu_ps(begin + row * rows_apart + gate * gates_apart);
    for (count k = 0; k < some->depth; k++, weights += PANEL)
#pragma GCC unroll 8
        for (int row = 0; row < rows; row++)
#pragma GCC unroll 4
            for (int gate = 0; gate < GATES; gate++)
                sums[row][gate] =
                    _mm512_fmadd_ps(_mm512_loadu_ps(weights + gate * LANES),
                                    all(given[row * some->apart + k]), sums[row][gate]);
#pragma GCC unroll 8
    for (int row = 0; row < rows; row++)
        if (some->is_last)
            _mm512_storeu_ps(at->emitted + (first + row) * of->cells,
                             settle(sums[row], at->cells + (first + row) * LANES, of->clip, 0));
        else
#pragma GCC unroll 4
            for (int gate = 0; gate < GATES; gate++)
                _mm512_storeu_ps(waiting + row * PANEL + gate * LANES, sums[row][gate]);
}

/* Rows `begin` to `end`, at most SIDE of them. */
static void all_rows(const step *of, const panel *at, const part *some, count begin, count end,
                     float *waiting) {
    const char *next = (const char *)(some->weights + some->depth * PANEL);
    const count bytes = some->depth * PANEL * 4, blocks = (end - begin) / MOST_ROWS + 1;
    count row = begin;
    for (; row + MOST_ROWS <= end; row += MOST_ROWS, waiting += MOST_ROWS * PANEL) {
        fetch(next, bytes, (row - begin) / MOST_ROWS, blocks);
        some_rows(of, at, some, row, MOST_ROWS, waiting);
    }
    switch (end - row) {
    case 5: some_rows(of, at, some, row, 5, waiting); break;
    case 4: some_rows(of, at, some, row, 4, waiting); break;
    case 3: some_rows(of, at, some, row, 3, waiting); break;
    case 2: some_rows(of, at, some, row, 2, waiting); break;
    case 1: some_rows(of, at, some, row, 1, waiting); break;
    default: break;
    }
}

static void step_float32_panels(const void *what, const array *arrays, count first, count last) {
    const step *of = what;
    const count panels = of->cells / LANES, depth = of->read + of->width;
    float waiting[SIDE * PANEL] __attribute__((aligned(64)));
    for (count line = first; line < last; line++) {
        const count stack = line / panels, number = line % panels;
        const panel at = {START(float, BIAS) + number * LANES,
                          START(float, CELLS) + number * of->most_rows * LANES,
                          START(float, EMITTED) + number * LANES};
        const float *weights = START(float, WEIGHTS) + number * depth * PANEL;
        for (count row = 0; row < of->rows; row += SIDE)
            for (count k = 0, size; k < depth; k += size) {
                const int is_read = k < of->read;
                const count end = is_read ? of->read : depth, begin = is_read ? 0 : of->read;
                size = end - k < NEAR ? end - k : NEAR;
                const part some = {
                    (is_read ? START(float, READ) : START(float, HIDDEN)) + k - begin,
                    end - begin, size, weights + k * PANEL, k == 0, k + size == depth};
                all_rows(of, &at, &some, row, row + SIDE < of->rows ? row + SIDE : of->rows,
                         waiting);
            }
    }
}

PUBLIC void step_float32(const step *of, const array *arrays) {
    const count lines = of->stacks * (of->cells / LANES);
    share_out((job){step_float32_panels, of, arrays, lines}, of->threads,
              of->stacks * of->rows * of->cells);
}

/* From `source` (rows, 4H) to rows `begin` and on of each panel. */
PUBLIC void pack_float32(const float *source, float *packed, const count *sizes) {
    const count rows = sizes[0], begin = sizes[1], depth = sizes[2], cells = sizes[3];
    for (count block = 0; block < rows; block += LANES)
        for (count at = 0; at < GATES * cells; at += LANES) {
            const count gate = at / cells, panel = at % cells / LANES;
            const count end = block + LANES < rows ? block + LANES : rows;
            for (count row = block; row < end; row++)
                memcpy(packed + ((panel * depth + begin + row) * GATES + gate) * LANES,
                       source + row * GATES * cells + at, LANES * sizeof *source);
        }
}

#endif
