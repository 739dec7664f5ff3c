/*
 * rlxvk_language.h: texts to tokens and back, and generation. What is generated is compared with
 * llama.h, token by token, and parts with wholes.
 */
#include "model/language/llama.h"
#include "support/harness.h"
#include "support/onnx_writer.h"

#include <rlxvk_language.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

#include "unit/model/golden_numbers.h"
#include "unit/model/chat_model.h"

#define MODEL        "build/test/language.gguf" /* with ChatML */
#define TEXT         "The open() system call"
#define SPACED_MODEL "test/data/models/llama.gguf"

enum { CAPACITY = 256, MOST_TOKENS = 256, WORDS = 320, CONTEXT = 2048 };

static rlxvk_model *model, *silent; /* `silent` has no chat template */
static rlxvk_tokenizer *words;
static rlxvk_language *language;

/* The tokens and the text that a reader gets. */
typedef struct told {
    uint32_t tokens[MOST_TOKENS];
    char text[16 * MOST_TOKENS];
    size_t count, length;
    size_t most; /* it ends the generation after so many; 0: never */
} told;

static bool tell(void *user, uint32_t token, const char *bytes, size_t length)
{
    told *t = user;
    assert_true(t->count < MOST_TOKENS && t->length + length < sizeof t->text);
    t->tokens[t->count++] = token;
    memcpy(t->text + t->length, bytes, length);
    t->length += length;
    t->text[t->length] = 0;
    return t->count != t->most;
}

static rlxvk_generate_options into(told *t, uint64_t tokens)
{
    *t = (told){.count = 0};
    return (rlxvk_generate_options){.tokens = tokens, .reader = tell, .user = t};
}

static rlxvk_status write_text(const char *text, told *t, uint64_t tokens)
{
    rlxvk_generate_options o = into(t, tokens);
    return rlxvk_language_write(language, text, strlen(text), &o);
}

static uint64_t room_of(const rlxvk_language *l, uint32_t sequence)
{
    uint64_t room;
    assert_ok(rlxvk_language_room(l, sequence, &room));
    return room;
}

static size_t encode(const char *text, bool begins, uint32_t *tokens)
{
    size_t count;
    assert_ok(
        rlxvk_tokenizer_encode(words, text, strlen(text), begins, tokens, MOST_TOKENS, &count));
    assert_true(count <= MOST_TOKENS);
    return count;
}

static int open_all(void **state)
{
    const rlxvk_language_options options = {.capacity = CAPACITY};
    char *template = read_text("test/data/chat/chatml.jinja"), with_begin[1024];
    if (open_shared_context(state) != 0)
        return -1;
    snprintf(with_begin, sizeof with_begin, "{{ bos_token }}%s", template);
    chat_model_write(MODEL, with_begin);
    memory_free(template);
    assert_ok(rlxvk_model_open(MODEL, NULL, &model));
    assert_ok(rlxvk_model_open(CHAT_SOURCE, NULL, &silent));
    assert_ok(rlxvk_tokenizer_open(model, NULL, &words));
    assert_ok(rlxvk_language_create(words, shared_context, &options, &language));
    return 0;
}

static int close_all(void **state)
{
    rlxvk_language_destroy(language);
    rlxvk_tokenizer_destroy(words);
    rlxvk_model_destroy(silent);
    rlxvk_model_destroy(model);
    return close_shared_context(state);
}

static int rewind_language(void **state)
{
    (void)state;
    return rlxvk_language_rewind(language, 0) != RLXVK_OK;
}

/* ---- Texts and tokens ---- */

static void what_the_file_tells(void **state)
{
    rlxvk_tokenizer_info info = RLXVK_SIZED(rlxvk_tokenizer_info, .vocabulary = 0);
    rlxvk_tokenizer *t = NULL;
    (void)state;
    assert_ok(rlxvk_tokenizer_describe(words, &info));
    assert_int_equal(info.vocabulary, WORDS);
    assert_int_equal(info.begin, 1);
    assert_int_equal(info.end, 2);
    assert_true(info.adds_begin);
    assert_int_equal(info.context, CONTEXT);
    assert_string_equal(info.chat_family, "ChatML");
    assert_non_null(info.chat_version);
    assert_true(rlxvk_tokenizer_is_end(words, 2));
    assert_true(rlxvk_tokenizer_is_end(words, CHAT_STOP));
    assert_false(rlxvk_tokenizer_is_end(words, 'a' + 3));
    assert_false(rlxvk_tokenizer_is_end(words, RLXVK_NO_TOKEN));
    assert_ok(rlxvk_tokenizer_open(silent, NULL, &t));
    assert_ok(rlxvk_tokenizer_describe(t, &info));
    assert_null(info.chat_family);
    rlxvk_tokenizer_destroy(t);
}

/* Nothing is written beyond the capacity, and the count does not depend on it. */
static void texts_and_back(void **state)
{
    static const char text[] = "caf\xc3\xa9 \xff<|im_start|>";
    uint32_t tokens[MOST_TOKENS], few[3] = {7, 7, 7};
    char bytes[64];
    size_t count = encode(text, true, tokens), length, again;
    (void)state;
    assert_int_equal(tokens[0], 1);
    assert_int_equal(tokens[count - 1], CHAT_FREE);
    assert_ok(rlxvk_tokenizer_decode(words, tokens, count, bytes, sizeof bytes, &length));
    assert_int_equal(length, 7); /* control tokens add none */
    assert_memory_equal(bytes, "caf\xc3\xa9 \xff", 7);
    assert_ok(rlxvk_tokenizer_encode(words, text, strlen(text), true, few, 2, &again));
    assert_int_equal(again, count);
    assert_memory_equal(few, tokens, 2 * sizeof *few);
    assert_int_equal(few[2], 7);
    memset(bytes, 'x', sizeof bytes);
    assert_ok(rlxvk_tokenizer_decode(words, tokens, count, bytes, 3, &length));
    assert_int_equal(length, 7);
    assert_memory_equal(bytes, "cafx", 4);
    assert_int_equal(encode(text, false, tokens), count - 1);
    assert_int_equal(encode("", false, tokens), 0);
}

/* The bytes of a text in two parts, of which the second one begins a text or goes on. */
static size_t decode_parts(const rlxvk_tokenizer *t, bool begins, char bytes[16])
{
    uint32_t tokens[16];
    size_t first, second, length;
    assert_ok(rlxvk_tokenizer_encode(t, "a", 1, true, tokens, 16, &first));
    assert_ok(rlxvk_tokenizer_encode(t, "b", 1, begins, tokens + first, 16 - first, &second));
    assert_true(first + second <= 16);
    assert_ok(rlxvk_tokenizer_decode(t, tokens, first + second, bytes, 16, &length));
    return length;
}

/* A tokenizer that puts a space in front of texts puts none where a text goes on. */
static void texts_that_go_on(void **state)
{
    rlxvk_tokenizer *t = NULL;
    rlxvk_model *m = NULL;
    char bytes[16];
    (void)state;
    assert_ok(rlxvk_model_open(SPACED_MODEL, NULL, &m));
    assert_ok(rlxvk_tokenizer_open(m, NULL, &t));
    assert_int_equal(decode_parts(t, true, bytes), 3);
    assert_memory_equal(bytes, "a b", 3);
    assert_int_equal(decode_parts(t, false, bytes), 2);
    assert_memory_equal(bytes, "ab", 2);
    rlxvk_tokenizer_destroy(t);
    rlxvk_model_destroy(m);
}

/* Turns as tokens: what the user spells is text, and the template's words are control tokens. */
static void turns(void **state)
{
    static const char first[] = "<|im_start|>system\nBrief<|im_end|>\n<|im_start|>user\nWhat"
                                "<|im_end|>\n<|im_start|>assistant\n";
    static const char next[] = "<|im_end|>\n<|im_start|>user\nand\n<|im_end|>\n";
    uint32_t expected[MOST_TOKENS], tokens[MOST_TOKENS];
    rlxvk_turn_options o = {.system = "Brief"};
    size_t count = encode(first, true, expected), made;
    (void)state;
    assert_ok(rlxvk_tokenizer_turn(words, "What", 4, &o, tokens, MOST_TOKENS, &made));
    assert_int_equal(made, count);
    assert_memory_equal(tokens, expected, count * sizeof *tokens);
    o = (rlxvk_turn_options){.follows = true, .last = 'x' + 3};
    assert_ok(rlxvk_tokenizer_turn(words, "and", 3, &o, tokens, MOST_TOKENS, &made));
    count = encode(next, false, expected);
    assert_int_equal(tokens[0], CHAT_STOP);
    assert_memory_equal(tokens, expected, 6 * sizeof *tokens);
    assert_ok(rlxvk_tokenizer_turn(words, "<|im_end|>", 10, NULL, tokens, MOST_TOKENS, &made));
    for (size_t i = count = 0; i < made; i++)
        count += tokens[i] == CHAT_STOP;
    assert_int_equal(count, 1); /* the template's own, behind the user's turn */
}

static void refused_texts(void **state)
{
    static const rlxvk_tokenizer_options bad[] = {{.year = 2025, .month = 13, .day = 1},
                                                  {.year = 2025, .month = 1, .day = 0},
                                                  {.year = 0, .month = 1, .day = 1},
                                                  {.year = 10000, .month = 1, .day = 1}};
    rlxvk_turn_options both = {.system = "s", .follows = true};
    rlxvk_tokenizer *t = NULL;
    rlxvk_model *onnx = NULL;
    onnx_message graph = {0}, file;
    uint32_t tokens[4];
    size_t count;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        assert_int_equal(rlxvk_tokenizer_open(model, &bad[i], &t), RLXVK_E_ATTR);
    assert_null(t);
    assert_int_equal(rlxvk_tokenizer_turn(words, "a", 1, &both, tokens, 4, &count), RLXVK_E_ATTR);
    assert_ok(rlxvk_tokenizer_open(silent, NULL, &t));
    for (int again = 0; again < 2; again++) {
        assert_int_equal(rlxvk_tokenizer_turn(NULL, "a", 1, NULL, tokens, 4, &count),
                         RLXVK_E_NULL); /* another sentence in between */
        assert_int_equal(rlxvk_tokenizer_turn(t, "a", 1, NULL, tokens, 4, &count),
                         RLXVK_E_UNKNOWN_NAME);
        assert_non_null(strstr(rlxvk_last_error(), "no chat template"));
    }
    rlxvk_tokenizer_destroy(t);
    onnx_write_op(&graph, "Neg", ONNX_NAMES("x"), ONNX_NAMES("y"));
    onnx_write_value(&graph, 11, "x", 1, "2");
    onnx_write_value(&graph, 12, "y", 1, "2");
    file = onnx_write_model(&graph, 13);
    assert_ok(rlxvk_model_open_bytes(file.bytes, file.size, NULL, &onnx));
    assert_int_equal(rlxvk_tokenizer_open(onnx, NULL, &t), RLXVK_E_UNSUPPORTED);
    assert_null(t);
    rlxvk_model_destroy(onnx);
    message_free(&file);
}

/* ---- Generating ---- */

/* The most likely tokens, one after the other, by llama.h. */
static size_t continue_alone(const uint32_t *prompt, size_t count, uint32_t *out, size_t most)
{
    static llama *alone;
    const rlxvk_language_options options = {.capacity = CAPACITY};
    gguf_file *file;
    size_t made = 0;
    assert_ok(gguf_result(gguf_open(MODEL, &file)));
    assert_ok(llama_load(shared_context, file, &options, &alone));
    assert_ok(llama_extend(alone, prompt, count, (llama_result){NULL, &out[0]}));
    while (!rlxvk_tokenizer_is_end(words, out[made++]) && made < most)
        assert_ok(llama_decode(alone, out[made - 1], (llama_result){NULL, &out[made]}));
    llama_destroy(alone);
    gguf_close(file);
    return made;
}

static void texts_continue(void **state)
{
    uint32_t prompt[MOST_TOKENS], expected[MOST_TOKENS];
    char text[16 * MOST_TOKENS];
    size_t count = encode(TEXT, true, prompt), length;
    size_t made = continue_alone(prompt, count, expected, 12);
    told t;
    (void)state;
    assert_ok(write_text(TEXT, &t, 12));
    assert_int_equal(t.count, made);
    assert_memory_equal(t.tokens, expected, made * sizeof *expected);
    assert_ok(rlxvk_tokenizer_decode(words, expected, made, text, sizeof text, &length));
    assert_int_equal(t.length, length);
    assert_memory_equal(t.text, text, length);
    assert_int_equal(room_of(language, 0), CAPACITY - count - made + (made < 12));
}

/* Pieces of a generation, and texts put in between, are one text. */
static void parts_are_a_whole(void **state)
{
    uint32_t whole[MOST_TOKENS], logits_next;
    static float logits[2][WORDS];
    told first, second, one;
    size_t count = encode(TEXT, true, whole);
    (void)state;
    assert_ok(write_text(TEXT, &first, 5));
    assert_int_equal(first.count, 5);
    memcpy(whole + count, first.tokens, 5 * sizeof *whole);
    count += 5;
    count += encode(" and", false, whole + count);
    rlxvk_generate_options o = into(&second, 7);
    o.logits = logits[0];
    assert_ok(rlxvk_language_write(language, " and", 4, &o));
    assert_ok(rlxvk_language_rewind(language, 0));
    o = into(&one, 7);
    assert_ok(rlxvk_language_generate(language, whole, count, &o));
    assert_int_equal(one.count, second.count);
    assert_memory_equal(one.tokens, second.tokens, one.count * sizeof *whole);
    assert_ok(rlxvk_language_rewind(language, 0));
    assert_ok(rlxvk_language_extend(language, 0, whole, count - 1, NULL, NULL));
    assert_ok(rlxvk_language_extend(language, 0, whole + count - 1, 1, logits[1], &logits_next));
    assert_int_equal(logits_next, one.tokens[0]);
    for (size_t i = 0; i < WORDS; i++)
        assert_float_equal(logits[0][i], logits[1][i], 1e-3);
}

/* Calls without tokens go on, one token at a time; but not from nothing, and not behind an end. */
static void generation_goes_on(void **state)
{
    const uint32_t end = CHAT_STOP;
    told whole, t;
    (void)state;
    assert_int_equal(rlxvk_language_generate(language, NULL, 0, NULL), RLXVK_E_RANGE);
    assert_ok(write_text(TEXT, &whole, 8));
    assert_int_equal(whole.count, 8);
    assert_ok(rlxvk_language_rewind(language, 0));
    assert_ok(write_text(TEXT, &t, 1));
    for (size_t i = 0; i < 8; i++) {
        rlxvk_generate_options o = {.tokens = 1, .reader = tell, .user = &t};
        assert_int_equal(t.tokens[i], whole.tokens[i]);
        assert_ok(rlxvk_language_generate(language, NULL, 0, &o));
        assert_int_equal(t.count, i + 2);
    }
    assert_ok(rlxvk_language_rewind(language, 0));
    assert_ok(rlxvk_language_extend(language, 0, &end, 1, NULL, NULL));
    assert_int_equal(rlxvk_language_generate(language, NULL, 0, NULL), RLXVK_E_RANGE);
}

/* The token that was generated last runs in front of what rlxvk_language_extend appends. */
static void the_last_token_is_part_of_the_text(void **state)
{
    static float logits[2][WORDS];
    uint32_t whole[MOST_TOKENS];
    size_t count = encode(TEXT, true, whole);
    told t;
    (void)state;
    assert_ok(write_text(TEXT, &t, 3));
    memcpy(whole + count, t.tokens, 3 * sizeof *whole);
    count += 3;
    count += encode(" a", false, whole + count);
    uint32_t more[8];
    size_t added = encode(" a", false, more);
    const uint32_t *lists[] = {more};
    for (int each = 0; each < 2; each++) {
        assert_ok(rlxvk_language_rewind(language, 0));
        assert_ok(write_text(TEXT, &t, 3));
        assert_int_equal(room_of(language, 0), CAPACITY - (count - added));
        assert_ok(rlxvk_language_prepare(language, added));
        assert_ok(rlxvk_language_prepare_each(language, &added));
        if (each)
            assert_ok(rlxvk_language_extend_each(language, lists, &added, more));
        else
            assert_ok(rlxvk_language_extend(language, 0, more, added, logits[0], NULL));
        assert_int_equal(room_of(language, 0), CAPACITY - count);
    }
    assert_ok(rlxvk_language_rewind(language, 0));
    uint32_t next;
    assert_ok(rlxvk_language_extend(language, 0, whole, count, logits[1], &next));
    assert_int_equal(more[0], next);
    for (size_t i = 0; i < WORDS; i++)
        assert_float_equal(logits[0][i], logits[1][i], 1e-3);
}

/* The reader ends a generation, and so does a full sequence: its last token has a place, too. */
static void ends(void **state)
{
    uint32_t prompt[MOST_TOKENS];
    told t;
    rlxvk_generate_options o = into(&t, 0);
    (void)state;
    t.most = 4;
    assert_ok(rlxvk_language_write(language, TEXT, strlen(TEXT), &o));
    assert_int_equal(t.count, 4);
    assert_ok(rlxvk_language_rewind(language, 0));
    size_t count = 0;
    while (count < CAPACITY - 4)
        prompt[count++] = 'x' + 3;
    o = into(&t, 0);
    assert_ok(rlxvk_language_generate(language, prompt, count, &o));
    assert_true(t.count == 4 || rlxvk_tokenizer_is_end(words, t.tokens[t.count - 1]));
    assert_int_equal(t.count, 4);
    assert_int_equal(room_of(language, 0), 0);
    assert_int_equal(write_text("x", &t, 1), RLXVK_E_RANGE);
    assert_int_equal(t.count, 0);
}

/* Each reply is that to the whole conversation as one prompt. */
static void replies(void **state)
{
    static const char *const lines[] = {"The open system call", "and the file"};
    char whole[16384] = "<|im_start|>system\nBrief<|im_end|>\n";
    told got[2], t;
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        rlxvk_generate_options o = into(&got[turn], turn ? 20 : 60);
        assert_ok(rlxvk_language_reply(language, "Brief", lines[turn], strlen(lines[turn]), &o));
    }
    for (int turn = 0; turn < 2; turn++) {
        sprintf(whole + strlen(whole), "<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n",
                lines[turn]);
        assert_ok(rlxvk_language_rewind(language, 0));
        assert_ok(write_text(whole, &t, turn ? 20 : 60));
        assert_int_equal(t.count, got[turn].count);
        assert_memory_equal(t.tokens, got[turn].tokens, t.count * sizeof *t.tokens);
        sprintf(whole + strlen(whole), "%s<|im_end|>\n", t.text);
    }
}

/* After an error, sequences are as before. */
static void errors_change_nothing(void **state)
{
    static uint32_t many[CAPACITY + 1];
    const uint32_t *lists[] = {many};
    uint32_t bad = WORDS, next;
    size_t count = CAPACITY, one = 1;
    uint64_t room;
    told t, after;
    (void)state;
    assert_ok(write_text(TEXT, &t, 3));
    room = room_of(language, 0);
    for (size_t i = 0; i < CAPACITY; i++)
        many[i] = 'a' + 3;
    assert_int_equal(rlxvk_language_generate(language, many, CAPACITY, NULL), RLXVK_E_RANGE);
    assert_int_equal(rlxvk_language_generate(language, &bad, 1, NULL), RLXVK_E_INDEX_OOB);
    assert_int_equal(rlxvk_language_extend(language, 0, many, CAPACITY, NULL, NULL), RLXVK_E_RANGE);
    assert_int_equal(rlxvk_language_extend(language, 0, &bad, 1, NULL, NULL), RLXVK_E_INDEX_OOB);
    assert_int_equal(rlxvk_language_extend(language, 1, many, 1, NULL, NULL), RLXVK_E_RANGE);
    assert_int_equal(rlxvk_language_extend_each(language, lists, &count, &next), RLXVK_E_RANGE);
    many[0] = bad;
    assert_int_equal(rlxvk_language_extend_each(language, lists, &one, &next), RLXVK_E_INDEX_OOB);
    assert_int_equal(rlxvk_language_prepare(language, CAPACITY), RLXVK_E_RANGE);
    assert_int_equal(rlxvk_language_rewind(language, 1), RLXVK_E_RANGE);
    assert_int_equal(rlxvk_language_room(language, 7, &room), RLXVK_E_RANGE);
    assert_int_equal(room_of(language, 0), room);
    assert_ok(write_text(" and", &after, 4));
    assert_ok(rlxvk_language_rewind(language, 0));
    assert_ok(write_text(TEXT, &t, 3));
    assert_ok(write_text(" and", &t, 4));
    assert_int_equal(t.count, after.count);
    assert_memory_equal(t.tokens, after.tokens, t.count * sizeof *t.tokens);
}

/* ---- Creating ---- */

static void progress(void *user, uint64_t done, uint64_t total)
{
    uint64_t *last = user;
    assert_true(done >= *last && done <= total);
    *last = done;
}

/* Sequences have the tokens that each has alone. Random choices are the same again. */
static void several_sequences(void **state)
{
    static const char *const texts[] = {"The open", "Files are", "Once"};
    const rlxvk_sample_options sampling = {.temperature = 0.8f, .top_k = 40};
    uint64_t done = 0;
    const rlxvk_language_options options = {
        .capacity = 64, .sequences = 3, .cache = RLXVK_F16, .progress = progress, .user = &done};
    const rlxvk_language_options random = {.capacity = 64, .sampling = &sampling, .seed = 5};
    uint32_t prompts[3][MOST_TOKENS], next[3], expected[3][5];
    const uint32_t *tokens[3];
    size_t counts[3];
    rlxvk_language *many = NULL, *lot = NULL;
    rlxvk_language_report report = RLXVK_SIZED(rlxvk_language_report, .graphs = 0);
    told t, again;
    (void)state;
    assert_ok(rlxvk_language_create(words, shared_context, &options, &many));
    assert_true(done > 0);
    for (int s = 0; s < 3; s++) {
        tokens[s] = prompts[s];
        counts[s] = encode(texts[s], true, prompts[s]);
        assert_ok(rlxvk_language_extend(many, 0, prompts[s], counts[s], NULL, &expected[s][0]));
        for (int i = 1; i < 5; i++)
            assert_ok(
                rlxvk_language_extend(many, 0, &expected[s][i - 1], 1, NULL, &expected[s][i]));
        assert_ok(rlxvk_language_rewind(many, 0));
    }
    assert_ok(rlxvk_language_prepare_each(many, counts));
    for (int i = 0; i < 5; i++) {
        assert_ok(rlxvk_language_extend_each(many, tokens, counts, next));
        for (int s = 0; s < 3; s++) {
            assert_int_equal(next[s], expected[s][i]);
            tokens[s] = &next[s];
            counts[s] = 1;
        }
    }
    counts[0] = counts[2] = 0;
    next[0] = next[2] = 99;
    uint64_t room = room_of(many, 1);
    assert_ok(rlxvk_language_extend_each(many, tokens, counts, next));
    assert_true(next[0] == 99 && next[2] == 99 && room_of(many, 1) == room - 1);
    assert_ok(rlxvk_language_usage(many, &report));
    assert_int_equal(report.host_steps, 0);
    assert_true(report.step_dispatches > 0 && report.cache_bytes > 0);
    rlxvk_language_destroy(many);
    for (int run = 0; run < 2; run++) {
        rlxvk_generate_options o = into(run ? &again : &t, 20);
        assert_ok(rlxvk_language_create(words, shared_context, &random, &lot));
        assert_ok(rlxvk_language_write(lot, TEXT, strlen(TEXT), &o));
        rlxvk_language_destroy(lot);
    }
    assert_int_equal(t.count, again.count);
    assert_memory_equal(t.tokens, again.tokens, t.count * sizeof *t.tokens);
}

/* Languages that choose in various ways, one after the other, have the texts that each has alone.
 * What they take of the device is the same, too. */
static void sampling_changes(void **state)
{
    const uint64_t *limit = *state; /* of device memory */
    static const struct {
        rlxvk_sample_options sampling;
        uint64_t seed;
    } ways[] = {{{.temperature = 0.8f, .top_k = 40}, 5},
                {{.temperature = 0.8f, .top_k = 40}, 6},
                {{.temperature = 0}, 6},
                {{.temperature = 2, .top_p = 0.95f}, 6}};
    const rlxvk_sample_options bad = {.temperature = -1};
    rlxvk_language_report before = RLXVK_SIZED(rlxvk_language_report, .graphs = 0), after = before;
    rlxvk_language_options options = {.capacity = 64, .device_bytes = *limit};
    rlxvk_language *changed = NULL, *own = NULL;
    told expected, made, last = {.count = 0};
    assert_ok(rlxvk_language_create(words, shared_context, &options, &changed));
    for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
        rlxvk_generate_options o = into(&expected, 30);
        options.sampling = &ways[i].sampling;
        options.seed = ways[i].seed;
        assert_ok(rlxvk_language_create(words, shared_context, &options, &own));
        assert_ok(rlxvk_language_write(own, TEXT, strlen(TEXT), &o));
        assert_ok(rlxvk_language_usage(own, &before));
        rlxvk_language_destroy(own);
        o = into(&made, 30);
        assert_ok(rlxvk_language_set_sampling(changed, &ways[i].sampling, ways[i].seed));
        assert_int_equal(rlxvk_language_set_sampling(changed, &bad, 9), RLXVK_E_ATTR);
        assert_ok(rlxvk_language_rewind(changed, 0));
        assert_ok(rlxvk_language_write(changed, TEXT, strlen(TEXT), &o));
        assert_string_equal(made.text, expected.text);
        assert_string_not_equal(made.text, last.text);
        assert_ok(rlxvk_language_usage(changed, &after));
        assert_int_equal(after.weight_bytes, before.weight_bytes);
        assert_int_equal(after.device_bytes, before.device_bytes);
        assert_int_equal(after.host_weight_bytes, before.host_weight_bytes);
        assert_int_equal(after.host_weight_bytes > 0, *limit > 0);
        assert_int_equal(after.graphs, before.graphs);
        assert_true(*limit == 0 || after.device_bytes <= *limit);
        last = made;
    }
    rlxvk_language_destroy(changed);
}

/* A text goes on over other sampling as if that had been there from the start. */
static void texts_go_on_over_other_sampling(void **state)
{
    const rlxvk_sample_options random = {.temperature = 1.5f};
    told first, rest, whole;
    (void)state;
    assert_ok(write_text(TEXT, &whole, 20));
    assert_ok(rlxvk_language_rewind(language, 0));
    assert_ok(write_text(TEXT, &first, 8));
    assert_ok(rlxvk_language_set_sampling(language, &random, 1));
    assert_ok(rlxvk_language_set_sampling(language, NULL, 0));
    rlxvk_generate_options o = into(&rest, 12);
    assert_ok(rlxvk_language_generate(language, NULL, 0, &o));
    assert_memory_equal(first.tokens, whole.tokens, 8 * sizeof *whole.tokens);
    assert_memory_equal(rest.tokens, whole.tokens + 8, 12 * sizeof *whole.tokens);
}

static void refused_languages(void **state)
{
    const rlxvk_language_options cache = {.capacity = 64, .cache = RLXVK_I8},
                                 large = {.capacity = CONTEXT + 1},
                                 sized = {.capacity = 64, .struct_size = 8};
    rlxvk_language *l = NULL;
    (void)state;
    assert_int_equal(rlxvk_language_create(words, shared_context, &cache, &l), RLXVK_E_DTYPE);
    assert_int_equal(rlxvk_language_create(words, shared_context, &large, &l), RLXVK_E_RANGE);
    assert_int_equal(rlxvk_language_create(words, shared_context, &sized, &l), RLXVK_E_ATTR);
    assert_null(l);
}

int main(void)
{
    static uint64_t limits[] = {0, 3 << 20};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_file_tells),
        cmocka_unit_test(texts_and_back),
        cmocka_unit_test(texts_that_go_on),
        cmocka_unit_test(turns),
        cmocka_unit_test(refused_texts),
        cmocka_unit_test_setup(texts_continue, rewind_language),
        cmocka_unit_test_setup(parts_are_a_whole, rewind_language),
        cmocka_unit_test_setup(generation_goes_on, rewind_language),
        cmocka_unit_test_setup(the_last_token_is_part_of_the_text, rewind_language),
        cmocka_unit_test_setup(ends, rewind_language),
        cmocka_unit_test_setup(replies, rewind_language),
        cmocka_unit_test_setup(errors_change_nothing, rewind_language),
        cmocka_unit_test(several_sequences),
        cmocka_unit_test_prestate(sampling_changes, &limits[0]),
        cmocka_unit_test_prestate(sampling_changes, &limits[1]),
        cmocka_unit_test_setup(texts_go_on_over_other_sampling, rewind_language),
        cmocka_unit_test(refused_languages),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
