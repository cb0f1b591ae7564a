/* What one step of an LSTM does besides its multiplications, in one pass over memory.
 *
 *   in   gate_inputs  (S, B, 4H)  what the inputs add to the gates: i, f, o, g
 *        product      (S, B, 4H)  what the hidden state before adds to them
 *        bias         (S, 4H)     what is always added
 *   out  gates        (S, B, 4H)  kept for the backward pass; cells and their outputs (S, B, H)
 *
 * Optional: cell.py does the same in several passes where this is not compiled. Every array may be
 * a slice of a longer one, its stacks then further apart. Values that are not numbers stay so: a run
 * that fails must show it.
 */

#include "gates.h"

typedef struct {
    count stacks, rows, hidden_size, threads;
    float clip; /* the largest float where cells are free */
} shape;

#define AT(NUMBER, WHICH, WIDTH)                                                                  \
    ((NUMBER *)arrays[WHICH].start + stack * arrays[WHICH].stride + row * (WIDTH))

#define FORWARD(NAME, NUMBER, GATE, LOAD, STORE, STORE_GATE)                                      \
    static void NAME##_row(count size, float clip, const NUMBER *restrict gate_inputs,            \
                           const NUMBER *restrict product, const float *restrict cell_before,     \
                           GATE *restrict gates, float *restrict cell_after,                      \
                           NUMBER *restrict cell_output, const float *restrict bias) {            \
        const float most = LARGEST_POWER;                                                         \
        _Pragma("omp simd") for (count c = 0; c < size; c++) {                                    \
            const count f = c + size, o = f + size, g = o + size;                                 \
            const float a = one_and_power(                                                        \
                SIGMOID * (LOAD(gate_inputs[c]) + LOAD(product[c]) + bias[c]), most);             \
            const float b = one_and_power(                                                        \
                SIGMOID * (LOAD(gate_inputs[f]) + LOAD(product[f]) + bias[f]), most);             \
            const float d = one_and_power(                                                        \
                SIGMOID * (LOAD(gate_inputs[o]) + LOAD(product[o]) + bias[o]), most);             \
            const float e = one_and_power(                                                        \
                TANH * (LOAD(gate_inputs[g]) + LOAD(product[g]) + bias[g]), most);                \
            const float ab = a * b, de = d * e;                                                   \
            const float shared = reciprocal(ab * de); /* one for four gates */                    \
            const float input = shared * de * b, forget = shared * de * a;                        \
            const float output = shared * ab * e, candidate = 1.0f - 2.0f * shared * ab * d;      \
            const float cell = within(forget * cell_before[c] + input * candidate, clip);         \
            cell_after[c] = cell;                                                                 \
            cell_output[c] = STORE(output * fast_tanh(cell, most));                               \
            gates[c] = STORE_GATE(input);                                                         \
            gates[f] = STORE_GATE(forget);                                                        \
            gates[o] = STORE_GATE(output);                                                        \
            gates[g] = STORE_GATE(candidate);                                                     \
        }                                                                                         \
    }                                                                                             \
    static void NAME##_rows(const void *what, const array *arrays, count first, count last) {     \
        const shape *of = what;                                                                   \
        for (count line = first; line < last; line++) {                                           \
            const count stack = line / of->rows, row = line % of->rows, size = of->hidden_size;   \
            NAME##_row(size, of->clip, AT(NUMBER, 0, 4 * size), AT(NUMBER, 1, 4 * size),          \
                       AT(float, 2, size), AT(GATE, 3, 4 * size), AT(float, 4, size),             \
                       AT(NUMBER, 5, size), AT(float, 6, 0)); /* one bias for all rows */         \
        }                                                                                         \
    }                                                                                             \
    PUBLIC void NAME(const shape *of, const array *arrays) {                                      \
        const count lines = of->stacks * of->rows;                                                \
        parallel_for((job){NAME##_rows, of, arrays, lines}, of->threads,                             \
                  lines * of->hidden_size);                                                       \
    }

/* `grad_cell` is the running gradient of the cells: after this step on entry, before it on return. */
#define BACKWARD(NAME, NUMBER, GATE, LOAD, STORE, LOAD_GATE)                                      \
    static void NAME##_row(count size, float clip, const GATE *restrict gates,                    \
                           const float *restrict cell_before, const float *restrict cell_after,   \
                           const NUMBER *restrict grad_cell_output, float *restrict grad_cell,    \
                           NUMBER *restrict grad_gates) {                                         \
        const float most = LARGEST_POWER;                                                         \
        _Pragma("omp simd") for (count c = 0; c < size; c++) {                                    \
            const count f = c + size, o = f + size, g = o + size;                                 \
            const float input = LOAD_GATE(gates[c]), forget = LOAD_GATE(gates[f]);                \
            const float output = LOAD_GATE(gates[o]), candidate = LOAD_GATE(gates[g]);            \
            const float cell_tanh = fast_tanh(cell_after[c], most);                               \
            const float grad = LOAD(grad_cell_output[c]);                                         \
            const float whole = grad_cell[c] + grad * output * (1.0f - cell_tanh * cell_tanh);    \
            const float largest = cell_after[c] < 0.0f ? -cell_after[c] : cell_after[c];          \
            const float grad_now = largest >= clip ? 0.0f : whole; /* cut off: nothing passes */  \
            grad_gates[c] = STORE(grad_now * candidate * input * (1.0f - input));                 \
            grad_gates[f] = STORE(grad_now * cell_before[c] * forget * (1.0f - forget));          \
            grad_gates[o] = STORE(grad * cell_tanh * output * (1.0f - output));                   \
            grad_gates[g] = STORE(grad_now * input * (1.0f - candidate * candidate));             \
            grad_cell[c] = grad_now * forget;                                                     \
        }                                                                                         \
    }                                                                                             \
    static void NAME##_rows(const void *what, const array *arrays, count first, count last) {     \
        const shape *of = what;                                                                   \
        for (count line = first; line < last; line++) {                                           \
            const count stack = line / of->rows, row = line % of->rows, size = of->hidden_size;   \
            NAME##_row(size, of->clip, AT(GATE, 0, 4 * size), AT(float, 1, size),                 \
                       AT(float, 2, size), AT(NUMBER, 3, size), AT(float, 4, size),               \
                       AT(NUMBER, 5, 4 * size));                                                  \
        }                                                                                         \
    }                                                                                             \
    PUBLIC void NAME(const shape *of, const array *arrays) {                                      \
        const count lines = of->stacks * of->rows;                                                \
        parallel_for((job){NAME##_rows, of, arrays, lines}, of->threads,                             \
                  lines * of->hidden_size);                                                       \
    }

FORWARD(forward_float32, float, float, load_float, store_float, store_float)
FORWARD(forward_bfloat16, uint16_t, int16_t, bf16_to_f32, f32_to_bf16, store_fixed)
BACKWARD(backward_float32, float, float, load_float, store_float, load_float)
BACKWARD(backward_bfloat16, uint16_t, int16_t, bf16_to_f32, f32_to_bf16, load_fixed)
