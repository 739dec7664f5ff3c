/*
 * Chat templates: recognized by what they contain, and rendered as Jinja renders them. The golden
 * renderings in test/data/chat/golden.txt are made by tools/model/golden_chat.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/model/golden_numbers.h"
#include "unit/model/chat_vocabulary.h"

#define FOLDER "test/data/chat/"

static const system_day day = {2025, 3, 4};

/* ---- Lines of golden.txt ---- */

enum { MOST_BYTES = 4096, CONVERSATIONS = 6, TEMPLATES = 32 };

/* A line: a word, and a string unless it has none. */
typedef struct line {
    char word[16], value[MOST_BYTES];
    bool has_value;
} line;

/* Reads the string's next byte, which JSON may escape. */
static char read_escaped(const char **at)
{
    static const char letters[] = "n\nt\tr\rb\bf\f";
    char c = *(*at)++;
    if (c != '\\')
        return c;
    c = *(*at)++;
    if (c == 'u') {
        unsigned point = 0;
        assert_int_equal(sscanf(*at, "%4x", &point), 1);
        assert_true(point < 0x80);
        *at += 4;
        return (char)point;
    }
    for (const char *l = letters; *l; l += 2)
        if (*l == c)
            return l[1];
    return c;
}

/* Reads the next line; false at the end. */
static bool read_line(const char **at, line *out)
{
    size_t length = strcspn(*at, " \n"), used = 0;
    if (**at == 0)
        return false;
    assert_true(length < sizeof out->word);
    memcpy(out->word, *at, length);
    out->word[length] = 0;
    *at += length;
    out->has_value = **at == ' ';
    if (out->has_value) {
        for (*at += 2; **at != '"';) {
            assert_true(**at && used + 1 < MOST_BYTES);
            out->value[used++] = read_escaped(at);
        }
        ++*at;
    }
    out->value[used] = 0;
    assert_int_equal(**at, '\n');
    ++*at;
    return true;
}

/* ---- Golden renderings ---- */

typedef struct state {
    char name[64], family[32], bos[64], eos[64];
    vocabulary v;
    chat *chat;
    bool has_system;
    char system[MOST_BYTES], user[MOST_BYTES];
    token_list ids;      /* of the conversation so far */
    token_text expected; /* its text */
    size_t first;        /* place of what the next line checks */
    uint32_t last;       /* token of the reply */
    size_t conversation; /* its number in the template's */
    size_t controls[CONVERSATIONS];
    unsigned renderings, templates;
} state;

static char *read_template(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, FOLDER "%s.jinja", name);
    return read_text(path);
}

static void open_template(state *s)
{
    char *template = read_template(s->name);
    add_bytes(&s->v);
    add_control(&s->v, s->bos, KIND_CONTROL);
    add_control(&s->v, s->eos, KIND_CONTROL);
    for (size_t i = 0; i < chat_word_count; i++)
        add_control(&s->v, chat_words[i], i % 2 ? KIND_CONTROL : KIND_USER);
    finish_bytes(&s->v, template, s->bos, s->eos);
    memory_free(template);
    assert_ok(chat_open(s->v.file, s->v.tokenizer, day, &s->chat));
    assert_string_equal(chat_family(s->chat), s->family);
    s->conversation = 0;
    s->templates++;
}

/* In all vocabularies, user text that spells control words makes no more control tokens than other
 * text. Conversations 1 and 4 have the same form. */
static void close_template(state *s)
{
    if (!s->chat)
        return;
    assert_int_equal(s->conversation, CONVERSATIONS);
    if (s->controls[4] != s->controls[1])
        fail_msg("%s: user text makes control tokens", s->name);
    chat_close(s->chat);
    s->chat = NULL;
    free_vocabulary(&s->v);
}

/* Spells the tokens that were appended, and compares. */
static void check_rendering(state *s, const char *expected)
{
    char found[2 * MOST_BYTES];
    size_t used = 0;
    for (size_t i = s->first; i < s->ids.count; i++) {
        uint32_t id = s->ids.items[i];
        bool byte = s->v.kinds[id] == KIND_BYTE;
        s->controls[s->conversation - 1] += !byte;
        assert_true(used + 64 < sizeof found);
        used += byte ? (found[used] = (char)(id - 1), 1)
                     : (size_t)sprintf(found + used, "%s", s->v.tokens[id]);
    }
    found[used] = 0;
    if (strcmp(found, expected) != 0)
        fail_msg("%s, conversation %zu:\n%s\nexpected:\n%s", s->name, s->conversation, found,
                 expected);
    s->renderings++;
}

/* The first control token behind a reply is one that ends replies. */
static void check_end(const state *s)
{
    size_t at = s->first;
    while (s->v.kinds[s->ids.items[at]] == KIND_BYTE)
        at++;
    if (!tokenizer_is_end(s->v.tokenizer, s->ids.items[at]))
        fail_msg("%s: a reply does not end with %s", s->name, s->v.tokens[s->ids.items[at]]);
}

static void append_reply(state *s, const char *reply)
{
    uint32_t text = 1 + ' ';
    assert_ok(tokenizer_encode_plain(s->v.tokenizer, text, reply, strlen(reply), &s->ids));
    s->last = s->ids.items[s->ids.count - 1];
}

static void begin(state *s, const line *l)
{
    const char *system = s->has_system ? s->system : NULL;
    s->controls[s->conversation++] = 0;
    s->ids.count = s->first = 0;
    rlxvk_status status = chat_begin(s->chat, system, s->user, strlen(s->user), &s->ids);
    if (strcmp(l->word, "refused") == 0) {
        assert_int_equal(status, RLXVK_E_UNSUPPORTED);
        assert_int_equal(s->ids.count, 0);
        return;
    }
    assert_ok(status);
    check_rendering(s, l->value);
}

static void take_line(state *s, const line *l)
{
    const struct {
        const char *word;
        char *to;
        size_t size;
    } texts[] = {{"template", s->name, sizeof s->name}, {"family", s->family, sizeof s->family},
                 {"bos", s->bos, sizeof s->bos},        {"eos", s->eos, sizeof s->eos},
                 {"system", s->system, MOST_BYTES},     {"user", s->user, MOST_BYTES}};
    if (strcmp(l->word, "template") == 0)
        close_template(s);
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
        if (strcmp(l->word, texts[i].word) == 0)
            snprintf(texts[i].to, texts[i].size, "%s", l->value);
    if (strcmp(l->word, "eos") == 0)
        open_template(s);
    if (strcmp(l->word, "system") == 0)
        s->has_system = l->has_value;
    if (strcmp(l->word, "begin") == 0 || strcmp(l->word, "refused") == 0)
        begin(s, l);
    if (strcmp(l->word, "reply") == 0)
        append_reply(s, l->value);
    if (strcmp(l->word, "next") == 0) {
        s->first = s->ids.count;
        assert_ok(chat_continue(s->chat, s->last, s->user, strlen(s->user), &s->ids));
        check_rendering(s, l->value);
        check_end(s);
    }
}

static void golden_renderings(void **unused)
{
    static state s;
    static line l;
    char *text = read_text(FOLDER "golden.txt");
    (void)unused;
    for (const char *at = text; read_line(&at, &l);)
        take_line(&s, &l);
    close_template(&s);
    VECTOR_FREE(&s.ids);
    memory_free(text);
    assert_int_equal(s.templates, TEMPLATES);
    print_message("%u renderings of %u templates\n", s.renderings, s.templates);
    assert_true(s.renderings >= 500);
}

/* ---- Whole prompts ---- */

/* Reads the lines of one conversation of a template, from its `user` line on. */
static const char *find_conversation(const char *golden, const char *name, unsigned number)
{
    char key[80];
    snprintf(key, sizeof key, "template \"%s\"\n", name);
    const char *at = strstr(golden, key);
    assert_non_null(at);
    for (unsigned i = 0; i <= number; i++)
        assert_non_null(at = strstr(at + 1, "\nsystem"));
    return at + 1;
}

/* Three turns, appended one after the other, have the tokens of one long prompt. */
static void check_whole(const char *golden, const char *name, unsigned number, const char *data,
                        const char *bos, const char *eos)
{
    static line l;
    static char system[MOST_BYTES], user[MOST_BYTES];
    vocabulary v = {0};
    chat *c;
    token_list ids = {0}, whole = {0};
    token_text text = {0};
    char *template = read_template(name);
    const char *at = find_conversation(golden, name, number);
    bool has_system;
    uint32_t last = 0;
    copy_vocabulary(&v, data, template, bos, eos);
    memory_free(template);
    assert_ok(chat_open(v.file, v.tokenizer, day, &c));
    assert_true(read_line(&at, &l));
    has_system = l.has_value;
    strcpy(system, l.value);
    while (read_line(&at, &l) && strcmp(l.word, "system") != 0 && strcmp(l.word, "template") != 0) {
        size_t length = strlen(l.value);
        if (strcmp(l.word, "user") == 0) {
            strcpy(user, l.value);
            continue;
        }
        if (strcmp(l.word, "begin") == 0)
            assert_ok(chat_begin(c, has_system ? system : NULL, user, strlen(user), &ids));
        else if (strcmp(l.word, "reply") == 0)
            assert_ok(tokenizer_encode_plain(v.tokenizer, last, l.value, length, &ids));
        else
            assert_ok(chat_continue(c, last, user, strlen(user), &ids));
        last = ids.items[ids.count - 1];
        assert_true(VECTOR_RESERVE(&text, length));
        memcpy(text.items + text.count, l.value, length);
        text.count += length;
    }
    assert_ok(tokenizer_encode(v.tokenizer, text.items, text.count, false, &whole));
    if (ids.count != whole.count ||
        memcmp(ids.items, whole.items, ids.count * sizeof *ids.items) != 0)
        fail_msg("%s, conversation %u: %zu tokens, and %zu of the whole prompt", name, number,
                 ids.count, whole.count);
    VECTOR_FREE(&ids);
    VECTOR_FREE(&whole);
    VECTOR_FREE(&text);
    chat_close(c);
    free_vocabulary(&v);
}

static void turns_have_the_tokens_of_one_prompt(void **unused)
{
    static const char *const cases[][4] = {
        {"chatml-qwen2.5", "test/data/tokenizers/qwen-2.gguf", "<|endoftext|>", "<|im_end|>"},
        {"llama-3", "test/data/tokenizers/llama-3.gguf", "<|begin_of_text|>", "<|eot_id|>"},
        {"phi-3", "test/data/tokenizers/phi-3.gguf", "<s>", "<|endoftext|>"},
        {"zephyr", "test/data/tokenizers/llama-2.gguf", "<s>", "</s>"},
        {"mistral-v1", "test/data/tokenizers/llama-2.gguf", "<s>", "</s>"},
        {"llama-2", "test/data/tokenizers/llama-2.gguf", "<s>", "</s>"},
        {"phi-4-mini", "test/data/tokenizers/phi-4-mini.gguf", "<|endoftext|>", "<|endoftext|>"},
    };
    char *golden = read_text(FOLDER "golden.txt");
    (void)unused;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        for (unsigned number = 0; number < 4; number++)
            check_whole(golden, cases[i][0], number, cases[i][1], cases[i][2], cases[i][3]);
    memory_free(golden);
}

/* ---- Words of the user ---- */

/* Some files have control words as user-defined or ordinary tokens. */
static void words_of_the_user_are_text(void **unused)
{
    static const int32_t kinds[] = {KIND_CONTROL, KIND_USER, KIND_NORMAL};
    static const char user[] = "<|im_end|><s></s><|im_start|>";
    (void)unused;
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        vocabulary v = {0};
        token_list ids = {0};
        char *template = read_template("chatml");
        chat *c;
        size_t words = 0;
        add_bytes(&v);
        add_control(&v, "<s>", KIND_CONTROL);
        add_control(&v, "</s>", KIND_CONTROL);
        add_control(&v, "<|im_start|>", kinds[i]);
        add_control(&v, "<|im_end|>", kinds[i]);
        finish_bytes(&v, template, "<s>", "</s>");
        memory_free(template);
        assert_ok(chat_open(v.file, v.tokenizer, day, &c));
        assert_ok(chat_begin(c, NULL, user, strlen(user), &ids));
        for (size_t k = 0; k < ids.count; k++)
            words += v.kinds[ids.items[k]] != KIND_BYTE;
        assert_int_equal(words, 3);
        assert_true(tokenizer_is_end(v.tokenizer, id_of(&v, "<|im_end|>")));
        assert_true(tokenizer_is_end(v.tokenizer, id_of(&v, "</s>")));
        assert_false(tokenizer_is_end(v.tokenizer, id_of(&v, "<|im_start|>")));
        assert_int_equal(tokenizer_token_bytes(v.tokenizer, ids.items[0]).length, 0);
        VECTOR_FREE(&ids);
        chat_close(c);
        free_vocabulary(&v);
    }
}

/* Of a reply that already ends with the space before Llama 2's eos, no second one is closed. */
static void a_space_before_eos_is_not_doubled(void **unused)
{
    vocabulary v = {0};
    token_list ids = {0};
    chat *c;
    char *template = read_template("llama-2");
    (void)unused;
    add_bytes(&v);
    add_control(&v, "<s>", KIND_CONTROL);
    add_control(&v, "</s>", KIND_CONTROL);
    finish_bytes(&v, template, "<s>", "</s>");
    memory_free(template);
    assert_ok(chat_open(v.file, v.tokenizer, day, &c));
    assert_ok(chat_continue(c, 1 + 'i', "a", 1, &ids));
    assert_int_equal(ids.items[0], 1 + ' ');
    assert_int_equal(ids.items[1], id_of(&v, "</s>"));
    ids.count = 0;
    assert_ok(chat_continue(c, 1 + ' ', "a", 1, &ids));
    assert_int_equal(ids.items[0], id_of(&v, "</s>"));
    ids.count = 0;
    assert_ok(chat_continue(c, RLXVK_NO_TOKEN, "a", 1, &ids));
    assert_int_equal(ids.items[0], 1 + ' ');
    VECTOR_FREE(&ids);
    chat_close(c);
    free_vocabulary(&v);
}

/* A system turn that is not written out is no text of the template's own. */
static void what_the_template_fills_in_is_not_its_own(void **unused)
{
    static const char *const templates[] = {
        "<|im_start|>system\n{{ text }}<|im_end|>\n<|im_start|>assistant\n",
        "'<|im_start|>system\\n' + text + '<|im_end|>' '<|im_start|>assistant\\n'",
        "\"<|im_start|>system\\n\" + text + \"<|im_end|>\" '<|im_start|>assistant\\n'"};
    static const char expected[] = "user\na";
    (void)unused;
    for (size_t i = 0; i < ARRAY_COUNT(templates); i++) {
        vocabulary v = {0};
        token_list ids = {0};
        chat *c;
        add_bytes(&v);
        add_control(&v, "<|im_start|>", KIND_CONTROL);
        add_control(&v, "<|im_end|>", KIND_CONTROL);
        finish_bytes(&v, templates[i], NULL, NULL);
        assert_ok(chat_open(v.file, v.tokenizer, day, &c));
        assert_ok(chat_begin(c, NULL, "a", 1, &ids));
        for (size_t k = 0; k < sizeof expected - 1; k++)
            assert_int_equal(ids.items[1 + k], 1 + expected[k]);
        VECTOR_FREE(&ids);
        chat_close(c);
        free_vocabulary(&v);
    }
}

/* ---- Refusals ---- */

static void check_refusal(const char *template, const char *word, rlxvk_status expected,
                          const char *sentence)
{
    vocabulary v = {0};
    chat *c = (chat *)&v;
    add_bytes(&v);
    if (word)
        add_control(&v, word, KIND_CONTROL);
    finish_bytes(&v, template, NULL, NULL);
    assert_int_equal(chat_open(v.file, v.tokenizer, day, &c), expected);
    assert_null(c);
    if (!strstr(rlxvk_last_error(), sentence))
        fail_msg("'%s' does not say '%s'", rlxvk_last_error(), sentence);
    free_vocabulary(&v);
}

static void refusals(void **unused)
{
    static const struct {
        const char *template, *word;
        rlxvk_status status;
        const char *sentence;
    } cases[] = {
        {NULL, NULL, RLXVK_E_UNKNOWN_NAME, "has no chat template"},
        {"{% for turn in messages %}\n{{ turn }}", NULL, RLXVK_E_UNSUPPORTED,
         "'{% for turn in messages %} {{ turn }}...' is of no known family (ChatML, Llama 2, "
         "Llama 3, Mistral, Gemma, Phi 3, Phi 4, Granite, Zephyr, DeepSeek)"},
        {"", NULL, RLXVK_E_UNSUPPORTED, "no known family"},
        {"<|im_start|>assistant\n<|im_end|>[INST]", "<|im_end|>", RLXVK_E_UNSUPPORTED,
         "signs of both ChatML and Mistral"},
        {"{{ '<|user|>' + x }}", NULL, RLXVK_E_UNSUPPORTED,
         "'{{ '<|user|>' + x }}...' is like those of Zephyr, but of a version"},
        {"<|im_start|>assistant\\n<|im_end|>", NULL, RLXVK_E_UNKNOWN_NAME,
         "no token that ends a reply (<|im_end|>);"},
        {"'User: ' + message['content'] + '\\n\\n' 'Assistant: ' + message['content'] + eos_token "
         "'Assistant:'",
         NULL, RLXVK_E_UNKNOWN_NAME, "no token that ends a reply (eos)"},
    };
    (void)unused;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        check_refusal(cases[i].template, cases[i].word, cases[i].status, cases[i].sentence);
}

/* Each family has a template, and each format is that of one. */
static void every_format_has_a_template(void **unused)
{
    static state s;
    static line l;
    bool seen[64] = {false};
    char *text = read_text(FOLDER "golden.txt");
    (void)unused;
    assert_true(chat_format_count <= ARRAY_COUNT(seen));
    for (const char *at = text; read_line(&at, &l);) {
        take_line(&s, &l);
        for (size_t i = 0; s.chat && i < chat_format_count; i++)
            seen[i] |= strcmp(chat_formats[i].family, chat_family(s.chat)) == 0 &&
                       strcmp(chat_formats[i].version, chat_version(s.chat)) == 0;
    }
    close_template(&s);
    VECTOR_FREE(&s.ids);
    memory_free(text);
    for (size_t i = 0; i < chat_format_count; i++)
        if (!seen[i])
            fail_msg("%s %s: no template in " FOLDER, chat_formats[i].family,
                     chat_formats[i].version);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_renderings),
        cmocka_unit_test(turns_have_the_tokens_of_one_prompt),
        cmocka_unit_test(words_of_the_user_are_text),
        cmocka_unit_test(a_space_before_eos_is_not_doubled),
        cmocka_unit_test(what_the_template_fills_in_is_not_its_own),
        cmocka_unit_test(refusals),
        cmocka_unit_test(every_format_has_a_template),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
