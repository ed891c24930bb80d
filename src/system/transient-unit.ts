import type { CommandRunner } from './runner.ts'

/**
 * A runner whose programs run outside the daemon's sandbox, as transient units of systemd with the rights of the
 * host: what must write /etc/shadow, for one. Standard input and output are passed through, so a secret stays off
 * the command line.
 */
export function createTransientUnitRunner(runner: CommandRunner): CommandRunner {
  return {
    run: (program, args, options) =>
      runner.run(
        'systemd-run',
        [
          '--pipe',
          '--wait',
          '--collect',
          '--quiet',
          '--description=edgehostd: one privileged step',
          // The unit gets the manager's environment, and its output is parsed.
          '--setenv=LC_ALL=C',
          '--',
          program,
          // systemd expands $NAME in command lines, systemd.service(5); a user name may hold one.
          ...args.map((argument) => argument.replaceAll('$', '$$$$')),
        ],
        options,
      ),
  }
}
