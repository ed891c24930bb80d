import { basename } from 'node:path'
import { CommandFailed, type CommandRunner, type CommandStreamer } from './runner.ts'

/**
 * The memory that a program of others may take while it reads untrusted input: a chart of some hundred bytes makes helm take
 * all that the machine has. 2 GiB of addresses, since the kernel can bound only these for one process without a unit. The runtime of Go
 * reserves addresses before it does anything: kubectl, helm and kubeadm (`version`, `config`, `init --dry-run`) do their work with 900 MiB
 * of them and not with 768, on 2 and on 64 cores, so that more than 1 GiB is left for their input.
 */
export const mostMemoryMiB = 2_048

// Messages of the runtime of Go, https://go.dev/src/runtime/malloc.go and panic.go, and of perror(3) for ENOMEM.
const metLine =
  /^(?:fatal error: (?:runtime: )?(?:out of memory|failed to reserve|cannot (?:allocate|map|reserve))|runtime: (?:out of memory|cannot allocate memory|failed to create new OS thread)|(?:prlimit|timeout): .*cannot allocate memory$)/im

// prlimit(1) ends with these where exec(2) fails, as env(1) does.
const notRunCodes: readonly (number | undefined)[] = [126, 127]
// timeout(1) quotes the path.
const notRunLine = /^(?:prlimit|timeout): failed to (?:execute|run command) '?(.+?)'?: ([^:\n]+)$/m

/**
 * Runs programs of others that read untrusted input: each process, and each child of it, has a bound for its memory, by prlimit(1)
 * of util-linux, which each Debian has. It is the one place that knows how such a program ends at its bound, or is not started:
 * both are a `CommandFailed`, with `too-much-memory` and `not-started`. Other ends are data, as of the runner.
 */
export function createBoundedRunner(runner: CommandRunner & CommandStreamer): CommandRunner & CommandStreamer
export function createBoundedRunner(runner: CommandRunner): CommandRunner
export function createBoundedRunner(runner: CommandRunner & Partial<CommandStreamer>) {
  const commandOf = (program: string, args: readonly string[]) =>
    ['prlimit', [`--as=${mostMemoryMiB * 1_048_576}`, '--', program, ...args]] as const

  const run: CommandRunner['run'] = async (program, args, options) => {
    const result = await runner.run(...commandOf(program, args), options)
    throwIfBounded(program, result.exitCode, result.stderr)
    return result
  }

  const stream: CommandStreamer['stream'] = async (program, args, options) => {
    // The lines of each thread of Go follow the lines with the reason.
    let telling = ''
    const result = await (runner as CommandStreamer).stream(...commandOf(program, args), {
      ...options,
      onLine(line, from) {
        if (telling === '' && from === 'stderr' && (metLine.test(line) || notRunLine.test(line)))
          telling = line
        options.onLine(line, from)
      },
    })
    throwIfBounded(program, result.exitCode, telling)
    return result
  }
  return { run, stream }
}

/** @throws CommandFailed that says so in words for operators */
function throwIfBounded(program: string, exitCode: number | undefined, stderr: string): void {
  if (exitCode === 0) return
  const fail = (reason: CommandFailed['reason'], detail: string) =>
    new CommandFailed(program, reason, detail, `${basename(program)} ${detail}`)
  const [, path, why] = (notRunCodes.includes(exitCode) ? notRunLine.exec(stderr) : undefined) ?? []
  // That is no fault of its input, as with EACCES on a file system without execution.
  if (path !== undefined) throw fail('not-started', `cannot be run: ${path}: ${why ?? ''}`)
  if (metLine.test(stderr))
    throw fail(
      'too-much-memory',
      `needs more memory than a program may take here, the limit of ${mostMemoryMiB} MiB`,
    )
}
