/*
 * Merges blocks that only follow one another. Drivers also look at the number of blocks when they
 * decide which loops to unroll. So blocks that inlined calls and decided branches leave behind must
 * not count.
 *
 * A block is appended to the block that branches to it if no other block does, and if no construct
 * ends or continues there. The order of the other blocks stays.
 */
#include "spirv/specialize.h"

#include <string.h>

typedef struct block {
    uint32_t at, end; /* word indices of label and terminator */
    uint32_t merge;   /* its merge instruction; 0: none */
    uint32_t entries; /* how many branches lead to it */
    uint32_t next;    /* the block that is appended to it; 0: none */
    uint32_t into;    /* the block to which it is appended; 0: none */
    bool named;       /* a merge instruction names it */
} block;

typedef struct merging {
    const uint32_t *words;
    uint32_t count, functions_at;
    block *blocks; /* by label */
    uint32_t *out, out_count;
} merging;

static bool is_merge(uint32_t opcode)
{
    return opcode == SpvOpSelectionMerge || opcode == SpvOpLoopMerge;
}

static void read_blocks(merging *m)
{
    uint32_t label = 0;
    for (uint32_t i = m->functions_at; i < m->count; i += length_of(m->words[i])) {
        const uint32_t *w = m->words + i;
        uint32_t opcode = opcode_of(w[0]);
        if (opcode == SpvOpLabel) {
            label = w[1];
            m->blocks[label].at = i;
        } else if (is_merge(opcode)) {
            m->blocks[label].merge = i;
            m->blocks[w[1]].named = true;
            if (opcode == SpvOpLoopMerge)
                m->blocks[w[2]].named = true;
        } else if (spirv_is_terminator(opcode)) {
            m->blocks[label].end = i;
            for (uint32_t k = 0; spirv_target(w, k); k++)
                m->blocks[spirv_target(w, k)].entries++;
        }
    }
}

/* The first block of those that are merged with this one. */
static uint32_t first_of(const merging *m, uint32_t label)
{
    while (m->blocks[label].into)
        label = m->blocks[label].into;
    return label;
}

/* The merge instruction of the blocks merged with `first` so far; 0: none. */
static uint32_t merge_of(const merging *m, uint32_t first)
{
    for (; first; first = m->blocks[first].next)
        if (m->blocks[first].merge)
            return m->blocks[first].merge;
    return 0;
}

static void join(merging *m, uint32_t label)
{
    const uint32_t *end = m->words + m->blocks[label].end;
    if (opcode_of(end[0]) != SpvOpBranch)
        return;
    block *next = &m->blocks[end[1]];
    if (next->entries != 1 || next->named || (next->merge && merge_of(m, first_of(m, label))))
        return;
    m->blocks[label].next = end[1];
    next->into = label;
}

/* ---- Writing ---- */

static void put(merging *m, const uint32_t *w, uint32_t count)
{
    memcpy(m->out + m->out_count, w, count * sizeof *w);
    m->out_count += count;
}

static void put_phi(merging *m, const uint32_t *w, bool joined)
{
    uint32_t at = m->out_count, length = joined ? 4 : length_of(w[0]);
    put(m, w, length);
    m->out[at] = length << SpvWordCountShift | (joined ? SpvOpCopyObject : SpvOpPhi);
    for (uint32_t k = 4; k < length; k += 2)
        m->out[at + k] = first_of(m, w[k]);
}

static void put_block(merging *m, uint32_t first)
{
    uint32_t merge = merge_of(m, first);
    put(m, m->words + m->blocks[first].at, 2);
    for (uint32_t label = first; label; label = m->blocks[label].next) {
        const block *b = &m->blocks[label];
        for (uint32_t i = b->at + 2; i < b->end; i += length_of(m->words[i])) {
            const uint32_t *w = m->words + i;
            if (opcode_of(w[0]) == SpvOpPhi)
                put_phi(m, w, label != first);
            else if (!is_merge(opcode_of(w[0])))
                put(m, w, length_of(w[0]));
        }
        if (!b->next && merge)
            put(m, m->words + merge, length_of(m->words[merge]));
        if (!b->next)
            put(m, m->words + b->end, length_of(m->words[b->end]));
    }
}

static void put_functions(merging *m)
{
    for (uint32_t i = m->functions_at; i < m->count; i += length_of(m->words[i])) {
        const uint32_t *w = m->words + i;
        if (opcode_of(w[0]) != SpvOpLabel) {
            put(m, w, length_of(w[0]));
            continue;
        }
        if (!m->blocks[w[1]].into)
            put_block(m, w[1]);
        i = m->blocks[w[1]].end;
    }
}

uint32_t *spirv_merge_blocks(const uint32_t *words, uint32_t count, uint32_t *out_count)
{
    merging m = {.words = words, .count = count, .functions_at = SPIRV_HEADER_WORDS};
    m.blocks = memory_zeroed(words[3], sizeof *m.blocks);
    m.out = memory_zeroed(count, sizeof *m.out);
    if (m.blocks && m.out) {
        while (opcode_of(words[m.functions_at]) != SpvOpFunction)
            m.functions_at += length_of(words[m.functions_at]);
        read_blocks(&m);
        for (uint32_t label = 1; label < words[3]; label++)
            if (m.blocks[label].at)
                join(&m, label);
        put(&m, words, m.functions_at);
        put_functions(&m);
        *out_count = m.out_count;
    } else {
        memory_free(m.out);
        m.out = NULL;
    }
    memory_free(m.blocks);
    return m.out;
}
