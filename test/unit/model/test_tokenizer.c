/*
 * Tokenizers: small vocabularies made by hand, pieces of the pre-split, golden ids of the bundled
 * models, allocation failures and mutations.
 */
#include "cli/file.h"
#include "unit/model/gguf_builder.h"
#include "model/language/tokenizer_internal.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

typedef struct vocabulary {
    const char *model, *flavour;
    const char *tokens[32];
    float scores[32];
    int kinds[32];
    const char *merges[16];
    int space_prefix; /* -1: the key is absent */
    const char *architecture;
    const char *key; /* one more key, an id; NULL: none */
    uint32_t id;
} vocabulary;

static const vocabulary spm = {
    .model = "llama",
    .tokens = {"<unk>", "<s>", "</s>", "<0x0A>", "<0xC3>", "<0xA9>", "\xe2\x96\x81", "a", "b", "ab",
               "\xe2\x96\x81"
               "a",
               "aa",
               "\xe2\x96\x81"
               "ab",
               "<0x20>"},
    .scores = {0, 0, 0, 0, 0, 0, -1, -1, -1, -5, -4, -6, -3, 0},
    .kinds = {2, 3, 3, 6, 6, 6, 1, 1, 1, 1, 1, 1, 1, 6},
    .space_prefix = -1,
};

static const vocabulary bpe = {
    .model = "gpt2",
    .flavour = "gpt-2",
    .tokens = {"h", "e", "l", "o", "\xc4\xa0", "he", "ll", "hell", "hello", "\xc4\xa0h", "<|end|>",
               "<|end|>x", "1", "\xc3\x83", "\xc2\xa9", "\xc4\x8a"},
    .kinds = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 4, 1, 1, 1, 1},
    .merges = {"h e", "l l", "he ll", "hell o", "\xc4\xa0 h"},
    .space_prefix = -1,
};

static uint32_t count_strings(const char *const *strings, uint32_t limit)
{
    uint32_t n = 0;
    while (n < limit && strings[n] != NULL)
        n++;
    return n;
}

static void build(builder *b, const vocabulary *v)
{
    uint32_t count = count_strings(v->tokens, 32), merges = count_strings(v->merges, 16);
    put_header(b, 3, 0, 8 + (v->space_prefix >= 0) + (v->architecture != NULL) + (v->key != NULL));
    if (v->architecture != NULL)
        put_text(b, "general.architecture", v->architecture);
    if (v->key != NULL)
        put_u32(b, v->key, v->id);
    put_text(b, "tokenizer.ggml.model", v->model);
    put_u32(b, "tokenizer.ggml.bos_token_id", 1);
    put_u32(b, "tokenizer.ggml.eos_token_id", 2);
    put_array(b, "tokenizer.ggml.tokens", GGUF_STRING, count);
    for (uint32_t i = 0; i < count; i++)
        put_string(b, v->tokens[i]);
    put_array(b, "tokenizer.ggml.scores", GGUF_F32, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &v->scores[i], 4);
        put(b, bits, 4);
    }
    put_array(b, "tokenizer.ggml.token_type", GGUF_I32, count);
    for (uint32_t i = 0; i < count; i++)
        put(b, (uint32_t)v->kinds[i], 4);
    put_array(b, "tokenizer.ggml.merges", GGUF_STRING, merges);
    for (uint32_t i = 0; i < merges; i++)
        put_string(b, v->merges[i]);
    if (v->flavour != NULL)
        put_text(b, "tokenizer.ggml.pre", v->flavour);
    else
        put_u32(b, "tokenizer.ggml.unknown_token_id", 0);
    if (v->space_prefix >= 0)
        put_bool(b, "tokenizer.ggml.add_space_prefix", v->space_prefix != 0);
}

static rlxvk_status create(const vocabulary *v, tokenizer **out)
{
    builder b;
    gguf_file *file;
    *out = NULL;
    build(&b, v);
    rlxvk_status status = gguf_result(gguf_parse(b.bytes, b.length, NULL, &file));
    if (status == RLXVK_OK)
        status = tokenizer_create(file, out);
    gguf_close(file);
    return status;
}

/* `expected` ends with RLXVK_NO_TOKEN. Decoding must give the text back. */
static void check(const tokenizer *t, const char *bytes, const uint32_t *expected)
{
    token_list ids = {0};
    token_text decoded = {0};
    size_t count = 0, length = strlen(bytes);
    while (expected[count] != RLXVK_NO_TOKEN)
        count++;
    assert_int_equal(tokenizer_encode(t, bytes, length, false, &ids), RLXVK_OK);
    assert_int_equal(ids.count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(ids.items[i], expected[i]);
    assert_int_equal(tokenizer_decode(t, ids.items, ids.count, &decoded), RLXVK_OK);
    assert_int_equal(decoded.count, length);
    if (length > 0)
        assert_memory_equal(decoded.items, bytes, length);
    VECTOR_FREE(&ids);
    VECTOR_FREE(&decoded);
}
#define IDS(...) ((const uint32_t[]){__VA_ARGS__, RLXVK_NO_TOKEN})

static void test_spm(void **state)
{
    tokenizer *t;
    token_list ids = {0};
    token_text nothing = {0};
    (void)state;
    assert_int_equal(create(&spm, &t), RLXVK_OK);
    assert_true(tokenizer_adds_bos(t) && tokenizer_bos(t) == 1 && tokenizer_eos(t) == 2);
    assert_true(tokenizer_is_end(t, 2) && !tokenizer_is_end(t, 1));
    check(t, "", IDS(RLXVK_NO_TOKEN));
    /* Of the pairs _a (-4) and ab (-5), _a has the better score and joins first. Then _ab (-3) can
     * be made. */
    check(t, "ab", IDS(12));
    check(t, "aab", IDS(10, 9));
    /* First _a joins. Of the two equal pairs aa that remain, the left one joins. */
    check(t, "aaaa", IDS(10, 11, 7));
    check(t, "a\n\xc3\xa9", IDS(10, 3, 4, 5));
    check(t, "a a", IDS(10, 10));
    assert_int_equal(tokenizer_encode(t, "z", 1, true, &ids), RLXVK_OK);
    assert_true(ids.count == 3 && ids.items[0] == 1 && ids.items[1] == 6 && ids.items[2] == 0);
    VECTOR_FREE(&ids);
    /* The text is only the space that encoding adds, so decoding has nothing to copy. */
    assert_int_equal(tokenizer_decode(t, IDS(6), 1, &nothing), RLXVK_OK);
    assert_true(nothing.count == 0 && nothing.items == NULL);
    assert_int_equal(tokenizer_token_bytes(t, 1).length, 0);
    assert_int_equal(tokenizer_token_bytes(t, 1000).length, 0);
    assert_true(gguf_string_is(tokenizer_token_bytes(t, 12), " ab"));
    tokenizer_destroy(t);

    vocabulary plain = spm;
    plain.space_prefix = 0;
    plain.tokens[6] = "x"; /* no token for a space: it becomes bytes */
    assert_int_equal(create(&plain, &t), RLXVK_OK);
    check(t, "b b", IDS(8, 13, 8));
    check(t, " ab", IDS(12));
    tokenizer_destroy(t);
}

static void test_bpe(void **state)
{
    tokenizer *t;
    token_list ids = {0};
    (void)state;
    assert_int_equal(create(&bpe, &t), RLXVK_OK);
    assert_false(tokenizer_adds_bos(t));
    check(t, "hello", IDS(8));
    /* "h e" ranks before "_ h", so the space stays a token of its own. */
    check(t, "hello hello", IDS(8, 4, 8));
    check(t, " h", IDS(9));
    check(t, "h1\n", IDS(0, 12, 15));
    check(t, "\xc3\xa9", IDS(13, 14));
    check(t, "he<|end|>xh", IDS(5, 11, 0));
    assert_int_equal(tokenizer_encode(t, "h<|end|>h", 9, false, &ids), RLXVK_OK);
    assert_true(ids.count == 3 && ids.items[1] == 10);
    /* There is neither a token for z nor an unknown token. The call fails and the list stays as it
     * was. */
    assert_int_equal(tokenizer_encode(t, "hz", 2, false, &ids), RLXVK_E_RANGE);
    assert_int_equal(ids.count, 3);
    VECTOR_FREE(&ids);
    tokenizer_destroy(t);
}

/* Compares the pieces of the pre-split, which `expected` separates by |. */
static void check_pieces(const char *flavour, const char *expected)
{
    char bytes[256], joined[512] = "";
    size_t length = 0, used = 0;
    const presplit_flavour *f = presplit_find((gguf_string){flavour, strlen(flavour)});
    for (const char *c = expected; *c != '\0'; c++)
        if (*c != '|')
            bytes[length++] = *c;
    for (size_t i = 0, end; i < length; i = end) {
        end = presplit_next(f, bytes, i, length);
        assert_true(end > i && end <= length);
        if (i > 0)
            joined[used++] = '|';
        memcpy(joined + used, bytes + i, end - i);
        used += end - i;
    }
    joined[used] = '\0';
    assert_string_equal(joined, expected);
}

static void test_presplit(void **state)
{
    (void)state;
    check_pieces("gpt-2", "Hello| world|'s| 1234|!!|  | x|\t|\xc3\xa9t\xc3\xa9|'|S|  ");
    check_pieces("gpt-2", "a|\n|\n|b| ?|1\xd9\xa3");
    check_pieces("default", "I|'ll| go|...|now");
    check_pieces("llama-bpe", "Hello| world|'S| |123|4|!!\n\n|  | x|\tabc|(foo|)| =\n\n|   | y");
    check_pieces("llama-bpe", "a|  \n \n|b\xe4\xb8\xad\xe6\x96\x87|\xe3\x80\x82|12|\xff\xfe");
    check_pieces("qwen2", "x|1|2|3| |4|'re|\n  \n|   | end");
    check_pieces("smollm", "Hello| world|'s| |1|2|3|4|!!|  | x|  |5| a|7|'|S|  ");
    check_pieces("refact", "v|1|.|2|\n\n|3| =| |\xd9\xa3|\xd9\xa3");
    check_pieces("starcoder", "I|'ll|  | go|1| go");
    assert_null(presplit_find((gguf_string){"gpt-3", 5}));
}

/* Flavours of newer vocabularies, and the character classes that they tell apart. */
static void test_presplit_newer(void **state)
{
    (void)state;
    check_pieces("gpt-4o", "Hello| World's| XMLHttp|Request|I'LL| i|Phone|'");
    check_pieces("gpt-4o", "123|4| a|/b|//\n/\n|c|\n\n|  | d|\xc7\x85x");
    check_pieces("gpt-4o", "e\xcc\x81t\xc3\xa9|\xc3\x89T\xe4\xb8\xad\xe6\x96\x87x'S| '|t");
    check_pieces("tekken", "Hello|'s| |1|2|3|HTMLParser|!!/\n|x");
    check_pieces("qwen35", "e\xcc\x81t|1|2| \xcc\x81|\n|.\r\n\n|  | x");
    check_pieces("qwen2", "e|\xcc\x81t|1|2| \xcc\x81\n|.\r\n\n|  | x");
    check_pieces("llama-bpe", "it|'\xc5\xbf|x| I|'\xe2\x84\xaa|1\xc2\xbd\xe2\x85\xa7|\xd9\xa3");
    check_pieces("seed-coder", "a|!!|\n|b|1|2");
    check_pieces("command-r", "a| |1|2|'s| b");
    check_pieces("deepseek-v3", "123|4|a|.b|!!\n|\xe4\xb8\xad\xe3\x82\xab|x|\n| y");
    check_pieces("deepseek-coder", "a| b|1|2|\n|\xe4\xb8\xad| +|!?");
    check_pieces("deepseek-llm", "a| b|1|2|\n|\xe4\xb8\xad| !|\xce\xb1|  ");
    /* \s is White_Space: it includes U+0085 and U+3000, but not U+FEFF and U+200B. */
    check_pieces("gpt-2", "a|\xc2\x85|\xc2\x85|b|\xe3\x80\x80|c|\xef\xbb\xbf\xe2\x80\x8b|d");
    /* Letters of Unicode 15.1, 16 and 17. */
    check_pieces("gpt-2", "a\xf0\xae\xaf\xb0\xf0\x90\xb5\x90\xf0\xb2\x8e\xb0|.");
}

/* Each stage goes on at the end of the last piece, however long the pieces of the outer stages
 * are. */
static void test_presplit_long(void **state)
{
    enum { LENGTH = 300000 };
    static const char *const names[] = {"smollm", "deepseek-llm", "deepseek-v3", "gpt-4o"};
    static const char fills[] = " a\nA1!";
    char *bytes = malloc(LENGTH);
    (void)state;
    assert_non_null(bytes);
    for (size_t n = 0; n < ARRAY_COUNT(names) * (sizeof fills - 1); n++) {
        const char *name = names[n % ARRAY_COUNT(names)];
        presplit p = {.flavour = presplit_find((gguf_string){name, strlen(name)}),
                      .bytes = bytes,
                      .length = LENGTH};
        memset(bytes, fills[n / ARRAY_COUNT(names)], LENGTH);
        bytes[LENGTH / 2] = 'x';
        for (size_t i = 0, end; i < LENGTH; i = end)
            assert_true((end = presplit_step(&p, i)) > i && end <= LENGTH);
    }
    free(bytes);
}

/* If the vocabulary says so, a piece that is a token becomes that token, even if no merges lead to
 * it. */
static void test_whole_pieces(void **state)
{
    static const char *const whole[] = {"llama-bpe", "llama3", "tekken"},
                             *const merged[] = {"gpt-2", "default", "qwen2", "dbrx", "gpt-4o"};
    vocabulary v = {.model = "gpt2",
                    .tokens = {"a", "b", "c", "ab", "bc", "abc", "\xc4\xa0"},
                    .kinds = {1, 1, 1, 1, 1, 1, 1},
                    .merges = {"a b", "b c", "a bc"},
                    .space_prefix = -1};
    tokenizer *t;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(whole) + ARRAY_COUNT(merged); i++) {
        bool keeps = i < ARRAY_COUNT(whole);
        v.flavour = keeps ? whole[i] : merged[i - ARRAY_COUNT(whole)];
        assert_int_equal(create(&v, &t), RLXVK_OK);
        check(t, "abc", keeps ? IDS(5) : IDS(3, 2));
        check(t, "abc abc", keeps ? IDS(5, 6, 3, 2) : IDS(3, 2, 6, 3, 2));
        tokenizer_destroy(t);
    }
    v.kinds[5] = 3; /* a control token: never a piece of text, only itself */
    v.flavour = "llama-bpe";
    assert_int_equal(create(&v, &t), RLXVK_OK);
    token_list ids = {0};
    assert_int_equal(tokenizer_encode(t, &"xabc"[1], 3, false, &ids), RLXVK_OK);
    assert_true(ids.count == 1 && ids.items[0] == 5);
    VECTOR_FREE(&ids);
    tokenizer_destroy(t);
}

static void check_ids(const tokenizer *t, const char *bytes, const uint32_t *expected)
{
    token_list ids = {0};
    size_t count = 0;
    while (expected[count] != RLXVK_NO_TOKEN)
        count++;
    assert_int_equal(tokenizer_encode(t, bytes, strlen(bytes), false, &ids), RLXVK_OK);
    assert_int_equal(ids.count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(ids.items[i], expected[i]);
    VECTOR_FREE(&ids);
}

/* Control, user-defined and unknown tokens in a text, for both kinds of vocabularies. The leftmost
 * one wins; if several begin there, the longest. */
static void test_specials(void **state)
{
    static const struct {
        const char *bytes;
        uint32_t ids[8];
    } cases[] = {{"Hi", {13, RLXVK_NO_TOKEN}},
                 {"<|u|>Hi", {3, 13, RLXVK_NO_TOKEN}},
                 {"<h1>Hi", {4, 13, RLXVK_NO_TOKEN}},
                 {"Hi</s>", {13, 2, RLXVK_NO_TOKEN}},
                 {"<|u|>x|", {14, 6, RLXVK_NO_TOKEN}},
                 {"<h1<h1><|u|", {5, 11, 12, 4, 5, 6, 9, 6}},
                 {"<unk><s>", {0, 1, RLXVK_NO_TOKEN}},
                 {"Hi<|u|>|u|><|u|>x", {13, 3, 15, 14, RLXVK_NO_TOKEN}}};
    vocabulary v = {.model = "llama",
                    .tokens = {"<unk>", "<s>", "</s>", "<|u|>", "<h1>", "<", "|", "H", "i", "u",
                               ">", "h", "1", "Hi", "<|u|>x", "|u|>"},
                    .scores = {0, 0, 0, 0, 0, -1, -2, -3, -4, -5, -6, -7, -8, -20},
                    .kinds = {2, 3, 3, 3, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4, 3},
                    .merges = {"H i"},
                    .space_prefix = 0};
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        tokenizer *t;
        v.model = kind ? "gpt2" : "llama";
        v.flavour = kind ? "gpt-2" : NULL;
        assert_int_equal(create(&v, &t), RLXVK_OK);
        for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
            uint32_t expected[9];
            memcpy(expected, cases[i].ids, sizeof cases[i].ids);
            expected[8] = RLXVK_NO_TOKEN;
            check_ids(t, cases[i].bytes, expected);
        }
        tokenizer_destroy(t);
    }
}

/* User-defined runs of spaces, written as in files (spaces) and as in SentencePiece (marks). Joined
 * text never becomes a control or byte token. */
static void test_spaces(void **state)
{
    vocabulary v = {.model = "llama",
                    .tokens = {"<unk>", "<s>", "\xe2\x96\x81", "a",
                               "\xe2\x96\x81"
                               "a",
                               "  ", "   ", "b", "ab", "<0x61>"},
                    .scores = {0, 0, -9, -9, -1, -1000, -1000, -9, -1, 0},
                    .kinds = {2, 3, 1, 1, 1, 4, 4, 1, 3, 6},
                    .space_prefix = 0};
    tokenizer *t;
    (void)state;
    assert_int_equal(create(&v, &t), RLXVK_OK);
    check(t, "a  a", IDS(3, 5, 3));
    check(t, "a a", IDS(3, 4));
    check(t, "a     a", IDS(3, 6, 5, 3));
    check_ids(t,
              "a\xe2\x96\x81\xe2\x96\x81\xe2\x96\x81"
              "b",
              IDS(3, 6, 7));
    check_ids(t, "a \xe2\x96\x81 b", IDS(3, 6, 7));
    check_ids(t, "ab", IDS(8));
    check_ids(t, "a<s>b", IDS(3, 1, 7));
    tokenizer_destroy(t);
    v.tokens[5] = "\xe2\x96\x81\xe2\x96\x81";
    v.space_prefix = 1; /* before each stretch of text */
    assert_int_equal(create(&v, &t), RLXVK_OK);
    check_ids(t, "a<s>a  b<s><s>", IDS(4, 1, 4, 5, 7, 1, 1));
    check_ids(t, "<s>", IDS(1));
    tokenizer_destroy(t);
}

/* Phi 3 drops white space after its special tokens, except after three of them. */
static void test_stripped_space(void **state)
{
    vocabulary v = {.model = "llama",
                    .tokens = {"<unk>", "<s>", "</s>", "<|user|>", "<|endoftext|>", "a",
                               "\xe2\x96\x81", "\n"},
                    .kinds = {2, 3, 3, 3, 3, 1, 1, 1},
                    .space_prefix = 0};
    tokenizer *t;
    (void)state;
    assert_int_equal(create(&v, &t), RLXVK_OK);
    check_ids(t, "<|user|>\n a", IDS(3, 7, 6, 5));
    tokenizer_destroy(t);
    v.architecture = "phi3";
    assert_int_equal(create(&v, &t), RLXVK_OK);
    check_ids(t, "<|user|>\n\xe3\x80\x80 a\n</s> <|user|>", IDS(3, 5, 7, 2, 3));
    check_ids(t, "<s>\n<|endoftext|>\na", IDS(1, 7, 4, 7, 5));
    tokenizer_destroy(t);
}

/* A token ends the text if a key or its name says so, whatever its kind. Such a name also makes it
 * a control token. */
static void test_ends(void **state)
{
    static const char *const keys[] = {"tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id",
                                       "tokenizer.ggml.fim_pad_token_id",
                                       "tokenizer.ggml.fim_rep_token_id",
                                       "tokenizer.ggml.fim_sep_token_id",
                                       "tokenizer.ggml.padding_token_id"};
    vocabulary v = {.model = "gpt2",
                    .flavour = "llama-bpe",
                    .tokens = {"a", "<|begin_of_text|>", "b", "<|eot_id|>", "<|eom_id|>",
                               "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>",
                               "<|end_of_text|>", "<eos>", "<|im_start|>", "<|user|>", "</s>",
                               "<|end", "c"},
                    .kinds = {1, 3, 1, 3, 4, 1, 3, 3, 3, 3, 3, 3, 3, 3, 1, 1},
                    .space_prefix = -1};
    tokenizer *t;
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(keys); k++) {
        v.key = keys[k];
        v.id = 15;
        assert_int_equal(create(&v, &t), RLXVK_OK);
        for (uint32_t i = 0; i < 17; i++) {
            bool marked = i == 2 || (i == 15 && k < 5); /* 2: eos */
            assert_int_equal(tokenizer_is_end(t, i), marked || (i >= 3 && i <= 10));
        }
        assert_false(tokenizer_is_end(t, RLXVK_NO_TOKEN));
        check_ids(t, "a<|im_end|>a", IDS(0, 5, 0));
        assert_int_equal(tokenizer_token_bytes(t, 5).length, 0);
        tokenizer_destroy(t);
        v.id = 16;
        assert_int_equal(create(&v, &t), k < 5 ? RLXVK_E_RANGE : RLXVK_OK);
        tokenizer_destroy(t);
    }
}

static void test_composed(void **state)
{
    static const char *const composing[] = {"qwen2", "qwen35", "deepseek-r1-qwen", "command-r",
                                            "olmo"},
                             *const plain[] = {"gpt-2", "llama-bpe", "gpt-4o", "tekken", "smollm"};
    vocabulary v = {.model = "gpt2",
                    .tokens = {"e", "\xc3\x8c", "\xc4\xa3", "\xc3\x83", "\xc2\xa9",
                               "\xc3\x83\xc2\xa9", "e\xcc\x81x"},
                    .kinds = {1, 1, 1, 1, 1, 1, 4},
                    .merges = {"\xc3\x83 \xc2\xa9"},
                    .space_prefix = -1};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(composing) + ARRAY_COUNT(plain); i++) {
        bool composes = i < ARRAY_COUNT(composing);
        tokenizer *t;
        v.flavour = composes ? composing[i] : plain[i - ARRAY_COUNT(composing)];
        assert_int_equal(create(&v, &t), RLXVK_OK);
        check_ids(t, "e\xcc\x81", composes ? IDS(5) : IDS(0, 1, 2)); /* U+0301 */
        check_ids(t, "\xc3\xa9", IDS(5));
        check_ids(t, "e\xcc\x81xe", IDS(6, 0)); /* special tokens come first */
        tokenizer_destroy(t);
    }
}

static void test_two_bos(void **state)
{
    vocabulary v = spm;
    tokenizer *t;
    (void)state;
    assert_int_equal(create(&v, &t), RLXVK_OK);
    assert_true(tokenizer_doubles_bos(t, "<s>a", 4));
    assert_false(tokenizer_doubles_bos(t, "a<s>", 4));
    assert_false(tokenizer_doubles_bos(t, "</s>", 4));
    assert_false(tokenizer_doubles_bos(t, "", 0));
    tokenizer_destroy(t);
    v = bpe; /* adds none */
    v.tokens[1] = "<s>";
    v.kinds[1] = 3;
    assert_int_equal(create(&v, &t), RLXVK_OK);
    assert_false(tokenizer_doubles_bos(t, "<s>a", 4));
    tokenizer_destroy(t);
}

static void test_refused(void **state)
{
    tokenizer *t;
    vocabulary v = bpe;
    (void)state;
    v.flavour = "no-such-flavour";
    assert_int_equal(create(&v, &t), RLXVK_E_UNSUPPORTED);
    v.model = "bert";
    assert_int_equal(create(&v, &t), RLXVK_E_UNSUPPORTED);
    v = spm;
    v.tokens[2] = NULL; /* two tokens; eos is id 2 */
    assert_int_equal(create(&v, &t), RLXVK_E_RANGE);
    v = spm;
    v.scores[3] = NAN;
    assert_int_equal(create(&v, &t), RLXVK_E_RANGE);
}

/* Reads the numbers of the JSON array that begins at `"name"` ... `"ids": [`. */
static size_t golden_ids(const char *json, const char *name, uint32_t *out, size_t capacity)
{
    const char *at = strstr(json, name);
    at = at ? strstr(at, "\"ids\": [") : NULL;
    size_t count = 0;
    assert_non_null(at);
    at += strlen("\"ids\": [");
    while (*at != ']' && count < capacity) {
        char *end;
        out[count++] = (uint32_t)strtoul(at, &end, 10);
        at = end + strspn(end, ", ");
    }
    return count;
}

static void test_golden(void **state)
{
    static const char *const models[] = {"f16", "q8_0", "q4_k_m"};
    static const char *const prompts[] = {"NAME\n       printf - ", "The kernel ",
                                          "RETURN VALUE\n       On success, "};
    file_content json;
    (void)state;
    assert_int_equal(file_read("test/data/docs-5m-golden.json", &json), RLXVK_OK);
    char *copy = calloc(json.length + 1, 1);
    memcpy(copy, json.data, json.length);
    for (size_t m = 0; m < ARRAY_COUNT(models); m++) {
        char path[64], name[32];
        gguf_file *file;
        tokenizer *t;
        snprintf(path, sizeof path, "test/data/docs-5m-%s.gguf", models[m]);
        assert_int_equal(gguf_open(path, &file), GGUF_OK);
        assert_int_equal(tokenizer_create(file, &t), RLXVK_OK);
        gguf_close(file);
        for (size_t p = 0; p < ARRAY_COUNT(prompts); p++) {
            uint32_t expected[64];
            token_list ids = {0};
            snprintf(name, sizeof name, "\"%s.%zu\"", models[m], p);
            size_t count = golden_ids(copy, name, expected, 64);
            assert_int_equal(tokenizer_encode(t, prompts[p], strlen(prompts[p]), true, &ids),
                             RLXVK_OK);
            assert_int_equal(ids.count, count);
            assert_memory_equal(ids.items, expected, count * sizeof expected[0]);
            VECTOR_FREE(&ids);
        }
        tokenizer_destroy(t);
    }
    free(copy);
    file_free(&json);
}

/* If a vocabulary has all byte tokens, any bytes can be encoded and decode to themselves. */
static void test_any_bytes(void **state)
{
    gguf_file *file;
    tokenizer *t;
    char bytes[3000];
    uint32_t seed = 7;
    token_list ids = {0};
    token_text decoded = {0};
    (void)state;
    assert_int_equal(gguf_open("test/data/docs-5m-q8_0.gguf", &file), GGUF_OK);
    assert_int_equal(tokenizer_create(file, &t), RLXVK_OK);
    gguf_close(file);
    for (size_t i = 0; i < sizeof bytes; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (char)(seed >> 24);
    }
    assert_int_equal(tokenizer_encode(t, bytes, sizeof bytes, false, &ids), RLXVK_OK);
    assert_int_equal(tokenizer_decode(t, ids.items, ids.count, &decoded), RLXVK_OK);
    assert_int_equal(decoded.count, sizeof bytes);
    assert_memory_equal(decoded.items, bytes, sizeof bytes);
    VECTOR_FREE(&ids);
    VECTOR_FREE(&decoded);
    tokenizer_destroy(t);
}

static const vocabulary composing = {
    .model = "gpt2",
    .flavour = "qwen2",
    .tokens = {"e", "\xc3\x83", "\xc2\xa9", "\xc4\xa3", "\xc3\x8c"},
    .kinds = {1, 1, 1, 1, 1},
    .merges = {"\xc3\x83 \xc2\xa9"},
    .space_prefix = -1,
};

static void test_allocation_failure(void **state)
{
    static const struct {
        const vocabulary *vocabulary;
        const char *bytes;
    } cases[] = {{&spm, "aab <s>ab"},
                 {&bpe, "hello <|end|>hello"},
                 {&composing, "e\xcc\x81\xcc\xa3\xcc\x81"}};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        rlxvk_status status;
        uint64_t n = 0;
        builder b;
        gguf_file *file;
        build(&b, cases[i].vocabulary);
        assert_int_equal(gguf_parse(b.bytes, b.length, NULL, &file), GGUF_OK);
        do {
            tokenizer *t;
            token_list ids = {0};
            memory_fail_at(++n);
            status = tokenizer_create(file, &t);
            if (status == RLXVK_OK)
                status = tokenizer_encode(t, cases[i].bytes, strlen(cases[i].bytes), true, &ids);
            memory_fail_at(0);
            assert_true(status == RLXVK_OK || status == RLXVK_E_OUT_OF_HOST_MEMORY ||
                        (status == RLXVK_E_RANGE && i == 2)); /* no token for the marks */
            tokenizer_destroy(t);
            VECTOR_FREE(&ids);
        } while (status == RLXVK_E_OUT_OF_HOST_MEMORY);
        assert_true(n > 5);
        gguf_close(file);
    }
}

static void test_mutation(void **state)
{
    uint32_t seed = 99;
    unsigned accepted = 0;
    (void)state;
    for (int round = 0; round < 4000; round++) {
        builder b;
        gguf_file *file;
        tokenizer *t = NULL;
        token_list ids = {0};
        build(&b, round % 2 ? &spm : &bpe);
        for (int i = 0; i < 3; i++) {
            seed = seed * 1664525u + 1013904223u;
            b.bytes[(seed >> 8) % b.length] ^= (uint8_t)(1u << (seed >> 29));
        }
        rlxvk_status status = gguf_result(gguf_parse(b.bytes, b.length, NULL, &file));
        if (status == RLXVK_OK)
            status = tokenizer_create(file, &t);
        gguf_close(file);
        accepted += t != NULL;
        if (t != NULL && tokenizer_encode(t, "aab hello <|end|>", 17, true, &ids) == RLXVK_OK)
            for (size_t i = 0; i < ids.count; i++)
                assert_true(ids.items[i] < tokenizer_size(t));
        tokenizer_destroy(t);
        VECTOR_FREE(&ids);
    }
    assert_true(accepted > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spm),
        cmocka_unit_test(test_bpe),
        cmocka_unit_test(test_presplit),
        cmocka_unit_test(test_presplit_newer),
        cmocka_unit_test(test_presplit_long),
        cmocka_unit_test(test_whole_pieces),
        cmocka_unit_test(test_specials),
        cmocka_unit_test(test_spaces),
        cmocka_unit_test(test_stripped_space),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_composed),
        cmocka_unit_test(test_two_bos),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_allocation_failure),
        cmocka_unit_test(test_mutation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
