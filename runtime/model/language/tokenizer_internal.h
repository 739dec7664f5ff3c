/* The vocabulary, maps of strings, and merging, which both kinds of tokenizer use. Shared by the
 * tokenizer's files. */
#ifndef RLXVK_TOKENIZER_INTERNAL_H
#define RLXVK_TOKENIZER_INTERNAL_H

#include "model/language/tokenizer.h"

enum token_kind {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN = 2,
    TOKEN_CONTROL = 3,
    TOKEN_USER_DEFINED = 4,
    TOKEN_UNUSED = 5,
    TOKEN_BYTE = 6
};

typedef struct token {
    gguf_string written; /* the spelling in the file */
    gguf_string decoded; /* the bytes it stands for */
    float score;
    uint8_t kind;
    bool ends; /* it ends a generation */
} token;

/* The spelling of a special token, by which it is found in a text. */
typedef struct spelling {
    gguf_string text;
    uint32_t id;
} spelling;

/* Maps strings to their index in an array of gguf_strings, which are `stride` bytes apart. Of equal
 * strings, the first one wins. */
typedef struct string_map {
    uint32_t *slots;
    uint64_t mask;
    const char *items;
    size_t stride;
} string_map;

RLXVK_MUST_CHECK rlxvk_status tokenizer_build_map(string_map *map, const void *items, size_t stride,
                                                  uint64_t count);
/* Index of the concatenation of up to three pieces, or RLXVK_NO_TOKEN. */
uint32_t tokenizer_find_string(const string_map *map, const gguf_string *pieces, size_t count);

typedef struct presplit_flavour presplit_flavour;

/* How a text is encoded. */
typedef struct encode_mode {
    bool plain;     /* only user-defined tokens are found by their spelling */
    bool continued; /* a token of text stands before it, so it gets no space in front */
} encode_mode;

/* Encodes a text without special tokens, of at least one byte. */
typedef rlxvk_status (*encode_function)(const tokenizer *t, const char *bytes, size_t length,
                                        encode_mode mode, token_list *out);

struct tokenizer {
    token *tokens;
    uint32_t size;
    string_map ids;
    uint32_t bos, eos, unknown;
    bool add_bos, add_space;
    encode_function encode;
    VECTOR(spelling) spellings; /* of special tokens, sorted */
    bool starts[256];           /* the bytes with which they begin */
    bool strips_space;          /* white space after special tokens is dropped */
    uint32_t byte_ids[256];     /* SPM: tokens <0xHH>; RLXVK_NO_TOKEN if missing */

    const presplit_flavour *flavour; /* BPE only */
    gguf_string *merges;
    string_map ranks;

    arena memory; /* owns the strings */
};

/* A run of bytes that is a token or becomes part of one. A symbol that was merged into another one
 * has length 0. */
typedef struct symbol {
    const char *data;
    size_t length;
    uint32_t previous, next; /* RLXVK_NO_TOKEN at the ends */
} symbol;

typedef VECTOR(symbol) symbol_list;

/* Computes the key for joining two neighbours. The pair with the smallest key is joined first.
 * Returns false if the two cannot be joined. */
typedef bool (*merge_key)(const tokenizer *t, gguf_string left, gguf_string right, double *out);

/* Appends a symbol to the chain. */
RLXVK_MUST_CHECK rlxvk_status tokenizer_append_symbol(symbol_list *symbols, const char *data,
                                                      size_t length);
/* Joins neighbours until no pair can be joined. The smallest key comes first, on ties the leftmost
 * pair. The symbols remain a chain that begins at item 0. */
RLXVK_MUST_CHECK rlxvk_status tokenizer_merge_symbols(const tokenizer *t, symbol_list *symbols,
                                                      merge_key key);
RLXVK_MUST_CHECK rlxvk_status tokenizer_append_token(token_list *list, uint32_t id);

/* Indexes the tokens by their spelling. Call it once the spellings are final. */
RLXVK_MUST_CHECK rlxvk_status tokenizer_index_vocabulary(tokenizer *t);
/* Finds the token for a text that merging has made. Control, unknown and byte tokens do not count.
 */
uint32_t tokenizer_find_token(const tokenizer *t, const gguf_string *pieces, size_t count);

/* The two kinds of tokenizer. They read their keys after the vocabulary is read, and set `encode`.
 */
RLXVK_MUST_CHECK rlxvk_status tokenizer_prepare_spm(tokenizer *t, gguf_file *file);
RLXVK_MUST_CHECK rlxvk_status tokenizer_prepare_bpe(tokenizer *t, gguf_file *file);

/* Collects the special tokens. Call it after the kinds of tokens are known and their texts are
 * decoded. */
RLXVK_MUST_CHECK rlxvk_status tokenizer_prepare_specials(tokenizer *t);
/* The longest special token with which the text begins; RLXVK_NO_TOKEN if there is none. If
 * `plain`, only user-defined tokens count. */
uint32_t tokenizer_special_at(const tokenizer *t, const char *bytes, size_t length, bool plain);
/* Encodes a text whose special tokens begin at `from` or later. The parts between them go to
 * `encode`. */
RLXVK_MUST_CHECK rlxvk_status tokenizer_cut_specials(const tokenizer *t, const char *bytes,
                                                     size_t length, size_t from, encode_mode mode,
                                                     encode_function encode, token_list *out);
/* The length of the white space at the beginning of a text that the token before it drops. */
size_t tokenizer_drops_special(const tokenizer *t, uint32_t id, const char *bytes, size_t length);
/* Finds the tokens that end a generation. Those known only by name become control tokens. */
RLXVK_MUST_CHECK rlxvk_status tokenizer_prepare_ends(tokenizer *t, const gguf_file *file);

/* Appends the text in canonical composition (NFC). Bytes that are not UTF-8 stay as they are. */
RLXVK_MUST_CHECK rlxvk_status tokenizer_append_nfc(token_text *out, const char *bytes,
                                                   size_t length);

/* Finds a pre-split flavour by name; NULL if it is unknown. */
const presplit_flavour *presplit_find(gguf_string name);
void presplit_names(text *out);
bool presplit_adds_bos(const presplit_flavour *flavour);
/* Whether a piece that equals a token becomes that token, regardless of the merges. */
bool presplit_keeps_whole(const presplit_flavour *flavour);
/* Whether vocabularies of this flavour want NFC. */
bool presplit_composes(const presplit_flavour *flavour);

enum { PRESPLIT_STAGES = 6 };

/* A text that is being split. Set the first three members; the others begin as zeros. */
typedef struct presplit {
    const presplit_flavour *flavour;
    const char *bytes;
    size_t length;
    size_t ends[PRESPLIT_STAGES]; /* end of each stage's current piece */
} presplit;

/* Returns the end of the piece that begins at `start`, which must be below `length`. Call it from
 * piece to piece. */
size_t presplit_step(presplit *p, size_t start);
/* Does a single step without state. */
size_t presplit_next(const presplit_flavour *flavour, const char *bytes, size_t start,
                     size_t length);

#endif
