import type { Program } from './command.ts'
import type { HostProgram, Context } from './client.ts'
import { isRecord } from '../base/json.ts'
import { findCommand } from './command-line.ts'

/** Loads a program that talks to a host, together with the client. */
export const onHost =
  <Name extends string = never>(load: () => Promise<HostProgram<Name>>) =>
  async (): Promise<Program<Name>> => {
    const { runOnHost } = await import('./run-on-host.ts')
    const program = await load()
    return (line, table) => runOnHost(line, program, table, process.env)
  }

// A user who waits longer for the shell types on.
const longestMs = 1_500
const mostNames = 200

/**
 * `Command.completes` of a command whose first argument is a name known to the daemon. Names are read from the daemon of this machine
 * alone, over its socket: another one could ask for a password.
 * @param load loads the reader of the names
 */
export const offer = (load: () => Promise<ReadNames>): (() => Promise<Program>) =>
  onHost(async () => {
    const read = await load()
    return async (context) => {
      if (context.target.kind !== 'socket') return undefined
      const names = (await read(context)).filter(isOneWord).slice(0, mostNames)
      context.output.write(Buffer.from(names.map((name) => `${name}\n`).join('')))
      return undefined
    }
  })

export type ReadNames = (context: Context) => Promise<readonly string[]>

/**
 * Offers names of a list of the API, of its first page.
 * @param field of an item, with dots: `metadata.name`
 */
export const offerField = (path: string, field: string): (() => Promise<Program>) =>
  offer(() =>
    Promise.resolve(async ({ client }) => {
      const { items } = await client.get<{ items: readonly object[] }>(path, ['items'], longestMs)
      return items.map((item) => textAt(item, field))
    }),
  )

/** The text of a field, with dots; empty where there is none. */
export function textAt(item: object, field: string): string {
  const found = field.split('.').reduce<unknown>((at, key) => (isRecord(at) ? at[key] : undefined), item)
  return typeof found === 'string' || typeof found === 'number' ? String(found) : ''
}

/** bash would split or expand other names; such resources have uids. */
const isOneWord = (name: string) => /^[\p{L}\p{N}_.@:+/-]{1,255}$/u.test(name)

/** `completion names COMMAND...`, which the completion of the shell calls: prints a name a line. */
export const printNames: Program = async (line, table) => {
  const { completes } = findCommand(line.arguments, table)
  return typeof completes === 'function' ? (await completes())(line, table) : undefined
}
