/*
 * A log of the calls of a sequence, printed if the library and the model differ. If
 * RLXVK_TEST_FUZZ_ALOUD is set, each call is printed before it is made, because a call may crash.
 */
#ifndef RLXVK_STORY_H
#define RLXVK_STORY_H

#include "base/compiler.h"
#include "support/model.h"

/* Begins a new sequence and forgets the one before. */
void story_begin(void);
/* Prints how many calls were compared in all. */
void story_report(void);

void tell(const char *format, ...) FORMATS(1, 2);
/* Logs a word and values, f32 words or bytes. If `data` is NULL, logs only the word. */
void tell_bytes(const char *what, bool words, const void *data, size_t size);

void tell_options(const rlxvk_compile_options *o);

/* Prints the log and ends the program. */
_Noreturn void differ(void);

/* Whether the call was accepted. If the model does not allow this status, ends the program. */
bool expect(rlxvk_status got, status_set allowed);

/* Compares values. Words are compared bit by bit, except that all NaN count as equal. */
void expect_bytes(const char *what, size_t index, bool words, const void *got,
                  const model_bytes *wanted);

#endif
