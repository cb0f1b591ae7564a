/* Nodes of a graph move to the community of a neighbour, until none gains by moving.
 *
 *   in   the graph by rows: starts (N + 1,), columns (E,), weights (E,), loops weighing nothing
 *        degrees (N,), costs (N,)   what a community's degrees cost a node that joins it
 *        waiting (N,)               all nodes, in the order in which they are looked at
 *   out  labels (N,)                the community of each node
 *   room totals, links (N,), is_waiting (N,)
 *
 * Optional: louvain.py does the same, to the same bits, where this is not compiled.
 */

#include "gates.h"

typedef struct {
    count nodes;
    double least_gain;
} graph_shape;

enum { STARTS, COLUMNS, WEIGHTS, DEGREES, COSTS, WAITING, LABELS, TOTALS, LINKS, IS_WAITING };

#define ARRAY(TYPE, WHICH) ((TYPE *)arrays[WHICH].start)

PUBLIC void move_nodes(const graph_shape *of, const array *arrays) {
    const count *starts = ARRAY(count, STARTS);
    const int32_t *columns = ARRAY(int32_t, COLUMNS);
    const double *weights = ARRAY(double, WEIGHTS);
    const double *degrees = ARRAY(double, DEGREES), *costs = ARRAY(double, COSTS);
    count *waiting = ARRAY(count, WAITING), *labels = ARRAY(count, LABELS);
    double *totals = ARRAY(double, TOTALS), *links = ARRAY(double, LINKS);
    uint8_t *is_waiting = ARRAY(uint8_t, IS_WAITING);
    for (count node = 0; node < of->nodes; node++) {
        labels[node] = node;
        totals[node] = degrees[node];
        is_waiting[node] = 1;
    }
    /* A ring: no node waits twice, so that there is always room. */
    count head = 0, num_waiting = of->nodes;
    while (num_waiting) {
        const count node = waiting[head];
        head = (head + 1) % of->nodes;
        num_waiting--;
        is_waiting[node] = 0;
        const count begin = starts[node], end = starts[node + 1], old = labels[node];
        links[old] = 0.0;
        for (count k = begin; k < end; k++) links[labels[columns[k]]] = 0.0;
        for (count k = begin; k < end; k++) links[labels[columns[k]]] += weights[k];
        totals[old] -= degrees[node];
        /* Volatile: multiplied and subtracted at once, the last bit would be another one. */
        volatile double cost = costs[node] * totals[old];
        const double stays = links[old] - cost + of->least_gain;
        count new = old;
        double best = stays;
        for (count k = begin; k < end; k++) {
            const count near = labels[columns[k]];
            cost = costs[node] * totals[near];
            const double gain = links[near] - cost;
            if (gain > best) {
                best = gain;
                new = near;
            }
        }
        totals[new] += degrees[node];
        if (new == old) continue;
        labels[node] = new;
        for (count k = begin; k < end; k++) {
            const count other = columns[k];
            if (labels[other] == new || is_waiting[other]) continue;
            is_waiting[other] = 1;
            waiting[(head + num_waiting++) % of->nodes] = other;
        }
    }
}
