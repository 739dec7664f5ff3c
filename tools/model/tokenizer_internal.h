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
    bool ends; /* a generation */
} token;

/* How a text has a token that stands for itself. */
typedef struct spelling {
    gguf_string text;
    uint32_t id;
} spelling;

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

/* Encodes text without special tokens, of a byte or more. */
typedef rlxvk_status (*encode_function)(const tokenizer *t, const char *bytes, size_t length,
                                        token_list *out);

struct tokenizer {
    token *tokens;
    uint32_t size;
    string_map ids;
    uint32_t bos, eos, unknown;
    bool add_bos, add_space;
    encode_function encode;
    VECTOR(spelling) spellings; /* of tokens that stand for themselves, sorted */
    bool starts[256];           /* the bytes that they begin with */
    bool strips_space;          /* white space behind them is dropped */
    uint32_t byte_ids[256];     /* SPM: <0xHH>; TOKEN_NONE where missing */

    const presplit_flavour *flavour; /* BPE */
    gguf_string *merges;
    string_map ranks;

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

/* Finds tokens by what is written of them from now on. */
RLXVK_MUST_CHECK rlxvk_status vocabulary_index(tokenizer *t);
/* The token of a text that merging has led to: control, unknown and byte tokens are none. */
uint32_t token_of(const tokenizer *t, const gguf_string *pieces, size_t count);

/* The two kinds: reading their keys (after the vocabulary), and encoding. */
RLXVK_MUST_CHECK rlxvk_status spm_prepare(tokenizer *t, gguf_file *file);
RLXVK_MUST_CHECK rlxvk_status bpe_prepare(tokenizer *t, gguf_file *file);

/* Collects the special tokens, after their kinds are known and their texts decoded. */
RLXVK_MUST_CHECK rlxvk_status specials_prepare(tokenizer *t);
/* The longest that the text begins with; TOKEN_NONE if there is none. */
uint32_t special_at(const tokenizer *t, const char *bytes, size_t length);
/* Encodes a text whose special tokens begin at `from` or later; `encode` takes every stretch
 * between them. */
RLXVK_MUST_CHECK rlxvk_status specials_cut(const tokenizer *t, const char *bytes, size_t length,
                                           size_t from, encode_function encode, token_list *out);
/* Finds the tokens that end a generation, and makes those known by name control tokens. */
RLXVK_MUST_CHECK rlxvk_status ends_prepare(tokenizer *t, const gguf_file *file);

/* Appends the text in canonical composition (NFC). Bytes that are not UTF-8 stay as they are. */
RLXVK_MUST_CHECK rlxvk_status text_append_nfc(token_text *out, const char *bytes, size_t length);

/* The pre-split flavour of a name; NULL when unknown. */
const presplit_flavour *presplit_find(gguf_string name);
void presplit_names(text *out);
bool presplit_adds_bos(const presplit_flavour *flavour);
/* Whether a piece that is a token is that token, whatever the merges say. */
bool presplit_keeps_whole(const presplit_flavour *flavour);
/* Whether its vocabularies want NFC. */
bool presplit_composes(const presplit_flavour *flavour);

enum { PRESPLIT_STAGES = 6 };

/* One text on its way; zero but for the first three members. */
typedef struct presplit {
    const presplit_flavour *flavour;
    const char *bytes;
    size_t length;
    size_t ends[PRESPLIT_STAGES]; /* of the present piece of each stage */
} presplit;

/* End of the piece that starts at `start` < length; above `start`. Steps go from piece to piece. */
size_t presplit_step(presplit *p, size_t start);
/* A single step. */
size_t presplit_next(const presplit_flavour *flavour, const char *bytes, size_t start,
                     size_t length);

#endif
