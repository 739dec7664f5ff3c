/* What stands around the turns of a conversation, as the known chat templates have it. */
#ifndef RLXVK_CHAT_FORMATS_H
#define RLXVK_CHAT_FORMATS_H

#include <stdbool.h>
#include <stddef.h>

/* In the texts of a format, these bytes stand for the beginning and the end of a sequence. The last
 * three stand for the user's text, the system text, and the date. */
#define CHAT_BOS    "\1"
#define CHAT_EOS    "\2"
#define CHAT_USER   "\3"
#define CHAT_SYSTEM "\4"
#define CHAT_DATE   "\5"

/* A template is of a family if it contains `sign` but not `unless`. */
typedef struct chat_sign {
    const char *family, *sign;
    const char *unless; /* may be NULL */
} chat_sign;

/* Where a template drops the white space around texts. */
typedef enum chat_trim {
    CHAT_KEEPS,
    CHAT_TRIMS_USER,    /* around the user's texts */
    CHAT_TRIMS_ALL,     /* also around the system text */
    CHAT_TRIMS_TOGETHER /* around the user's texts; with the system text, around both together */
} chat_trim;

/* One version of a family's template. Texts are NULL if it has no such part. */
typedef struct chat_format {
    const char *family, *version;
    const char *has[4];   /* the template contains all of them, spelled as chat_formats.c says */
    const char *lacks[2]; /* ... and none of these */
    const char *system;   /* the turn of the system text */
    const char *first;    /* the user's first turn, if the system text is a part of it */
    const char *user;     /* a turn of the user */
    const char *prompt;   /* what asks for a reply */
    const char *close;    /* what ends a reply; a model's reply ends with its first token */
    const char *own;      /* the system text if the caller gives none */
    const char *date;     /* how CHAT_DATE is written; see chat.c */
    bool always_system;   /* the system turn is there without a system text, too */
    bool asks_system;     /* the template's own system text is not known here */
    chat_trim trim;
    bool begins; /* CHAT_BOS is no part of turns; it begins if the template has it */
} chat_format;

extern const chat_sign chat_signs[];
extern const size_t chat_sign_count;
/* Formats of one family stand in the order in which they are tried. */
extern const chat_format chat_formats[];
extern const size_t chat_format_count;
/* The words of all formats that are control tokens if the vocabulary has them. */
extern const char *const chat_words[];
extern const size_t chat_word_count;

#endif
