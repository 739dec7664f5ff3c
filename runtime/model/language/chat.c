/* See chat.h. */
#include "model/language/chat.h"
#include "model/language/chat_formats.h"
#include "model/language/unicode.h"
#include "model/language/utf8.h"

#include <stdio.h>
#include <string.h>

#define KEY "tokenizer.chat_template"

struct chat {
    const tokenizer *tokenizer;
    const chat_format *format;
    bool has_bos;   /* the template has bos */
    bool has_own;   /* ... and a system text of its own */
    token_text own; /* that text */
    char date[32];  /* of today, as the format writes it */
};

/* ---- Text ---- */

static rlxvk_status append(token_text *to, const char *bytes, size_t length)
{
    if (length == 0)
        return RLXVK_OK;
    if (!VECTOR_RESERVE(to, length))
        return status_fail_memory("chat text");
    memcpy(to->items + to->count, bytes, length);
    to->count += length;
    return RLXVK_OK;
}

static gguf_string string_of(const char *text)
{
    return (gguf_string){text, strlen(text)};
}

/* The place of a word in a text; its end if it is not there. */
static size_t find(const token_text *in, size_t from, const char *word)
{
    size_t length = strlen(word);
    for (size_t at = from; length <= in->count && at <= in->count - length; at++)
        if (memcmp(in->items + at, word, length) == 0)
            return at;
    return in->count;
}

static bool contains(const token_text *in, const char *word)
{
    return find(in, 0, word) < in->count;
}

/* Python's str.strip also drops U+001C to U+001F. */
static bool is_space(uint32_t point)
{
    return unicode_is_space(point) || (point >= 0x1c && point <= 0x1f);
}

static gguf_string trim_end(gguf_string s)
{
    uint64_t end = 0;
    for (size_t at = 0, size; at < s.length; at += size) {
        uint32_t point = utf8_decode((const uint8_t *)s.data + at, (size_t)s.length - at, &size);
        if (point == UTF8_INVALID || !is_space(point))
            end = at + size;
    }
    return (gguf_string){s.data, end};
}

static gguf_string trim_start(gguf_string s)
{
    while (s.length) {
        size_t size;
        uint32_t point = utf8_decode((const uint8_t *)s.data, (size_t)s.length, &size);
        if (point == UTF8_INVALID || !is_space(point))
            break;
        s.data += size;
        s.length -= size;
    }
    return s;
}

/* Letters as in strftime: d, b, B, m, Y. Others stand for themselves. */
static void write_date(const char *letters, system_day day, char *out, size_t size)
{
    static const char *const months[] = {"January",   "February", "March",    "April",
                                         "May",       "June",     "July",     "August",
                                         "September", "October",  "November", "December"};
    const char *month = months[MIN(MAX(day.month, 1), 12) - 1];
    text to = {out, size, 0};
    for (const char *l = letters; *l; l++) {
        if (*l == 'd')
            text_append(&to, "%02d", day.day);
        else if (*l == 'b')
            text_append(&to, "%.3s", month);
        else if (*l == 'B')
            text_append(&to, "%s", month);
        else if (*l == 'Y')
            text_append(&to, "%d", day.year);
        else
            text_append(&to, "%c", *l);
    }
}

/* ---- Recognizing ---- */

/* Copies a template with each \n as a newline, and if `quotes`, with single quotes only. Templates
 * differ in this without a difference in what they render. */
static rlxvk_status spell(gguf_string template, bool quotes, token_text *out)
{
    for (uint64_t i = 0; i < template.length; i++) {
        char c = template.data[i];
        bool newline = c == '\\' && i + 1 < template.length && template.data[i + 1] == 'n';
        c = newline ? '\n' : quotes && c == '"' ? '\'' : c;
        i += newline;
        if (!VECTOR_PUSH(out, c))
            return status_fail_memory("chat template");
    }
    return RLXVK_OK;
}

static bool matches(const chat_format *f, const token_text *template)
{
    for (size_t i = 0; i < ARRAY_COUNT(f->has); i++)
        if (f->has[i] && !contains(template, f->has[i]))
            return false;
    for (size_t i = 0; i < ARRAY_COUNT(f->lacks); i++)
        if (f->lacks[i] && contains(template, f->lacks[i]))
            return false;
    return true;
}

static bool has_sign(const token_text *template, const chat_sign *sign)
{
    return contains(template, sign->sign) && !(sign->unless && contains(template, sign->unless));
}

/* Writes how a template begins, in one line. */
static void write_beginning(gguf_string template, char *out, size_t size)
{
    size_t used = 0;
    for (uint64_t i = 0; i < template.length && i < 40 && used + 1 < size; i++) {
        char c = template.data[i];
        out[used++] = c >= ' ' && c <= '~' ? c : ' ';
    }
    out[used] = 0;
}

static rlxvk_status refuse(gguf_string template, const char *family, const char *second)
{
    char begin[48], known[160] = "";
    const char *before = "";
    write_beginning(template, begin, sizeof begin);
    if (second)
        return status_fail(RLXVK_E_UNSUPPORTED,
                           "the model's chat template '%s...' has signs of both %s and %s; write "
                           "the prompt by hand, without --chat",
                           begin, family, second);
    if (family)
        return status_fail(
            RLXVK_E_UNSUPPORTED,
            "the model's chat template '%s...' is like those of %s, but of a version "
            "that is not known; write the prompt by hand, without --chat",
            begin, family);
    for (size_t i = 0; i < chat_sign_count; i++) {
        if (strcmp(chat_signs[i].family, before) != 0)
            text_append(&(text){known, sizeof known, strlen(known)}, "%s%s", i ? ", " : "",
                        chat_signs[i].family);
        before = chat_signs[i].family;
    }
    return status_fail(RLXVK_E_UNSUPPORTED,
                       "the model's chat template '%s...' is of no known family (%s); write the "
                       "prompt by hand, without --chat",
                       begin, known);
}

static rlxvk_status recognize(gguf_string template, const token_text *spelled,
                              const chat_format **out)
{
    const char *family = NULL;
    for (size_t i = 0; i < chat_sign_count; i++) {
        if (!has_sign(spelled, &chat_signs[i]))
            continue;
        if (family && strcmp(family, chat_signs[i].family) != 0)
            return refuse(template, family, chat_signs[i].family);
        family = chat_signs[i].family;
    }
    for (size_t i = 0; family && i < chat_format_count; i++)
        if (strcmp(chat_formats[i].family, family) == 0 && matches(&chat_formats[i], spelled)) {
            *out = &chat_formats[i];
            return RLXVK_OK;
        }
    return refuse(template, family, NULL);
}

/* ---- A system text of the template's own ---- */

/* Copies a literal from `from` to `to`. A backslash before a quote or a backslash is dropped. */
static rlxvk_status copy_literal(const token_text *in, size_t from, size_t to, token_text *out)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = from; i < to; i++) {
        bool escape = in->items[i] == '\\' && i + 1 < to && strchr("'\"\\", in->items[i + 1]);
        TRY(append(out, &in->items[i += escape], 1));
    }
error:
    return status;
}

/* The end of a literal that began before `from`: its quote, or `end` if that comes first. Text
 * outside of literals ends at a brace. */
static size_t literal_end(const token_text *in, size_t from, size_t end, char before)
{
    char quote = before == '\'' || before == '"' ? before : '{';
    for (size_t i = from; i < end; i++) {
        if (in->items[i] == '\\')
            i++;
        else if (in->items[i] == quote)
            return i;
    }
    return end;
}

/* Finds a system turn that is written out in one literal, or outside of literals. */
static rlxvk_status find_own(chat *c, const token_text *template)
{
    const char *turn = c->format->system, *place = turn ? strchr(turn, CHAT_SYSTEM[0]) : NULL;
    char before[64], after[64];
    if (!place || place == turn || c->format->always_system)
        return RLXVK_OK;
    snprintf(before, sizeof before, "%.*s", (int)(place - turn), turn);
    snprintf(after, sizeof after, "%.*s", (int)strcspn(place + 1, "\n" CHAT_EOS), place + 1);
    if (*after == 0)
        return RLXVK_OK;
    for (size_t at = 0; (at = find(template, at, before)) < template->count; at++) {
        size_t from = at + strlen(before), to = find(template, from, after);
        char quote = at ? template->items[at - 1] : 0;
        if (to == template->count || literal_end(template, from, to, quote) < to)
            continue;
        c->has_own = true;
        return copy_literal(template, from, to, &c->own);
    }
    return RLXVK_OK;
}

/* ---- Control words ---- */

/* Makes control tokens of all words that the vocabulary has, also those of other families: a user's
 * text spells none of them. Without a token that ends it, a reply would not end. */
static rlxvk_status prepare_words(const chat_format *f, tokenizer *t)
{
    bool by_eos = strchr(f->close, CHAT_EOS[0]),
         ends = by_eos && tokenizer_eos(t) != RLXVK_NO_TOKEN;
    for (size_t i = 0; i < chat_word_count; i++) {
        uint32_t id = tokenizer_find(t, chat_words[i]);
        bool closes = strncmp(f->close, chat_words[i], strlen(chat_words[i])) == 0;
        if (id == RLXVK_NO_TOKEN)
            continue;
        tokenizer_make_control(t, id);
        ends = ends || (closes && tokenizer_is_end(t, id));
    }
    if (ends)
        return RLXVK_OK;
    return status_fail(RLXVK_E_UNKNOWN_NAME,
                       "the model's chat template is that of %s, but its vocabulary has no token "
                       "that ends a reply (%.*s); write the prompt by hand, without --chat",
                       f->family, by_eos ? 3 : (int)strcspn(f->close, "\n"),
                       by_eos ? "eos" : f->close);
}

/* ---- Opening ---- */

static rlxvk_status prepare(chat *c, gguf_string template, tokenizer *t, system_day today)
{
    token_text spelled = {0}, unescaped = {0};
    uint32_t bos = tokenizer_bos(t);
    rlxvk_status status;
    TRY(spell(template, true, &spelled));
    TRY(spell(template, false, &unescaped));
    TRY(recognize(template, &spelled, &c->format));
    c->has_bos = contains(&spelled, "bos_token");
    if (c->format->date)
        write_date(c->format->date, today, c->date, sizeof c->date);
    TRY(find_own(c, &unescaped));
    TRY(prepare_words(c->format, t));
    c->has_bos = c->has_bos && bos != RLXVK_NO_TOKEN;
error:
    VECTOR_FREE(&spelled);
    VECTOR_FREE(&unescaped);
    return status;
}

rlxvk_status chat_open(const gguf_file *file, tokenizer *t, system_day today, chat **out)
{
    gguf_string template;
    *out = NULL;
    if (!gguf_get_string(file, KEY, &template))
        return status_fail(RLXVK_E_UNKNOWN_NAME,
                           "the model has no chat template (" KEY "); leave out --chat, and write "
                           "its form of a turn into the prompt");
    chat *c = memory_zeroed(1, sizeof *c);
    if (!c)
        return status_fail_memory("chat");
    c->tokenizer = t;
    rlxvk_status status = prepare(c, template, t, today);
    if (status == RLXVK_OK)
        *out = c;
    else
        chat_close(c);
    return status;
}

void chat_close(chat *c)
{
    if (!c)
        return;
    VECTOR_FREE(&c->own);
    memory_free(c);
}

const char *chat_family(const chat *c)
{
    return c->format->family;
}

const char *chat_version(const chat *c)
{
    return c->format->version;
}

/* ---- Rendering ---- */

/* Tokens are appended to `out`. A run of text is kept until a control token ends it, because it is
 * encoded as a whole. Texts of a format and of the user may share tokens. */
typedef struct writer {
    const chat *chat;
    gguf_string system, user;
    token_list *out;
    token_text run;
    uint32_t before; /* the token in front of the run */
} writer;

static rlxvk_status end_run(writer *w)
{
    rlxvk_status status = RLXVK_OK;
    if (w->run.count)
        TRY(tokenizer_encode_plain(w->chat->tokenizer, w->before, w->run.items, w->run.count,
                                   w->out));
    w->run.count = 0;
error:
    return status;
}

static rlxvk_status write_token(writer *w, uint32_t id)
{
    rlxvk_status status;
    TRY(end_run(w));
    if (!VECTOR_PUSH(w->out, id))
        TRY(status_fail_memory("tokens"));
    w->before = id;
error:
    return status;
}

/* The control token with which the text of a format begins, and its length there. */
static uint32_t word_at(const tokenizer *t, const char *at, size_t *out_length)
{
    for (size_t i = 0; i < chat_word_count; i++) {
        *out_length = strlen(chat_words[i]);
        if (strncmp(at, chat_words[i], *out_length) == 0)
            return tokenizer_find(t, chat_words[i]);
    }
    return RLXVK_NO_TOKEN;
}

/* Writes one of the texts of a format. */
static rlxvk_status write_format(writer *w, const char *format)
{
    const tokenizer *t = w->chat->tokenizer;
    rlxvk_status status = RLXVK_OK;
    for (const char *at = format; *at;) {
        size_t length;
        uint32_t word = word_at(t, at, &length);
        if (word != RLXVK_NO_TOKEN)
            TRY(write_token(w, word));
        else if (*at == CHAT_BOS[0] && w->chat->has_bos)
            TRY(write_token(w, tokenizer_bos(t)));
        else if (*at == CHAT_EOS[0])
            TRY(write_token(w, tokenizer_eos(t)));
        else if (*at == CHAT_USER[0])
            TRY(append(&w->run, w->user.data, (size_t)w->user.length));
        else if (*at == CHAT_SYSTEM[0])
            TRY(append(&w->run, w->system.data, (size_t)w->system.length));
        else if (*at == CHAT_DATE[0])
            TRY(append(&w->run, w->chat->date, strlen(w->chat->date)));
        else if (*at != CHAT_BOS[0])
            TRY(append(&w->run, at, 1));
        at += word != RLXVK_NO_TOKEN ? length : 1;
    }
error:
    return status;
}

/* Writes the system turn. A text of the template's own may have the date in it. */
static rlxvk_status write_system(writer *w, bool given)
{
    const chat *c = w->chat;
    const char *turn = c->format->system;
    rlxvk_status status = RLXVK_OK;
    if (given || c->format->always_system)
        return write_format(w, turn);
    if (c->has_own) {
        w->system = (gguf_string){c->own.items, c->own.count};
        return write_format(w, turn);
    }
    if (c->format->own) {
        char before[64];
        const char *place = strchr(turn, CHAT_SYSTEM[0]);
        snprintf(before, sizeof before, "%.*s", (int)(place - turn), turn);
        TRY(write_format(w, before));
        TRY(write_format(w, c->format->own));
        TRY(write_format(w, place + 1));
    }
error:
    return status;
}

static rlxvk_status check_system(const chat *c, bool given)
{
    if (given && !c->format->system && !c->format->first)
        return status_fail(RLXVK_E_UNSUPPORTED,
                           "the model's chat template (%s, %s) has no place for a system text; "
                           "leave out --system, and put the text into the first turn",
                           c->format->family, c->format->version);
    if (!given && c->format->asks_system)
        return status_fail(RLXVK_E_UNSUPPORTED,
                           "the model's chat template (%s, %s) is not known well enough to write "
                           "it; give a system text with --system",
                           c->format->family, c->format->version);
    return RLXVK_OK;
}

rlxvk_status chat_begin(const chat *c, const char *system, const char *user, size_t length,
                        token_list *out)
{
    const chat_format *f = c->format;
    writer w = {.chat = c, .out = out, .before = RLXVK_NO_TOKEN};
    size_t count = out->count;
    rlxvk_status status;
    bool joined = system && f->first;
    w.system = string_of(system ? system : "");
    w.user = (gguf_string){user, length};
    if (f->trim == CHAT_TRIMS_ALL)
        w.system = trim_end(trim_start(w.system));
    if (f->trim != CHAT_KEEPS)
        w.user = trim_end(w.user);
    if (f->trim != CHAT_KEEPS && !(joined && f->trim == CHAT_TRIMS_TOGETHER))
        w.user = trim_start(w.user);
    TRY(check_system(c, system != NULL));
    if (f->begins)
        TRY(write_format(&w, CHAT_BOS));
    if (f->system)
        TRY(write_system(&w, system != NULL));
    TRY(write_format(&w, joined ? f->first : f->user));
    TRY(write_format(&w, f->prompt));
    TRY(end_run(&w));
error:
    VECTOR_FREE(&w.run);
    out->count = status == RLXVK_OK ? out->count : count;
    return status;
}

/* A format whose replies end with a space writes it only once: the model may have made it. */
static const char *closing(const chat *c, uint32_t last)
{
    gguf_string bytes = tokenizer_token_bytes(c->tokenizer, last);
    const char *close = c->format->close;
    bool spaced = bytes.length && bytes.data[bytes.length - 1] == ' ';
    return spaced && *close == ' ' ? close + 1 : close;
}

rlxvk_status chat_continue(const chat *c, uint32_t last, const char *user, size_t length,
                           token_list *out)
{
    writer w = {.chat = c, .out = out, .before = last};
    size_t count = out->count;
    rlxvk_status status;
    w.user = (gguf_string){user, length};
    if (c->format->trim != CHAT_KEEPS)
        w.user = trim_end(trim_start(w.user));
    TRY(write_format(&w, closing(c, last)));
    TRY(write_format(&w, c->format->user));
    TRY(write_format(&w, c->format->prompt));
    TRY(end_run(&w));
error:
    VECTOR_FREE(&w.run);
    out->count = status == RLXVK_OK ? out->count : count;
    return status;
}
