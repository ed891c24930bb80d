import { printable } from '../../base/printable.ts'
import { confirmDeletion } from '../../ctl/confirm.ts'
import type { Context } from '../../ctl/client.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { showList } from '../../ctl/list.ts'
import { parsePointInTime } from '../../ctl/given-values.ts'
import { parseBody } from '../../ctl/reply.ts'
import { type Column, moment, oneLine } from '../../ctl/layout.ts'
import type { EdgeToken } from './schemas.ts'
import { findUid, projects, tokens } from '../commands/find.ts'
import { setStateOf } from '../commands/send.ts'

const layout: readonly Column<EdgeToken>[] = [
  { title: 'NAME', read: ({ metadata }) => metadata.name, isFlexible: true },
  { title: 'TOKEN', read: ({ spec }) => `${spec.token}…` },
  { title: 'PROJECT', read: ({ spec }) => spec.defaultProject?.name, isFlexible: true },
  { title: 'HOSTS', read: ({ spec, status }) => hostsOf(status.hosts, spec.maximumHosts) },
  { title: 'STATE', read: (token) => stateOf(token, Date.now()) },
  { title: 'EXPIRY', read: ({ spec }) => moment(spec.expiry), isFlexible: true },
  { title: 'UID', read: ({ metadata }) => metadata.uid },
]

const hostsOf = (hosts: number, maximum: number) => (maximum === 0 ? String(hosts) : `${hosts} of ${maximum}`)

function stateOf({ spec, status }: EdgeToken, now: number): string {
  if (Date.parse(spec.expiry) <= now) return 'expired'
  if (!status.isActive) return 'disabled'
  return spec.maximumHosts > 0 && status.hosts >= spec.maximumHosts ? 'used up' : 'active'
}

export const listTokens = showList<EdgeToken>(tokens.path, layout)

type CreateOptions = 'project' | 'expiry' | 'maximum-hosts'

export async function createToken({ client, line, output }: Context<CreateOptions>): Promise<undefined> {
  const [name = ''] = line.arguments
  const { project, expiry, 'maximum-hosts': maximum } = line.options
  if (maximum !== undefined && !/^\d{1,7}$/.test(maximum))
    throw new Failure(
      'usage',
      `--maximum-hosts must be a whole number, 0 for any number; it is ${printable(maximum) || 'empty'}`,
    )
  const spec = {
    ...(project === undefined ? {} : { defaultProjectUid: await findUid(client, projects, project) }),
    ...(expiry === undefined ? {} : { expiry: parsePointInTime('--expiry', expiry, Date.now(), true) }),
    ...(maximum === undefined ? {} : { maximumHosts: Number(maximum) }),
  }
  const reply = await client.change('POST', tokens.path, { metadata: { name }, spec })
  const made = parseBody<{ token: string; uid: string }>(reply, ['token', 'uid'])
  await output.show(made, () => `${oneLine(made.token)}\n`)
  output.note(`The registration token ${oneLine(name)} is made. It is not shown again.`)
  return undefined
}

export const setState = setStateOf(tokens, 'The registration token')

export async function deleteToken({ client, line, output, terminal }: Context<'yes'>): Promise<undefined> {
  const [word = ''] = line.arguments
  const uid = await findUid(client, tokens, word)
  if (line.options.yes === undefined)
    confirmDeletion(
      terminal,
      `The registration token ${oneLine(word)} will go; no host can be registered with it then.`,
    )
  await client.change('DELETE', `${tokens.path}/${uid}`)
  output.note(`The registration token ${oneLine(word)} is deleted.`)
  return undefined
}
