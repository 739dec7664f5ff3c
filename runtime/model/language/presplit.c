/*
 * Cuts text into pieces. BPE never merges across their ends. A flavour is one or more published
 * regular expressions ("stages"). Each stage cuts the pieces of the stage before it. Its matches
 * become pieces, and so does the text between two matches. Here an expression is a table of items,
 * which reads as the expression does:
 *
 *     ` ?\p{L}+`   MAYBE(blank), SOME(letters)        `|`        OR
 *     `\p{N}{1,3}` TIMES(numbers, 1, 3)               `(?!\S)`   NO_TEXT_AHEAD
 *
 * A byte that is not UTF-8 is a character by itself, which belongs to no class. Character classes
 * follow Unicode as in Oniguruma, which transformers uses: \s is the property White_Space.
 */
#include "model/language/tokenizer_internal.h"
#include "model/language/unicode.h"
#include "model/language/utf8.h"

#include <string.h>

/* ---- Expressions ---- */

#define IN(category) (1u << UNICODE_##category)
#define LETTERS      (IN(LU) | IN(LL) | IN(LT) | IN(LM) | IN(LO))
#define MARKS        (IN(MN) | IN(MC) | IN(ME))
#define NUMBERS      (IN(ND) | IN(NL) | IN(NO))
#define PUNCTUATION  (IN(PC) | IN(PD) | IN(PS) | IN(PE) | IN(PI) | IN(PF) | IN(PO))
#define SYMBOLS      (IN(SM) | IN(SC) | IN(SK) | IN(SO))

typedef struct range {
    uint32_t first, last;
} range;

/* The characters of these categories and ranges; if `negated`, all others. */
typedef struct set {
    uint32_t categories;
    bool space, negated;
    uint32_t range_count;
    const range *ranges;
} set;

#define RANGES(...)                                                                                \
    .ranges = (const range[]){__VA_ARGS__},                                                        \
    .range_count = sizeof((const range[]){__VA_ARGS__}) / sizeof(range)
#define NEWLINES                                                                                   \
    {'\n', '\n'},                                                                                  \
    {                                                                                              \
        '\r', '\r'                                                                                 \
    }

static const set blank = {RANGES({' ', ' '})};
static const set newlines = {RANGES(NEWLINES)};
static const set newlines_slash = {RANGES(NEWLINES, {'/', '/'})};
static const set space = {.space = true};
static const set letters = {.categories = LETTERS};
static const set numbers = {.categories = NUMBERS};
static const set letters_marks = {.categories = LETTERS | MARKS};
static const set upper = {.categories = IN(LU) | IN(LT) | IN(LM) | IN(LO) | MARKS};
static const set lower = {.categories = IN(LL) | IN(LM) | IN(LO) | MARKS};
static const set punctuation = {.categories = PUNCTUATION};
static const set signs = {.categories = PUNCTUATION | SYMBOLS};
static const set others = {.categories = LETTERS | NUMBERS, .space = true, .negated = true};
static const set others_unmarked = {.categories = LETTERS | NUMBERS | MARKS,
                                    .space = true,
                                    .negated = true};
static const set others_in_line = {.categories = LETTERS | NUMBERS,
                                   .space = true,
                                   .negated = true,
                                   RANGES(NEWLINES)};
/* Characters that may precede a word. */
static const set lead = {.categories = LETTERS | NUMBERS, .negated = true, RANGES(NEWLINES)};
static const set lead_unsigned = {.categories = LETTERS | PUNCTUATION | SYMBOLS,
                                  .negated = true,
                                  RANGES(NEWLINES)};

static const set ascii_signs = {RANGES({'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'})};
static const set ascii_letters = {RANGES({'A', 'Z'}, {'a', 'z'})};
static const set wide_signs = {RANGES({'!', '/'}, {':', '~'}, {0xff01, 0xff0f}, {0xff1a, 0xff5e},
                                      {0x2018, 0x201f}, {0x3000, 0x3002})};
static const set ideographs_kana = {RANGES({0x4e00, 0x9fa5}, {0x3040, 0x30ff})};
static const set asian = {RANGES({0x4e00, 0x9fa5}, {0x800, 0x4e00}, {0xac00, 0xd7ff})};
/* deepseek-llm lists its letters: those with case in an older version of Unicode. */
static const set cased_letters = {
    RANGES({'A', 'Z'}, {'a', 'z'}, {0xb5, 0xb5}, {0xc0, 0xd6}, {0xd8, 0xf6}, {0xf8, 0x1ba},
           {0x1bc, 0x1bf}, {0x1c4, 0x293}, {0x295, 0x2af}, {0x370, 0x373}, {0x376, 0x377},
           {0x37b, 0x37d}, {0x37f, 0x37f}, {0x386, 0x386}, {0x388, 0x38a}, {0x38c, 0x38c},
           {0x38e, 0x3a1}, {0x3a3, 0x3f5}, {0x3f7, 0x481}, {0x48a, 0x52f}, {0x531, 0x556},
           {0x10a0, 0x10c5}, {0x13a0, 0x13f5}, {0x13f8, 0x13fd}, {0x1c90, 0x1cba}, {0x1cbd, 0x1cbf},
           {0x1d00, 0x1d2b}, {0x1d6b, 0x1d77}, {0x1d79, 0x1d9a}, {0x1e00, 0x1f15}, {0x1f18, 0x1f1d},
           {0x1f20, 0x1f45}, {0x1f48, 0x1f4d}, {0x1f50, 0x1f57}, {0x1f59, 0x1f59}, {0x1f5b, 0x1f5b},
           {0x1f5d, 0x1f5d}, {0x1f5f, 0x1f7d}, {0x1f80, 0x1fb4}, {0x1fb6, 0x1fbc}, {0x1fbe, 0x1fbe},
           {0x1fc2, 0x1fc4}, {0x1fc6, 0x1fcc}, {0x1fd0, 0x1fd3}, {0x1fd6, 0x1fdb}, {0x1fe0, 0x1fec},
           {0x1ff2, 0x1ff4}, {0x1ff6, 0x1ffc}, {0x2102, 0x2102}, {0x2107, 0x2107}, {0x210a, 0x2113},
           {0x2115, 0x2115}, {0x2119, 0x211d}, {0x2124, 0x2124}, {0x2126, 0x2126}, {0x2128, 0x2128},
           {0x212a, 0x212d}, {0x212f, 0x2134}, {0x2139, 0x2139}, {0x213c, 0x213f}, {0x2145, 0x2149},
           {0x214e, 0x214e}, {0x2183, 0x2184}, {0x2c00, 0x2c7b}, {0x2c7e, 0x2ce4}, {0x2ceb, 0x2cee},
           {0x2cf2, 0x2cf3}, {0xa640, 0xa66d}, {0xa680, 0xa69b}, {0xa722, 0xa76f}, {0xa771, 0xa787},
           {0xa78b, 0xa78e}, {0xab70, 0xabbf}, {0xfb00, 0xfb06}, {0xfb13, 0xfb17}, {0xff21, 0xff3a},
           {0xff41, 0xff5a}, {0x10400, 0x1044f}, {0x104b0, 0x104d3}, {0x104d8, 0x104fb},
           {0x10c80, 0x10cb2}, {0x10cc0, 0x10cf2}, {0x118a0, 0x118df}, {0x1e900, 0x1e943})};

typedef enum item_kind {
    ITEM_DONE,
    ITEM_OR,
    ITEM_RUN,         /* min to max characters of a set, as many as the rest allows */
    ITEM_ENDING,      /* 's 't 're 've 'm 'll 'd */
    ITEM_ENDING_I,    /* ... in any case */
    ITEM_MAYBE_END_I, /* ... or nothing */
    ITEM_NO_TEXT,     /* (?!\S) */
    ITEM_END          /* $ */
} item_kind;

typedef struct item {
    item_kind kind;
    const set *set;
    uint32_t min, max;
} item;

#define MANY UINT32_MAX
#define TIMES(s, a, b)                                                                             \
    {                                                                                              \
        ITEM_RUN, &(s), a, b                                                                       \
    }
#define MAYBE(s) TIMES(s, 0, 1)
#define ANY(s)   TIMES(s, 0, MANY)
#define SOME(s)  TIMES(s, 1, MANY)
#define ENDING                                                                                     \
    {                                                                                              \
        .kind = ITEM_ENDING                                                                        \
    }
#define ENDING_I                                                                                   \
    {                                                                                              \
        .kind = ITEM_ENDING_I                                                                      \
    }
#define MAYBE_ENDING_I                                                                             \
    {                                                                                              \
        .kind = ITEM_MAYBE_END_I                                                                   \
    }
#define NO_TEXT_AHEAD                                                                              \
    {                                                                                              \
        .kind = ITEM_NO_TEXT                                                                       \
    }
#define AT_END                                                                                     \
    {                                                                                              \
        .kind = ITEM_END                                                                           \
    }
#define OR                                                                                         \
    {                                                                                              \
        .kind = ITEM_OR                                                                            \
    }
#define DONE                                                                                       \
    {                                                                                              \
        .kind = ITEM_DONE                                                                          \
    }
#define SPACES          SOME(space), NO_TEXT_AHEAD, OR, SOME(space)
#define LINES_OR_SPACES ANY(space), SOME(newlines), OR, SPACES

/* clang-format off */

/* 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static const item gpt2[] = {
    ENDING, OR, MAYBE(blank), SOME(letters), OR, MAYBE(blank), SOME(numbers), OR,
    MAYBE(blank), SOME(others), OR, SPACES, DONE};
/* (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|
 * \s*[\r\n]+|\s+(?!\S)|\s+ */
static const item llama3[] = {
    ENDING_I, OR, MAYBE(lead), SOME(letters), OR, TIMES(numbers, 1, 3), OR,
    MAYBE(blank), SOME(others), ANY(newlines), OR, LINES_OR_SPACES, DONE};
/* ... with \p{N} */
static const item qwen2[] = {
    ENDING_I, OR, MAYBE(lead), SOME(letters), OR, TIMES(numbers, 1, 1), OR,
    MAYBE(blank), SOME(others), ANY(newlines), OR, LINES_OR_SPACES, DONE};
/* ... with [\p{L}\p{M}]+ and [^\s\p{L}\p{M}\p{N}]+ */
static const item qwen35[] = {
    ENDING_I, OR, MAYBE(lead), SOME(letters_marks), OR, TIMES(numbers, 1, 1), OR,
    MAYBE(blank), SOME(others_unmarked), ANY(newlines), OR, LINES_OR_SPACES, DONE};
/* ... with [^\s\p{L}\p{N}\r\n]+ */
static const item seed_coder[] = {
    ENDING_I, OR, MAYBE(lead), SOME(letters), OR, TIMES(numbers, 1, 1), OR,
    MAYBE(blank), SOME(others_in_line), OR, LINES_OR_SPACES, DONE};
/* [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|...)?|
 * [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|...)?|
 * \p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+ */
static const item gpt4o[] = {
    MAYBE(lead), ANY(upper), SOME(lower), MAYBE_ENDING_I, OR,
    MAYBE(lead), SOME(upper), ANY(lower), MAYBE_ENDING_I, OR,
    TIMES(numbers, 1, 3), OR, MAYBE(blank), SOME(others), ANY(newlines_slash), OR,
    LINES_OR_SPACES, DONE};
/* ... without the endings, and with \p{N} */
static const item tekken[] = {
    MAYBE(lead), ANY(upper), SOME(lower), OR, MAYBE(lead), SOME(upper), ANY(lower), OR,
    TIMES(numbers, 1, 1), OR, MAYBE(blank), SOME(others), ANY(newlines_slash), OR,
    LINES_OR_SPACES, DONE};

static const item lone_number[] = {TIMES(numbers, 1, 1), DONE};
static const item three_numbers[] = {TIMES(numbers, 1, 3), DONE};
static const item lone_newline[] = {TIMES(newlines, 1, 1), DONE};
static const item asian_run[] = {SOME(asian), DONE};
static const item ideograph_run[] = {SOME(ideographs_kana), DONE};
static const item cased_word[] = {MAYBE(space), SOME(cased_letters), DONE};
static const item wide_sign_run[] = {MAYBE(space), SOME(wide_signs), DONE};
static const item spaces_at_end[] = {SOME(space), AT_END, DONE};
static const item word[] = {MAYBE(space), SOME(letters), DONE};
static const item punctuation_run[] = {MAYBE(space), SOME(punctuation), DONE};
/* [ASCII signs][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|
 * \s*[\r\n]+|\s+(?!\S)|\s+ */
static const item deepseek3[] = {
    TIMES(ascii_signs, 1, 1), SOME(ascii_letters), OR, MAYBE(lead_unsigned), SOME(letters_marks),
    OR, MAYBE(blank), SOME(signs), ANY(newlines), OR, LINES_OR_SPACES, DONE};

/* clang-format on */

/* ---- Flavours ---- */

struct presplit_flavour {
    const char *name;
    const item *stages[PRESPLIT_STAGES];
    bool whole_pieces; /* if a piece is a token, it is not merged from its bytes */
    bool adds_bos, composes;
};

#define ONE(e)      .stages = {e}
#define DIGITS_GPT2 .stages = {lone_number, gpt2}
#define LLAMA3      ONE(llama3), .whole_pieces = true, .adds_bos = true

static const presplit_flavour flavours[] = {
    {"default", ONE(gpt2)},
    {"gpt-2", ONE(gpt2)},
    {"phi-2", ONE(gpt2)},
    {"mellum", ONE(gpt2)},
    {"trillion", ONE(gpt2)},
    {"a.x-4.0", ONE(gpt2)},
    {"granite-docling", ONE(gpt2)},
    {"olmo", ONE(gpt2), .composes = true},
    {"llama-bpe", LLAMA3},
    {"llama3", LLAMA3},
    {"llama-v3", LLAMA3},
    {"falcon3", LLAMA3},
    {"pixtral", LLAMA3},
    {"midm-2.0", LLAMA3},
    {"dbrx", ONE(llama3)},
    {"smaug-bpe", ONE(llama3)},
    {"qwen2", ONE(qwen2), .composes = true},
    {"deepseek-r1-qwen", ONE(qwen2), .composes = true},
    {"megrez", ONE(qwen2), .composes = true},
    {"stablelm2", ONE(qwen2), .composes = true},
    {"qwen35", ONE(qwen35), .composes = true},
    {"seed-coder", ONE(seed_coder)},
    {"smollm", DIGITS_GPT2},
    {"refact", DIGITS_GPT2},
    {"starcoder", DIGITS_GPT2},
    {"minerva-7b", DIGITS_GPT2},
    {"command-r", DIGITS_GPT2, .composes = true},
    {"gpt-4o", ONE(gpt4o)},
    {"llama4", ONE(gpt4o)},
    {"kanana2", ONE(gpt4o)},
    {"tekken", ONE(tekken), .whole_pieces = true, .adds_bos = true},
    {"deepseek-llm",
     .stages = {lone_newline, cased_word, wide_sign_run, spaces_at_end, asian_run, lone_number}},
    {"deepseek-coder", .stages = {lone_newline, word, punctuation_run, asian_run, lone_number}},
    {"deepseek-v3", .stages = {three_numbers, ideograph_run, deepseek3}},
};

const presplit_flavour *presplit_find(gguf_string name)
{
    for (size_t i = 0; i < ARRAY_COUNT(flavours); i++)
        if (gguf_string_is(name, flavours[i].name))
            return &flavours[i];
    return NULL;
}

void presplit_names(text *out)
{
    for (size_t i = 0; i < ARRAY_COUNT(flavours); i++)
        text_append(out, "%s%s", i ? ", " : "", flavours[i].name);
}

bool presplit_adds_bos(const presplit_flavour *flavour)
{
    return flavour->adds_bos;
}

bool presplit_keeps_whole(const presplit_flavour *flavour)
{
    return flavour->whole_pieces;
}

bool presplit_composes(const presplit_flavour *flavour)
{
    return flavour->composes;
}

/* ---- Matching ---- */

#define NO_MATCH SIZE_MAX

typedef struct scanner {
    const uint8_t *bytes;
    size_t length;
} scanner;

static bool contains(const set *s, uint32_t point)
{
    if (point == UTF8_INVALID)
        return s->negated;
    if ((s->space && unicode_is_space(point)) ||
        (s->categories && s->categories >> unicode_category_of(point) & 1))
        return !s->negated;
    for (uint32_t i = 0; i < s->range_count; i++)
        if (point >= s->ranges[i].first && point <= s->ranges[i].last)
            return !s->negated;
    return s->negated;
}

static bool in_set(const scanner *s, const set *characters, size_t at, size_t *size)
{
    *size = 0;
    return at < s->length && contains(characters, utf8_decode(s->bytes + at, s->length - at, size));
}

static size_t run_end(const scanner *s, const item *run, size_t at, uint32_t *count)
{
    size_t size;
    for (*count = 0; *count < run->max && in_set(s, run->set, at, &size); ++*count)
        at += size;
    return at;
}

/* The start of the character that ends at `at`. */
static size_t step_back(const scanner *s, size_t at)
{
    for (size_t size = 2, found; size <= 4 && size <= at; size++)
        if (utf8_decode(s->bytes + at - size, size, &found) != UTF8_INVALID && found == size)
            return at - size;
    return at - 1;
}

/* The end of an apostrophe and one of the endings; `at` if there is none. */
static size_t ending_end(const scanner *s, size_t at, bool any_case)
{
    static const char *const endings[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    if (at >= s->length || s->bytes[at] != '\'')
        return at;
    const uint8_t *word = s->bytes + at + 1;
    size_t left = s->length - at - 1;
    for (size_t i = 0; i < ARRAY_COUNT(endings); i++) {
        size_t length = strlen(endings[i]), j = 0;
        while (j < length && j < left &&
               (word[j] | (any_case && word[j] < 0x80 ? 0x20 : 0)) == (uint8_t)endings[i][j])
            j++;
        if (j == length)
            return at + 1 + length;
    }
    /* The long s, U+017F, is another case of s. */
    return any_case && left >= 2 && word[0] == 0xc5 && word[1] == 0xbf ? at + 3 : at;
}

static size_t match_run(const scanner *s, const item *run, size_t at);

/* The end of the text that matches the items from `i` to the end of their alternative. */
static size_t match_items(const scanner *s, const item *i, size_t at)
{
    for (;; i++) {
        size_t end, size;
        switch (i->kind) {
        case ITEM_DONE:
        case ITEM_OR:
            return at;
        case ITEM_RUN:
            return match_run(s, i, at);
        case ITEM_ENDING:
        case ITEM_ENDING_I:
        case ITEM_MAYBE_END_I:
            end = ending_end(s, at, i->kind != ITEM_ENDING);
            if (end == at && i->kind != ITEM_MAYBE_END_I)
                return NO_MATCH;
            at = end;
            break;
        case ITEM_NO_TEXT:
            if (at < s->length && !in_set(s, &space, at, &size))
                return NO_MATCH;
            break;
        case ITEM_END:
            if (at < s->length)
                return NO_MATCH;
            break;
        }
    }
}

/* Takes as many characters as possible so that the items after the run still match. The recursion
 * is as deep as an alternative is long. */
static size_t match_run(const scanner *s, const item *run, size_t at)
{
    uint32_t count;
    size_t end = run_end(s, run, at, &count);
    for (; count >= run->min; count--, end = step_back(s, end)) {
        size_t matched = match_items(s, run + 1, end);
        if (matched != NO_MATCH)
            return matched;
        if (count == 0)
            break;
    }
    return NO_MATCH;
}

/* The end of the first alternative that matches at least one character here. */
static size_t match_at(const scanner *s, const item *expression, size_t at)
{
    for (const item *i = expression;; i++) {
        size_t end = match_items(s, i, at);
        if (end != NO_MATCH && end > at)
            return end;
        while (i->kind != ITEM_OR && i->kind != ITEM_DONE)
            i++;
        if (i->kind == ITEM_DONE)
            return NO_MATCH;
    }
}

/* The end of the stage's piece at `start`: of a match, or of the text before the next match. If a
 * run of spaces does not reach the end from `start`, it cannot do so from a later start. */
static size_t stage_end(const scanner *s, const item *stage, size_t start)
{
    size_t end = match_at(s, stage, start), size;
    uint32_t count;
    if (end != NO_MATCH)
        return end;
    for (size_t at = start; at < s->length; at += MAX(size, 1)) {
        if (at > start && match_at(s, stage, at) != NO_MATCH)
            return at;
        size = stage == spaces_at_end ? run_end(s, stage, at, &count) - at : 0;
        if (size == 0)
            utf8_decode(s->bytes + at, s->length - at, &size);
    }
    return s->length;
}

size_t presplit_step(presplit *p, size_t start)
{
    scanner s = {(const uint8_t *)p->bytes, p->length};
    for (int i = 0; i < PRESPLIT_STAGES && p->flavour->stages[i] != NULL; i++) {
        if (p->ends[i] <= start)
            p->ends[i] = stage_end(&s, p->flavour->stages[i], start);
        s.length = p->ends[i];
    }
    return s.length;
}

size_t presplit_next(const presplit_flavour *flavour, const char *bytes, size_t start,
                     size_t length)
{
    presplit p = {.flavour = flavour, .bytes = bytes, .length = length};
    return presplit_step(&p, start);
}
