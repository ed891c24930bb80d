import { confirmDeletion } from '../../ctl/confirm.ts'
import type { Context } from '../../ctl/client.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { showList } from '../../ctl/list.ts'
import { parsePointInTime } from '../../ctl/given-values.ts'
import { parseBody } from '../../ctl/reply.ts'
import { type Column, moment, oneLine } from '../../ctl/layout.ts'
import type { ApiKey } from './schemas.ts'
import { apiKeys, findUid, users } from '../commands/find.ts'
import { setStateOf } from '../commands/send.ts'

const layout: readonly Column<ApiKey>[] = [
  { title: 'NAME', read: ({ metadata }) => metadata.name, isFlexible: true },
  { title: 'KEY', read: ({ spec }) => `${spec.key}…` },
  { title: 'USER', read: ({ spec: { user } }) => `${user.firstName} ${user.lastName}`.trim() || user.uid },
  { title: 'STATE', read: (key) => stateOf(key, Date.now()) },
  { title: 'EXPIRY', read: ({ spec }) => moment(spec.expiry), isFlexible: true },
  { title: 'LAST USED', read: ({ status }) => status.lastUsed && moment(status.lastUsed), isFlexible: true },
  { title: 'UID', read: ({ metadata }) => metadata.uid },
]

function stateOf({ spec, status }: ApiKey, now: number): string {
  if (Date.parse(spec.expiry) <= now) return 'expired'
  return status.isActive ? 'active' : 'disabled'
}

export const listKeys = showList<ApiKey>(apiKeys.path, layout)

export async function createKey({ client, line, output }: Context<'expiry' | 'for'>): Promise<undefined> {
  const [name = ''] = line.arguments
  const { expiry, for: user } = line.options
  if (expiry === undefined)
    throw new Failure('usage', 'an API key needs its end: --expiry=+90d, or a date; at most ten years ahead')
  const spec = {
    expiry: parsePointInTime('--expiry', expiry, Date.now(), true),
    ...(user === undefined ? {} : { userUid: await findUid(client, users, user) }),
  }
  const reply = await client.change('POST', apiKeys.path, { metadata: { name }, spec })
  const made = parseBody<{ apiKey: string; uid: string }>(reply, ['apiKey', 'uid'])
  await output.show(made, () => `${oneLine(made.apiKey)}\n`)
  output.note(`The API key ${oneLine(name)} ends at ${moment(spec.expiry)}. It is not shown again.`)
  return undefined
}

export const setState = setStateOf(apiKeys, 'The API key')

export async function deleteKey({ client, line, output, terminal }: Context<'yes'>): Promise<undefined> {
  const [word = ''] = line.arguments
  const uid = await findUid(client, apiKeys, word)
  if (line.options.yes === undefined)
    confirmDeletion(terminal, `The API key ${oneLine(word)} will go; programs that use it are refused then.`)
  await client.change('DELETE', `${apiKeys.path}/${uid}`)
  output.note(`The API key ${oneLine(word)} is deleted.`)
  return undefined
}
