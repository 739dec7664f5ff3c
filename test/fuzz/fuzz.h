/*
 * The functions of a fuzz target. The interface is that of libFuzzer, so libFuzzer or our own
 * driver can run it. A target aborts if it finds a defect.
 */
#ifndef RLXVK_FUZZ_H
#define RLXVK_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Both are optional. The first is called before the first input. The second is called after the
 * last input, but only by our own driver. */
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));
void fuzz_report(void) __attribute__((weak));

#endif
