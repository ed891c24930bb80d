/**
 * The memory that a program of others may take while it reads what any author may have sent: a chart of some hundred bytes makes helm take
 * all that the machine has. 2 GiB of addresses, which is what the kernel can bound for one process without a unit; helm and kubeadm map
 * about half of that when they do their usual work.
 */
const mostMiB = 2_048

/** A command with its arguments. */
export type Command = readonly [program: string, args: readonly string[]]

/**
 * The command with a bound for the memory of its process and of those that it starts, prlimit(1) of util-linux, which each Debian has.
 * A program that meets it ends by itself; `isMemoryMet` knows that from what it says.
 */
export const withBoundedMemory = (program: string, args: readonly string[]): Command => [
  'prlimit',
  [`--as=${mostMiB * 1_048_576}`, '--', program, ...args],
]

// What the runtime of Go says, https://go.dev/src/runtime/malloc.go and panic.go, and what perror(3) says for ENOMEM.
const metLines =
  /^(?:fatal error: (?:runtime: )?(?:out of memory|cannot (?:allocate|map|reserve))|runtime: (?:out of memory|cannot allocate memory|failed to create new OS thread)|prlimit: .*cannot allocate memory$)/im

/** Whether a bounded program has ended since it met the bound. @param stderr what it wrote to standard error, or the end of it */
export const isMemoryMet = (stderr: string): boolean => metLines.test(stderr)

/** The reason for a user, after the name of the program. */
export const memoryReason = `needs more memory than a program may take here, the limit of ${mostMiB} MiB`

// prlimit(1) ends with these where exec(2) fails, as env(1) does.
const notRun = [126, 127]

/**
 * Why a bounded program could not be begun, as with EACCES on a file system without execution: that is no fault of what it was to read.
 * @returns the end of a sentence after its name; undefined where it was begun
 */
export function notRunReason({
  exitCode,
  stderr,
}: {
  readonly exitCode: number | undefined
  readonly stderr: string
}): string | undefined {
  if (exitCode === undefined || !notRun.includes(exitCode)) return undefined
  const [, reason] = /^(?:prlimit|timeout): failed to (?:execute|run command) (.+)$/m.exec(stderr) ?? []
  return reason === undefined ? undefined : `cannot be run: ${reason}`
}
