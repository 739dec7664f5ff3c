/* The streams of random ops: their default keys, and the generator. */
#include "op/random/random.h"

#include <string.h>

uint64_t random_ops(rlxvk_graph *g)
{
    for (; g->random_counted < g->nodes.count; g->random_counted++) {
        const op_family *family = node_row(graph_node(g, g->random_counted))->family;
        g->random_ops +=
            family == op_table[OP_rng_uniform].family || family == op_table[OP_sample].family;
    }
    return g->random_ops + g->replayed;
}

void random_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]}, k[2] = {key[0], key[1]};
    for (int i = 0; i < 10; i++) {
        uint64_t p = (uint64_t)0xD2511F53u * c[0], q = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t next[4] = {(uint32_t)(q >> 32) ^ c[1] ^ k[0], (uint32_t)q,
                            (uint32_t)(p >> 32) ^ c[3] ^ k[1], (uint32_t)p};
        memcpy(c, next, sizeof c);
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    memcpy(out, c, sizeof c);
}
