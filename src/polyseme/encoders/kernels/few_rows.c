/* All steps of an LSTM layer for a few rows, from weights in float16.
 *
 *   in   gate inputs  (S, N, 4H)   what the inputs add to the gates, packed step after step
 *        batch sizes  (T,)         rows at each step, falling, sum N; but the first may be a single
 *                                  row that stands for all
 *        weights      (S, H / LANES, P, 4, LANES)       float16; from the output before to the gates
 *        projection   (S, P / PANEL, H, PANEL)          float16; null where P is H
 *        bias         (S, 4H)
 *   out  hidden       (S, R, P)    what the first step finds
 *        cells        (S, R, H)    in place
 *        outputs      (S, N, P)
 *        cell outputs (S, R, H)    room for what is not projected yet
 *
 * A few rows use each weight a few times in a step, so that they wait for weights to come from
 * memory: in float16 half as much comes, and once for all rows. All steps are one call, as calling
 * would cost as much as a step. */

#include "steps.h"

#ifdef HAS_STEPS

typedef struct {
    count stacks, steps, hidden_size, proj_size, threads;
    float cell_clip, output_clip; /* the largest float where they are free */
} few_rows;

enum {
    FEW_GATE_INPUTS, FEW_BATCH_SIZES, FEW_WEIGHTS, FEW_PROJECTION, FEW_BIAS, FEW_HIDDEN, FEW_CELLS,
    FEW_OUTPUTS, FEW_CELL_OUTPUTS
};

#if LANES == 16
#define FEW_AT_ONCE 6 /* 24 sums, 4 weights: as many as fit in 32 registers */
#else
#define FEW_AT_ONCE 3 /* 12 sums, 4 weights: as many as fit in 16 */
#endif

#define AHEAD 16 /* rows of a panel that are fetched before they are used */

INLINE lanes from_half(const uint16_t *half) {
#if LANES == 16
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)half));
#else
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)half));
#endif
}

/* Adds some rows of `inputs` times a panel of weights. Of a single row, numbers at odd places have
 * sums of their own: four sums would wait for each other. */
INLINE void multiply_some(const float *inputs, count apart, count depth, const uint16_t *weights,
                          lanes total[][GATES], const int rows) {
    lanes sums[FEW_AT_ONCE][GATES], odd[GATES];
#pragma GCC unroll 8
    for (int row = 0; row < rows; row++)
#pragma GCC unroll 4
        for (int at = 0; at < GATES; at++)
            sums[row][at] = total[row][at];
#pragma GCC unroll 4
    for (int at = 0; at < GATES; at++)
        odd[at] = all(0.0f);
    for (count k = 0; k < depth; k++, weights += PANEL) {
        for (count at = 0; at < PANEL; at += 32) /* a cache line */
            _mm_prefetch((const char *)(weights + AHEAD * PANEL + at), _MM_HINT_T0);
#pragma GCC unroll 4
        for (int at = 0; at < GATES; at++) {
            const lanes weight = from_half(weights + at * LANES);
#pragma GCC unroll 8
            for (int row = 0; row < rows; row++)
                sums[row][at] = ON(fmadd)(weight, all(inputs[row * apart + k]), sums[row][at]);
        }
        if (rows > 1 || ++k == depth) continue;
        weights += PANEL;
#pragma GCC unroll 4
        for (int at = 0; at < GATES; at++)
            odd[at] = ON(fmadd)(from_half(weights + at * LANES), all(inputs[k]), odd[at]);
    }
#pragma GCC unroll 8
    for (int row = 0; row < rows; row++)
#pragma GCC unroll 4
        for (int at = 0; at < GATES; at++)
            total[row][at] = rows == 1 ? ON(add)(sums[row][at], odd[at]) : sums[row][at];
}

static void multiply(const float *inputs, count apart, count depth, const uint16_t *weights,
                     lanes total[][GATES], count rows) {
    switch (rows) {
#if FEW_AT_ONCE > 3
    case 6: multiply_some(inputs, apart, depth, weights, total, 6); break;
    case 5: multiply_some(inputs, apart, depth, weights, total, 5); break;
    case 4: multiply_some(inputs, apart, depth, weights, total, 4); break;
#endif
    case 3: multiply_some(inputs, apart, depth, weights, total, 3); break;
    case 2: multiply_some(inputs, apart, depth, weights, total, 2); break;
    default: multiply_some(inputs, apart, depth, weights, total, 1); break;
    }
}

/* What a stack's step reads and writes. */
typedef struct {
    const float *gate_inputs, *bias, *before;
    float *cells, *cell_outputs, *outputs;
} few_step;

/* Rows `first` to `first + rows` of a panel of cells. */
static void few_cells(const few_rows *of, const few_step *step, const uint16_t *weights, count at,
                      count first, count rows) {
    lanes sums[FEW_AT_ONCE][GATES];
    for (count row = 0; row < rows; row++)
        for (count gate = 0; gate < GATES; gate++) {
            const count where = gate * of->hidden_size + at;
            const float *from = step->gate_inputs + (first + row) * GATES * of->hidden_size;
            sums[row][gate] = ON(add)(ON(loadu)(from + where), ON(loadu)(step->bias + where));
        }
    multiply(step->before + first * of->proj_size, of->proj_size, of->proj_size, weights, sums, rows);
    for (count row = 0; row < rows; row++) {
        const count where = (first + row) * of->hidden_size + at;
        ON(storeu)(step->cell_outputs + where,
                   lstm_cell(sums[row], step->cells + where, of->cell_clip, 0));
    }
}

/* The same of a panel of projected numbers. */
static void few_projected(const few_rows *of, const few_step *step, const uint16_t *weights,
                          count at, count first, count rows) {
    lanes sums[FEW_AT_ONCE][GATES];
    for (count row = 0; row < rows; row++)
        for (count part = 0; part < GATES; part++)
            sums[row][part] = all(0.0f);
    multiply(step->cell_outputs + first * of->hidden_size, of->hidden_size, of->hidden_size, weights,
             sums, rows);
    for (count row = 0; row < rows; row++)
        for (count part = 0; part < GATES; part++)
            ON(storeu)(step->outputs + (first + row) * of->proj_size + at + part * LANES,
                       sums[row][part]);
}

typedef void on_panel(const few_rows *, const few_step *, const uint16_t *, count, count, count);

/* All rows of all panels, a few rows at a time, while a panel's weights are near. */
static void on_panels(on_panel *does, const few_rows *of, const few_step *step, count rows,
                      const uint16_t *weights, count size, count width, count depth) {
    for (count at = 0; at < size; at += width, weights += depth * PANEL)
        for (count first = 0, blocks = (rows + FEW_AT_ONCE - 1) / FEW_AT_ONCE; blocks; blocks--) {
            const count some = (rows - first) / blocks;
            does(of, step, weights, at, first, some);
            first += some;
        }
}

static void few_rows_stacks(const void *what, const array *arrays, count begin, count end) {
    const few_rows *of = what;
    const count hidden_size = of->hidden_size, proj_size = of->proj_size;
    const count *batch_sizes = arrays[FEW_BATCH_SIZES].start;
    for (count stack = begin; stack < end; stack++) {
        const uint16_t *weights = START(uint16_t, FEW_WEIGHTS);
        const uint16_t *projection =
            arrays[FEW_PROJECTION].start ? START(uint16_t, FEW_PROJECTION) : 0;
        float *hidden = START(float, FEW_HIDDEN), *room = START(float, FEW_CELL_OUTPUTS);
        few_step step = {START(float, FEW_GATE_INPUTS), START(float, FEW_BIAS), hidden,
                         START(float, FEW_CELLS), 0, START(float, FEW_OUTPUTS)};
        for (count number = 0; number < of->steps; number++) {
            const count rows = batch_sizes[number];
            step.cell_outputs = projection ? room : step.outputs;
            on_panels(few_cells, of, &step, rows, weights, hidden_size, LANES, proj_size);
            if (projection)
                on_panels(few_projected, of, &step, rows, projection, proj_size, PANEL, hidden_size);
            for (count at = 0; at < rows * proj_size; at += LANES)
                ON(storeu)(step.outputs + at, between(ON(loadu)(step.outputs + at), of->output_clip));
            step.before = step.outputs;
            if (!number && of->steps > 1 && batch_sizes[1] > rows) { /* one row stands for all */
                for (count row = 0; row < batch_sizes[1]; row++) {
                    memcpy(hidden + row * proj_size, step.outputs, proj_size * sizeof(float));
                    if (row)
                        memcpy(step.cells + row * hidden_size, step.cells,
                               hidden_size * sizeof(float));
                }
                step.before = hidden;
            }
            step.gate_inputs += rows * GATES * hidden_size;
            step.outputs += rows * proj_size;
        }
    }
}

PUBLIC void few_rows_float16(const few_rows *of, const array *arrays) {
    parallel_for((job){few_rows_stacks, of, arrays, of->stacks}, of->threads,
                 of->steps * of->hidden_size * of->proj_size);
}

#endif
