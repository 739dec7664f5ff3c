/*
 * The file of rlxvk conform --resume: what is known of each case, one line for its begin and one
 * for its end. The lines reach the disk at once, so a reboot loses only the cases that were
 * running. Its first lines name the device, driver, seeds and options.
 */
#ifndef RLXVK_CONFORM_RESUME_H
#define RLXVK_CONFORM_RESUME_H

#include "conform/conform_job.h"

/* Opens the file of j->options->resume, or makes it. Fills the results of the cases that ended, and
 * counts in j->begun how often each other case was begun. A torn last line is removed.
 *   E_FILE   it cannot be read or written, or another run writes it
 *   E_ATTR   it is another file, or of another device, driver, seed, option or list of cases */
RLXVK_MUST_CHECK rlxvk_status conform_resume_open(conform_job *j);
/* For a process of --jobs that is no fork: takes part in the caller's file. */
RLXVK_MUST_CHECK rlxvk_status conform_resume_join(conform_job *j);
void conform_resume_close(conform_job *j);

/* Notes the begin or end of a case. They do nothing without a file. If writing fails, they keep
 * errno in j->common->resume_error. The process that runs the case notes both, so that the end is
 * noted before another begins. If it crashes, the caller notes the end. */
void conform_resume_begin(const conform_job *j, size_t i);
void conform_resume_end(const conform_job *j, size_t i);

#endif
