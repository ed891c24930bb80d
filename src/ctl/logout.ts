import { program } from '../base/program.ts'
import { jsonBody, type Context } from './client.ts'
import { Failure } from './exit-codes.ts'
import { removePrivate } from './folder.ts'
import { toFailure } from './reply.ts'
import { createSessions } from './session.ts'
import { parseHost, type HostTarget, type Target } from './target.ts'

/**
 * Ends the session on the host and removes its tokens here, also when the host does not answer.
 * @throws Failure where the session may last; its tokens are removed all the same
 */
export async function logout({ client, output, protocol, target: anyTarget }: Context): Promise<undefined> {
  const target = requireHost(anyTarget, 'logout')
  const sessions = createSessions(target, protocol)
  const session = sessions.read()
  if (!session) throw new Failure('notLoggedIn', `not logged in on ${target.name}`)
  try {
    const end = protocol.end(session)
    if (end) {
      const { method, path, body } = end
      const reply = await client.ask({
        method,
        path,
        ...(body === undefined ? {} : jsonBody(Buffer.from(JSON.stringify(body)))),
      })
      // With 401, the host knows the session no more.
      if (reply.status > 299 && reply.status !== 401)
        throw new Failure(
          'failed',
          `the session on ${target.name} could not be ended, and lasts until it expires; its tokens are removed here: ${toFailure(reply).message}`,
        )
    }
  } finally {
    await sessions.remove()
  }
  output.note(`Logged out on ${target.name}.`)
  return undefined
}

/** Removes the key and the session of a host. */
export async function forget({ line, output, folder, protocol }: Context): Promise<undefined> {
  const target = parseHost(line.arguments[0] ?? '', folder())
  // The tokens first, so that none are left without their key.
  await createSessions(target, protocol).remove()
  if (!removePrivate(target.keyFile)) throw new Failure('failed', `no key of ${target.name} is saved`)
  output.note(`The key of ${target.name} has been removed.`)
  return undefined
}

/** @throws Failure usage on the local socket, which needs no login */
export function requireHost(target: Target, command: string): HostTarget {
  if (target.kind === 'host') return target
  throw new Failure(
    'usage',
    `the local socket needs no login: root, who may open ${target.path}, is an administrator.\nFor another ${program.noun}: ${program.ctl} --host HOST ${command}`,
  )
}
