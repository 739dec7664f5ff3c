/*
 * What a sequence of calls did so far, told call by call and printed where the library and the
 * model differ. With RLXVK_TEST_FUZZ_ALOUD set each call is printed before it is made, for those
 * that crash.
 */
#ifndef RLXVK_STORY_H
#define RLXVK_STORY_H

#include "support/model.h"

/* Forgets the sequence before. */
void story_begin(void);
/* Prints how many calls have been compared in all. */
void story_report(void);

void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Values after a word: f32 words or bytes; nothing for NULL. */
void tell_bytes(const char *what, bool words, const void *data, size_t size);

void tell_options(const rlxvk_compile_options *o);

/* Prints the story and ends the program. */
_Noreturn void differ(void);

/* Whether the call was accepted; ends the program where the model does not allow that status. */
bool expect(rlxvk_status got, status_set allowed);

/* Words are compared as bits, all NaN being alike. */
void expect_bytes(const char *what, size_t index, bool words, const void *got,
                  const model_bytes *wanted);

#endif
