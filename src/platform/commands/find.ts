import { program } from '../../base/program.ts'
import { printable } from '../../base/printable.ts'
import type { Client } from '../../ctl/client.ts'
import { Failure } from '../../ctl/exit-codes.ts'

const uidSyntax = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** What a word of the command line may name. */
export interface Kind {
  /** For messages: `user`. */
  readonly noun: string
  /** The command that lists all of them. */
  readonly list: string
  readonly path: string
  /** The field that the word is a value of, where it is no uid. */
  readonly field: string
}

export const users: Kind = { noun: 'user', list: 'user list', path: '/v1/users', field: 'spec.emailId' }
export const projects: Kind = {
  ...{ noun: 'project', list: 'project list', path: '/v1/projects', field: 'metadata.name' },
}
export const apiKeys: Kind = {
  ...{ noun: 'API key', list: 'apikey list', path: '/v1/apiKeys', field: 'metadata.name' },
}
export const tokens: Kind = {
  ...{ noun: 'token', list: 'token list', path: '/v1/edgehosts/tokens', field: 'metadata.name' },
}

interface Named {
  readonly metadata: { readonly uid: string }
}

/**
 * The uid of what a word names: the uid itself, or the name.
 * @throws Failure where nothing, or more than one, has the name
 */
export async function findUid(client: Client, kind: Kind, word: string): Promise<string> {
  if (uidSyntax.test(word)) return word
  const { items } = await client.list<Named>(kind.path, { filters: equals(kind.field, word) }, 0)
  return onlyOne(
    kind,
    word,
    items.map(({ metadata: { uid } }) => uid),
  )
}

/** The one uid of those that have a name. @throws Failure */
export function onlyOne(
  { noun, list }: Pick<Kind, 'noun' | 'list'>,
  word: string,
  uids: readonly string[],
): string {
  const [uid] = uids
  if (uid === undefined)
    throw new Failure('failed', `there is no ${noun} ${printable(word)}; see: ${program.ctl} ${list}`)
  if (uids.length > 1)
    throw new Failure(
      'failed',
      `more than one ${noun} has the name ${printable(word)}; name one by its uid: ${uids.join(', ')}`,
    )
  return uid
}

/** A filter for one value. */
export const equals = (field: string, value: string): string =>
  `${field}="${value.replaceAll(/["\\]/g, '\\$&')}"`
