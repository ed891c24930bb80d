import { existsSync } from 'node:fs'
import { program } from '../base/program.ts'
import type { CommandLine, Program } from './command.ts'
import { Failure } from './exit-codes.ts'
import { chooseTarget, type SocketTarget } from './target.ts'

/**
 * Requires root, and the host itself as the target.
 * @param does what the command does on the host it runs on
 * @param reason why it is for root
 * @returns the socket of the daemon
 * @throws Failure that names the command to type
 */
export function requireLocalRoot(
  { command: { name }, options }: CommandLine,
  { does, reason }: { readonly does: string; readonly reason: string },
): SocketTarget {
  const target = chooseTarget(options, process.env, () => '')
  if (target.kind !== 'socket')
    throw new Failure(
      'usage',
      `${name} ${does} the ${program.noun} it runs on: ssh root@${target.host} ${program.ctl} ${name}`,
    )
  if (process.getuid?.() !== 0) throw new Failure('notLoggedIn', `${reason}: sudo ${program.ctl} ${name}`)
  return target
}

/** Replaces this process by another program of the package, by execve(2). */
export function become(file: string, args: readonly string[]): never {
  const path = `${import.meta.dirname}/${file}`
  if (!existsSync(path))
    throw new Failure(
      'failed',
      `this command works on the ${program.noun} it runs on and is not part of this installation; run it on the ${program.noun}, where the package ${program.folder} contains it`,
    )
  return becomeProgram(process.execPath, [path, ...args], process.env)
}

/** Replaces this process by a program, by execve(2). @param path of its file */
export function becomeProgram(
  path: string,
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): never {
  if (!process.execve)
    throw new Failure('failed', `this command cannot run on ${process.platform}; use Linux or macOS`)
  return process.execve(path, [path, ...args], environment)
}

/** Replaces this process by the program that makes and reads archives with the code of the daemon. */
export const handOver: Program = async (
  { command, arguments: words, options, lists = {}, outputFile },
  table,
) => {
  const refused = (['host', 'user', 'fingerprint', 'socket'] as const).find(
    (name) => options[name] !== undefined,
  )
  if (refused !== undefined)
    throw new Failure(
      'usage',
      `${command.name} does not take --${refused}: it works on files of this machine`,
    )
  const single = Object.entries(options).map(([name, value]) =>
    table.options.get(name)?.value === undefined ? `--${name}` : `--${name}=${value}`,
  )
  const many = Object.entries(lists).flatMap(([name, values]) => values.map((value) => `--${name}=${value}`))
  const archive = outputFile === undefined ? [] : [`--archive=${outputFile}`]
  become('definition.cjs', [...single, ...many, ...archive, '--', ...command.name.split(' '), ...words])
}
