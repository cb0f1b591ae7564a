/* A whole step of an LSTM in float32: see steps.h. */

#include "steps.h"

#ifdef HAS_STEPS

/* Packed: (S, H / LANES, D + P, 4, LANES), so that a panel is read from one end to the other. */

#if LANES == 16
#define ROWS_AT_ONCE 6 /* 24 sums, 4 weights: as many as fit in 32 registers */
#else
#define ROWS_AT_ONCE 3 /* 12 sums, 3 weights: as many as fit in 16 */
#endif

#define NEAR 128 /* numbers taken in at a time: their weights stay in the nearest memory */
#define SIDE 132 /* rows whose sums wait there meanwhile */

typedef struct {
    const float *inputs; /* of the first row, the first number taken in */
    count apart;         /* rows, in numbers */
    count depth;
    const float *weights;
    int is_first, is_last;
} part;

typedef struct {
    const float *bias;
    float *cells, *cell_output;
} panel;

INLINE void some_rows(const step *of, const panel *at, const part *some, count first,
                      const int rows, float *waiting) {
    lanes sums[ROWS_AT_ONCE][GATES];
    const float *begin = some->is_first ? at->bias : waiting;
    const count gates_apart = some->is_first ? of->hidden_size : LANES;
    const count rows_apart = some->is_first ? 0 : PANEL;
    const float *inputs = some->inputs + first * some->apart, *weights = some->weights;
#pragma GCC unroll 8
    for (int row = 0; row < rows; row++)
#pragma GCC unroll 4
        for (int gate = 0; gate < GATES; gate++)
            sums[row][gate] = ON(loadu)(begin + row * rows_apart + gate * gates_apart);
    for (count k = 0; k < some->depth; k++, weights += PANEL)
#pragma GCC unroll 8
        for (int row = 0; row < rows; row++)
#pragma GCC unroll 4
            for (int gate = 0; gate < GATES; gate++)
                sums[row][gate] = ON(fmadd)(ON(loadu)(weights + gate * LANES),
                                            all(inputs[row * some->apart + k]), sums[row][gate]);
#pragma GCC unroll 8
    for (int row = 0; row < rows; row++)
        if (some->is_last)
            ON(storeu)(at->cell_output + (first + row) * of->hidden_size,
                       lstm_cell(sums[row], at->cells + (first + row) * LANES, of->clip, 0));
        else
#pragma GCC unroll 4
            for (int gate = 0; gate < GATES; gate++)
                ON(storeu)(waiting + row * PANEL + gate * LANES, sums[row][gate]);
}

/* Rows `begin` to `end`, at most SIDE of them. */
static void all_rows(const step *of, const panel *at, const part *some, count begin, count end,
                     float *waiting) {
    const char *next = (const char *)(some->weights + some->depth * PANEL);
    const count bytes = some->depth * PANEL * 4, blocks = (end - begin) / ROWS_AT_ONCE + 1;
    count row = begin;
    for (; row + ROWS_AT_ONCE <= end; row += ROWS_AT_ONCE, waiting += ROWS_AT_ONCE * PANEL) {
        fetch(next, bytes, (row - begin) / ROWS_AT_ONCE, blocks);
        some_rows(of, at, some, row, ROWS_AT_ONCE, waiting);
    }
    switch (end - row) {
#if ROWS_AT_ONCE > 3
    case 5: some_rows(of, at, some, row, 5, waiting); break;
    case 4: some_rows(of, at, some, row, 4, waiting); break;
    case 3: some_rows(of, at, some, row, 3, waiting); break;
#endif
    case 2: some_rows(of, at, some, row, 2, waiting); break;
    case 1: some_rows(of, at, some, row, 1, waiting); break;
    default: break;
    }
}

static void step_float32_panels(const void *what, const array *arrays, count first, count last) {
    const step *of = what;
    const count panels = of->hidden_size / LANES, depth = of->input_size + of->proj_size;
    float waiting[SIDE * PANEL] __attribute__((aligned(64)));
    for (count line = first; line < last; line++) {
        const count stack = line / panels, number = line % panels;
        const panel at = {START(float, BIAS) + number * LANES,
                          START(float, CELLS) + number * of->max_rows * LANES,
                          START(float, CELL_OUTPUT) + number * LANES};
        const float *weights = START(float, WEIGHTS) + number * depth * PANEL;
        for (count row = 0; row < of->rows; row += SIDE)
            for (count k = 0, size; k < depth; k += size) {
                const int is_input = k < of->input_size;
                const count begin = is_input ? 0 : of->input_size;
                const count end = is_input ? of->input_size : depth;
                size = end - k < NEAR ? end - k : NEAR;
                const part some = {
                    (is_input ? START(float, INPUTS) : START(float, HIDDEN)) + k - begin,
                    end - begin, size, weights + k * PANEL, k == 0, k + size == depth};
                all_rows(of, &at, &some, row, row + SIDE < of->rows ? row + SIDE : of->rows,
                         waiting);
            }
    }
}

PUBLIC void step_float32(const step *of, const array *arrays) {
    const count lines = of->stacks * (of->hidden_size / LANES);
    parallel_for((job){step_float32_panels, of, arrays, lines}, of->threads,
              of->stacks * of->rows * of->hidden_size);
}

/* Cells of a panel. */
PUBLIC int panel_cells(void) { return LANES; }

/* From `source` (rows, 4H) to rows `begin` and on of each panel. */
PUBLIC void pack_float32(const float *source, float *packed, const count *sizes) {
    const count rows = sizes[0], begin = sizes[1], depth = sizes[2], hidden_size = sizes[3];
    for (count block = 0; block < rows; block += LANES)
        for (count at = 0; at < GATES * hidden_size; at += LANES) {
            const count gate = at / hidden_size, panel = at % hidden_size / LANES;
            const count end = block + LANES < rows ? block + LANES : rows;
            for (count row = block; row < end; row++)
                memcpy(packed + ((panel * depth + begin + row) * GATES + gate) * LANES,
                       source + row * GATES * hidden_size + at, LANES * sizeof *source);
        }
}

#endif
