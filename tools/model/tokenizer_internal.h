/* Shared by the tokenizer's files: the vocabulary, string maps, and the merge engine both kinds
 * run. */
#ifndef RLXVK_TOKENIZER_INTERNAL_H
#define RLXVK_TOKENIZER_INTERNAL_H

#include "model/tokenizer.h"

enum token_kind {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN = 2,
    TOKEN_CONTROL = 3,
    TOKEN_USER_DEFINED = 4,
    TOKEN_UNUSED = 5,
    TOKEN_BYTE = 6
};

typedef struct token {
    gguf_string written; /* as in the file */
    gguf_string decoded; /* the bytes it stands for */
    float score;
    uint8_t kind;
} token;

/* Strings to their position in an array of `stride`-spaced gguf_strings; the first of equal strings
 * counts. */
typedef struct string_map {
    uint32_t *slots;
    uint64_t mask;
    const char *items;
    size_t stride;
} string_map;

RLXVK_MUST_CHECK rlxvk_status string_map_build(string_map *map, const void *items, size_t stride,
                                               uint64_t count);
/* Position of the concatenation of up to three pieces, or TOKEN_NONE. */
uint32_t string_map_find(const string_map *map, const gguf_string *pieces, size_t count);

typedef struct presplit_flavour presplit_flavour;

typedef rlxvk_status (*encode_function)(const tokenizer *t, const char *bytes, size_t length,
                                        token_list *out);

struct tokenizer {
    token *tokens;
    uint32_t size;
    string_map ids;
    uint32_t bos, eos, eot, unknown;
    bool add_bos, add_space;
    encode_function encode;
    uint32_t byte_ids[256]; /* SPM: <0xHH>; TOKEN_NONE where missing */

    const presplit_flavour *flavour; /* BPE */
    gguf_string *merges;
    string_map ranks;
    uint32_t *specials; /* ids cut out of the text first, longest first */
    size_t special_count;

    arena memory; /* the strings */
};

/* A run of bytes that is, or is to become, one token. Merged-away symbols have length 0. */
typedef struct symbol {
    const char *data;
    size_t length;
    uint32_t previous, next; /* TOKEN_NONE at the ends */
} symbol;

typedef VECTOR(symbol) symbol_list;

/* The key of joining two neighbouring symbols: the smallest key is joined first; false when they do
 * not join. */
typedef bool (*merge_key)(const tokenizer *t, gguf_string left, gguf_string right, double *out);

/* Appends a symbol to the chain. */
RLXVK_MUST_CHECK rlxvk_status symbol_append(symbol_list *symbols, const char *data, size_t length);
/* Joins neighbours, smallest key first, leftmost on ties, until none joins. Symbols stay a chain
 * from item 0. */
RLXVK_MUST_CHECK rlxvk_status symbols_merge(const tokenizer *t, symbol_list *symbols,
                                            merge_key key);
RLXVK_MUST_CHECK rlxvk_status token_append(token_list *list, uint32_t id);

/* The two kinds: reading their keys (after the vocabulary), and encoding. */
RLXVK_MUST_CHECK rlxvk_status spm_prepare(tokenizer *t, gguf_file *file);
RLXVK_MUST_CHECK rlxvk_status bpe_prepare(tokenizer *t, gguf_file *file);

/* The pre-split flavour of a name; NULL when unknown. */
const presplit_flavour *presplit_find(gguf_string name);
bool presplit_adds_bos(const presplit_flavour *flavour);
/* End of the piece that starts at `start` < length; above `start`. */
size_t presplit_next(const presplit_flavour *flavour, const char *bytes, size_t start,
                     size_t length);

#endif
