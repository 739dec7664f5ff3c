/* Ends the process if a test takes too long. */
#ifndef RLXVK_TIME_LIMIT_H
#define RLXVK_TIME_LIMIT_H

/* From here to time_limit_end, at most so many seconds may pass. Only one limit at a time. */
void time_limit_begin(double seconds);
void time_limit_end(void);

#endif
