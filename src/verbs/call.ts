import type { Static, TObject } from 'typebox'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { isAtLeast, type Role } from '../base/role.ts'
import { parseJson } from '../base/json.ts'
import type { CommandResult, CommandRunner } from '../system/runner.ts'
import type { TransientUnitOptions } from '../system/transient-unit.ts'
import { problemOfInput, VerbRefused, type Verb, type VerbAnswer, type VerbPlace } from './verb.ts'

interface VerbsOptions {
  /** A runner of units outside of the sandbox of the daemon. */
  readonly outside: (options: Pick<TransientUnitOptions, 'description' | 'properties'>) => CommandRunner
  /** Path of `verb.cjs`. */
  readonly program: string
  readonly place: VerbPlace
}

/** Who causes a verb: a user by the role of the session, or the daemon itself. */
export type VerbCaller = { readonly role: Role } | 'service'

/** The one door to the rights of root. */
export interface Verbs {
  /**
   * Does a verb and waits for its end.
   * @param signal ends its unit
   * @throws AppError Forbidden; VerbRefused with a reason for operators; CommandFailed when its unit could not be run to its end
   */
  call<Input extends TObject, Output>(
    verb: Verb<Input, Output>,
    input: Static<Input>,
    caller: VerbCaller,
    signal?: AbortSignal,
  ): Promise<Output>
}

export function createVerbs({ outside, program, place }: VerbsOptions): Verbs {
  return {
    async call<Input extends TObject, Output>(
      verb: Verb<Input, Output>,
      input: Static<Input>,
      caller: VerbCaller,
      signal?: AbortSignal,
    ): Promise<Output> {
      const { name, role, unit } = verb
      if (caller !== 'service' && (role === 'service' || !isAtLeast(caller.role, role)))
        throw new AppError(generalErrors.Forbidden, `${name} needs the role ${role}`)
      const problem = problemOfInput(verb, input)
      if (problem !== undefined) throw new VerbRefused(problem)
      const { description, properties, timeoutMs } = unit
      const bounds = { timeoutMs, ...(signal ? { signal } : {}) }
      const run = outside({ description, properties })
      if ('command' in verb) {
        const { program: path, args, ...more } = verb.command(input, place)
        return verb.read(await run.run(path, args, { ...bounds, ...more }))
      }
      const ended = await run.run(process.execPath, [program, name], {
        ...bounds,
        input: JSON.stringify(input),
      })
      return readAnswer(name, ended) as Output
    },
  }
}

function readAnswer(name: string, { exitCode, stdout, stderr }: CommandResult): unknown {
  const answer = parseJson(stdout.trim()) as VerbAnswer | undefined
  if (exitCode !== 0 || answer === undefined || typeof answer !== 'object')
    throw new VerbRefused(
      `${name} ended with ${exitCode ?? 'a signal'}: ${stderr.trim().split('\n').at(-1) || 'without a message'}; see: journalctl -t edgehostd`,
    )
  if ('refused' in answer) throw new VerbRefused(answer.refused)
  return answer.output
}
