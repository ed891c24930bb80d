// What the daemon may have done on the host as root is a verb. The table of all of them is `edgehostd/verbs.ts`: name, role, schema of the input,
// unit with its own sandbox, text of the audit trail. A room declares its verbs in `verbs.ts` and calls them by `Verbs.call` (`call.ts`); it
// starts no program as root itself (docs/adr/0034-verbs.md).
//
// A verb is a program of the host (`command`), or work of ours (`load`), which `verb.cjs NAME` does with its input on standard input. Both run in
// a transient unit with the properties of the verb.

import type { Static, TObject } from 'typebox'
import { Errors } from 'typebox/schema'
import type { HostRole } from '../base/role.ts'
import type { CommandResult } from '../system/runner.ts'

/** What root's own configuration says; never from a request. */
export interface VerbPlace {
  readonly stateDirectory: string
  /** Absolute path of pamtester, and the file in /etc/pam.d. */
  readonly pam: { readonly program: string; readonly service: string }
  /** Path of `support.cjs`, and root's socket of the daemon; empty where there is none. */
  readonly support: { readonly program: string; readonly socket: string }
  /** Path of `platform.cjs`. */
  readonly platformProgram: string
}

interface VerbUnit {
  /** Purpose of the unit, as `systemctl status` shows it. */
  readonly description: string
  /** Time limit, milliseconds. */
  readonly timeoutMs: number
  /** Sandbox of the unit: properties of systemd.exec(5), for example `ProtectHome=yes`. */
  readonly properties: readonly string[]
}

interface VerbHead<Input extends TObject> {
  /** A verb and its object: `change-password`. */
  readonly name: string
  /** Role that the caller needs at least; `service`: no user causes it. */
  readonly role: HostRole | 'service'
  readonly input: Input
  readonly unit: VerbUnit
  /** Text of the audit trail, without secrets. Pure. */
  readonly audit: (input: Static<Input>) => string
}

/** A program of the host. */
export interface VerbCommand {
  /** Absolute path, or a name in the system folders. */
  readonly program: string
  readonly args: readonly string[]
  /** Standard input, for secrets. */
  readonly input?: string
}

/** A verb that is a program of the host. */
export interface ProgramVerb<Input extends TObject, Output> extends VerbHead<Input> {
  readonly command: (input: Static<Input>, place: VerbPlace) => VerbCommand
  /** Reads the end of the program. @throws VerbRefused */
  readonly read: (result: CommandResult) => Output
}

/**
 * Work of a verb of ours, as root. It is idempotent: it may have been cut off, or be done already.
 * @returns its result, JSON
 * @throws VerbRefused with a reason for operators
 */
export type VerbWork<Input extends TObject, Output> = (input: Static<Input>) => Promise<Output>

/** A verb that is work of ours. */
export interface OwnVerb<Input extends TObject, Output> extends VerbHead<Input> {
  /** Loads the work, so that the declaration alone loads nothing. */
  readonly load: () => Promise<VerbWork<Input, Output>>
}

export type Verb<Input extends TObject = TObject, Output = unknown> =
  ProgramVerb<Input, Output> | OwnVerb<Input, Output>

/** A verb of any input and output, as the table has it. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- functions of a given input do not fit functions of an unknown one
export type AnyVerb = Verb<any, any>

/** Declares a verb that is a program of the host; gives its functions the types of its schema. */
export const defineProgramVerb = <Input extends TObject, Output>(
  verb: ProgramVerb<Input, Output>,
): ProgramVerb<Input, Output> => verb

/** Declares a verb that is work of ours; gives its functions the types of its schema. */
export const defineOwnVerb = <Input extends TObject, Output>(
  verb: OwnVerb<Input, Output>,
): OwnVerb<Input, Output> => verb

/** A verb was not done; the message is one line for operators: the failure and the remedy. */
export class VerbRefused extends Error {
  override readonly name = 'VerbRefused'
}

/**
 * Problem of an input, naming its field; undefined for a valid one. The routes have checked what users sent: this is the check of the side
 * that has the rights, which trusts no caller.
 */
export function problemOfInput({ name, input: schema }: AnyVerb, input: unknown): string | undefined {
  const [isValid, [first]] = Errors(schema as TObject, input)
  if (isValid || !first) return undefined
  const field = first.instancePath.slice(1).replaceAll('/', '.') || 'the input'
  return `${name}: ${field} ${first.message}`
}

/** Sandbox of a verb that changes files below the given folders and nothing else, and has no network. */
export const writesOnly = (...folders: readonly string[]): readonly string[] => [
  'ProtectSystem=strict',
  ...folders.map((folder) => `ReadWritePaths=${folder}`),
  'PrivateNetwork=yes',
  'PrivateDevices=yes',
  'ProtectClock=yes',
  'ProtectControlGroups=yes',
  'ProtectKernelLogs=yes',
  'ProtectKernelModules=yes',
  'ProtectKernelTunables=yes',
  'RestrictRealtime=yes',
  'NoNewPrivileges=yes',
]

/** What the program `verb.cjs` writes to standard output, as one line. */
export type VerbAnswer = { readonly output: unknown } | { readonly refused: string }

/**
 * Does a verb of ours: the program `verb.cjs`.
 * @param table all verbs
 * @param order the input of the verb as JSON
 */
export async function answerOrder(
  table: readonly AnyVerb[],
  name: string,
  order: string,
): Promise<VerbAnswer> {
  const verb = table.find((each) => each.name === name)
  if (!verb || !('load' in verb))
    return { refused: `verb.cjs does not know ${JSON.stringify(name)}; this is a defect of edgehostd` }
  const input: unknown = JSON.parse(order)
  const problem = problemOfInput(verb, input)
  if (problem !== undefined) return { refused: problem }
  try {
    const work = (await verb.load()) as VerbWork<TObject, unknown>
    return { output: (await work(input as Record<string, unknown>)) ?? null }
  } catch (error) {
    if (error instanceof VerbRefused) return { refused: error.message }
    throw error
  }
}
