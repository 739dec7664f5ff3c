/* The device memory that a program may use, and what to say if that is too little. */
#ifndef RLXVK_PROGRAM_ROOM_H
#define RLXVK_PROGRAM_ROOM_H

#include "program/program.h"

/* The most bytes that the plan is to put on the device, so that weights beyond it move to the host.
 * That is the option, or most of what the device has free. UINT64_MAX: nothing needs to move. */
uint64_t room_on_device(const program *p);
/* E_OUT_OF_DEVICE_MEMORY if the plan needs more than the option allows. */
rlxvk_status room_check(const program *p);
/* If the plan needs more than the option allows, and part of it are prepared weights: lowers
 * prepared_bytes in the options and returns true. */
bool room_prepare_less(const program *p, program_options *o);
/* After memory for the program could not be allocated: changes options so that it needs less on the
 * device. First more weights go to the host, as far as host_weights_bytes allows; then none are
 * prepared. False if nothing is left to change. */
bool room_shrink(const program *p, program_options *o);
/* Adds to the last error what the plan needs, what is free and the remedies, if there was not
 * enough device memory for it. Returns the status. */
rlxvk_status room_explain(const program *p, rlxvk_status status);

#endif
