/*
 * Cutting text into pieces that BPE never merges across. Each flavour is a published regular
 * expression; here it is the list of its alternatives, tried in order, as small matchers over code
 * points:
 *
 *   gpt-2      's|'t|'re|'ve|'m|'ll|'d | ?L+ | ?N+ | ?[^\s L N]+ | \s+(?!\S) | \s+
 *   llama-bpe  the contractions in any case | [^\r\n L N]?L+ | N{1,3} | ?[^\s L N]+[\r\n]* |
 *              \s*[\r\n]+ | \s+(?!\S) | \s+
 *   qwen2      as llama-bpe, but one N at a time
 *   smollm     each N by itself first, then gpt2 on what is between them; so do refact, starcoder
 *              and command-r
 *
 * A byte that is not UTF-8 is a character of its own, of no class. Every position matches the last
 * alternative at least, so a piece is never empty.
 */
#include "model/tokenizer_internal.h"
#include "model/unicode.h"
#include "model/utf8.h"

#include <string.h>

struct presplit_flavour {
    const char *name;
    bool modern;          /* the llama-bpe forms of all alternatives */
    uint32_t digit_limit; /* modern: numbers in one piece */
    bool add_bos;
    bool lone_digits; /* each number by itself; the text before one ends there */
};

static const presplit_flavour flavours[] = {
    {"default", false, 0, false},
    {"gpt-2", false, 0, false},
    {"llama-bpe", true, 3, true},
    {"qwen2", true, 1, false},
    {.name = "smollm", .lone_digits = true},
    {.name = "refact", .lone_digits = true},
    {.name = "starcoder", .lone_digits = true},
    {.name = "command-r", .lone_digits = true},
};

const presplit_flavour *presplit_find(gguf_string name)
{
    for (size_t i = 0; i < ARRAY_COUNT(flavours); i++)
        if (gguf_string_is(name, flavours[i].name))
            return &flavours[i];
    return NULL;
}

bool presplit_adds_bos(const presplit_flavour *flavour)
{
    return flavour->add_bos;
}

enum character_class { CLASS_END, CLASS_LETTER, CLASS_NUMBER, CLASS_SPACE, CLASS_OTHER };

typedef struct scanner {
    const uint8_t *bytes;
    size_t length;
    bool ends_at_number;
} scanner;

static enum character_class class_at(const scanner *s, size_t at, size_t *size)
{
    *size = 0;
    if (at >= s->length)
        return CLASS_END;
    uint32_t point = utf8_decode(s->bytes + at, s->length - at, size);
    if (point == UTF8_INVALID)
        return CLASS_OTHER;
    if (unicode_is_letter(point))
        return CLASS_LETTER;
    if (unicode_is_number(point))
        return s->ends_at_number ? CLASS_END : CLASS_NUMBER;
    return unicode_is_space(point) ? CLASS_SPACE : CLASS_OTHER;
}

static bool is_newline(const scanner *s, size_t at)
{
    return at < s->length && (s->bytes[at] == '\r' || s->bytes[at] == '\n');
}

/* The end of the run of one class, of `limit` characters at most (0: any number). */
static size_t run_end(const scanner *s, size_t at, enum character_class class, uint32_t limit)
{
    size_t size;
    for (uint32_t i = 0; (limit == 0 || i < limit) && class_at(s, at, &size) == class; i++)
        at += size;
    return at;
}

static size_t after_space(const scanner *s, size_t at)
{
    return at < s->length && s->bytes[at] == ' ' ? at + 1 : at;
}

/* Every matcher returns the end of its match, or `at` when it does not match. */
static size_t match_contraction(const scanner *s, const presplit_flavour *flavour, size_t at)
{
    static const char *const endings[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    if (s->bytes[at] != '\'')
        return at;
    for (size_t i = 0; i < ARRAY_COUNT(endings); i++) {
        size_t length = strlen(endings[i]), j = 0;
        if (s->length - at - 1 < length)
            continue;
        for (; j < length; j++) {
            uint8_t byte = s->bytes[at + 1 + j];
            if (flavour->modern && byte >= 'A' && byte <= 'Z')
                byte = (uint8_t)(byte - 'A' + 'a');
            if (byte != (uint8_t)endings[i][j])
                break;
        }
        if (j == length)
            return at + 1 + length;
    }
    return at;
}

static size_t match_letters(const scanner *s, const presplit_flavour *flavour, size_t at)
{
    size_t size, start = after_space(s, at);
    if (flavour->modern) {
        enum character_class class = class_at(s, at, &size);
        bool lead = class == CLASS_OTHER || (class == CLASS_SPACE && !is_newline(s, at));
        start = lead ? at + size : at;
    }
    size_t end = run_end(s, start, CLASS_LETTER, 0);
    return end > start ? end : at;
}

static size_t match_numbers(const scanner *s, const presplit_flavour *flavour, size_t at)
{
    size_t start = flavour->modern ? at : after_space(s, at);
    size_t end = run_end(s, start, CLASS_NUMBER, flavour->digit_limit);
    return end > start ? end : at;
}

static size_t match_others(const scanner *s, const presplit_flavour *flavour, size_t at)
{
    size_t start = after_space(s, at);
    size_t end = run_end(s, start, CLASS_OTHER, 0);
    if (end == start)
        return at;
    while (flavour->modern && is_newline(s, end))
        end++;
    return end;
}

/* A run of white space through its last newline (modern), else without its last character if text
 * follows. */
static size_t match_space(const scanner *s, const presplit_flavour *flavour, size_t at)
{
    size_t end = at, last = at, newline = at, size;
    while (class_at(s, end, &size) == CLASS_SPACE) {
        last = end;
        end += size;
        if (is_newline(s, last))
            newline = end;
    }
    if (flavour->modern && newline > at)
        return newline;
    return class_at(s, end, &size) != CLASS_END && last > at ? last : end;
}

size_t presplit_next(const presplit_flavour *flavour, const char *bytes, size_t start,
                     size_t length)
{
    static size_t (*const matchers[])(const scanner *, const presplit_flavour *,
                                      size_t) = {match_contraction, match_letters, match_numbers,
                                                 match_others, match_space};
    scanner s = {(const uint8_t *)bytes, length, false};
    size_t size;
    if (flavour->lone_digits && class_at(&s, start, &size) == CLASS_NUMBER)
        return start + size;
    s.ends_at_number = flavour->lone_digits;
    for (size_t i = 0; i < ARRAY_COUNT(matchers); i++) {
        size_t end = matchers[i](&s, flavour, start);
        if (end > start)
            return end;
    }
    return start + 1;
}
