/* The subcommands of the rlxvk program. argv[0] is "rlxvk" and the subcommand's name. They return
 * the exit code; if standard output could not be written, main returns another one. */
#ifndef RLXVK_COMMANDS_H
#define RLXVK_COMMANDS_H

enum exit_code { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

int command_info(int argc, char **argv);
int command_conform(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_run(int argc, char **argv);
int command_show(int argc, char **argv);
int command_generate(int argc, char **argv);
int command_train(int argc, char **argv);
int command_ops(int argc, char **argv);

#endif
