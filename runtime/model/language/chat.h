/*
 * Puts a model's chat template around the turns of a conversation. The template is not executed:
 * it is recognized by what it contains, and a table (chat_formats.c) says what such templates
 * render. Control words become the vocabulary's tokens. Texts of the user and of the system never
 * do, whatever they spell.
 *
 * A conversation is appended to one list of tokens or one KV cache. It consists of chat_begin, the
 * reply as the model makes it, chat_continue, the next reply, and so on.
 */
#ifndef RLXVK_CHAT_H
#define RLXVK_CHAT_H

#include "base/system.h"
#include "model/language/tokenizer.h"

typedef struct chat chat;

/*
 * Recognizes the template in `tokenizer.chat_template`. Makes its control words control tokens of
 * the tokenizer, which must outlive the chat. The file may be closed afterwards.
 *   E_UNKNOWN_NAME   the file has no template, or the vocabulary lacks the token that ends a reply
 *   E_UNSUPPORTED    the template is of no known family, of several, or of an unknown version
 */
RLXVK_MUST_CHECK rlxvk_status chat_open(const gguf_file *file, tokenizer *t, system_day today,
                                        chat **out);
void chat_close(chat *c); /* accepts NULL */

/* The family of the template, for example "ChatML", and its version. */
const char *chat_family(const chat *c);
const char *chat_version(const chat *c);

/* Appends what begins a conversation, up to where the reply begins. `system` may be NULL: then the
 * template's own system text is used, if it has one. E_UNSUPPORTED: the template has no place for a
 * system text, or needs one. */
RLXVK_MUST_CHECK rlxvk_status chat_begin(const chat *c, const char *system, const char *user,
                                         size_t length, token_list *out);
/* Appends what stands between two replies: the end of the reply, the user's turn, and where the
 * next reply begins. `last` is the last token of the reply before its end; RLXVK_NO_TOKEN if it has
 * none. */
RLXVK_MUST_CHECK rlxvk_status chat_continue(const chat *c, uint32_t last, const char *user,
                                            size_t length, token_list *out);

#endif
