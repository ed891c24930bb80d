import { jsonBody, notLoggedIn, type Context, type HostProgram } from '../../ctl/client.ts'
import { problemsOf, renderProblems, toFailure, type Reply } from '../../ctl/reply.ts'
import { oneLine } from '../../ctl/layout.ts'
import { findUid, type Kind } from './find.ts'

// The definition of a cluster is examined on a slow machine, after those before it.
const examineMs = 400_000

/**
 * Sends a change of a cluster, which the platform checks as a whole first. The problems of a refusal are shown.
 * @throws Failure where it is refused
 */
export async function sendChecked(
  { client, output, target }: Pick<Context, 'client' | 'output' | 'target'>,
  method: 'POST' | 'PUT' | 'PATCH',
  path: string,
  content?: unknown,
): Promise<Reply> {
  const json = content === undefined ? {} : jsonBody(Buffer.from(JSON.stringify(content)))
  const reply = await client.ask({ method, path, ...json, timeoutMs: examineMs })
  if (reply.status === 401) throw notLoggedIn(target, toFailure(reply))
  if (reply.status >= 200 && reply.status <= 299) return reply
  const problems = problemsOf(reply)
  if (problems !== undefined) await output.show({ problems }, (paper) => renderProblems(problems, paper))
  throw toFailure(reply)
}

/** Number of an accepted change: its ETag. */
export const numberOf = ({ headers }: Reply): string => (headers.etag ?? '').replaceAll('"', '')

/** Enables or disables the item that a word names. @param what for the note: `The API key` */
export const setStateOf =
  (kind: Kind, what: string) =>
  (isActive: boolean): HostProgram =>
  async ({ client, line, output }) => {
    const [word = ''] = line.arguments
    const uid = await findUid(client, kind, word)
    await client.change('PUT', `${kind.path}/${uid}/state`, { isActive })
    output.note(`${what} ${oneLine(word)} is ${isActive ? 'enabled' : 'disabled'}.`)
    return undefined
  }
