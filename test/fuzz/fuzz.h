/*
 * What a fuzz target gives its driver: libFuzzer's own interface, so that either drives it. A
 * target aborts on a finding.
 */
#ifndef RLXVK_FUZZ_H
#define RLXVK_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Optional: before the first input, and, by the plain driver alone, after the last. */
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));
void fuzz_report(void) __attribute__((weak));

#endif
