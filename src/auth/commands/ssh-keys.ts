import type { Static } from 'typebox'
import { jsonBody, refusalOf, type Context } from '../../ctl/client.ts'
import { readPassword } from '../../ctl/confirm.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { renderFacts } from '../../ctl/layout.ts'
import { errorOf } from '../../ctl/reply.ts'
import { readKeys, shortKey } from '../../ctl/request-body.ts'
import type { UserSpec } from '../schemas.ts'

const userPath = '/v1/users/current'

/**
 * `edgehostctl user ssh-keys [--ssh-key FILE... | --none]`: shows the keys of the own account, or replaces those that were set here. A login that is
 * older than five minutes does not suffice: then the password is asked for.
 */
export async function ownSshKeys(
  context: Context<'ssh-key' | 'none' | 'password-stdin'>,
): Promise<undefined> {
  const { client, line, output, target } = context
  const files = line.lists?.['ssh-key']
  const isNone = line.options.none !== undefined
  if (isNone && files !== undefined)
    throw new Failure('usage', '--none takes all of them away; leave out --ssh-key')
  if (isNone || files !== undefined) {
    const sshKeys = (files ?? []).flatMap(readKeys)
    const send = (password?: string) => {
      const body: Static<typeof UserSpec> = { sshKeys, ...(password === undefined ? {} : { password }) }
      return client.ask({
        method: 'PATCH',
        path: userPath,
        ...jsonBody(Buffer.from(JSON.stringify(body))),
      })
    }
    const ask = () => readPassword(context, 'Password: ')
    const first = await send(line.options['password-stdin'] === undefined ? undefined : await ask())
    const reply = errorOf(first)?.code === 'LoginTooOld' ? await send(await ask()) : first
    if (reply.status !== 204) throw refusalOf(target, reply)
  }
  const { sshKeys } = await client.get<{ sshKeys: string[] }>(userPath, ['sshKeys'])
  await output.show({ sshKeys }, (paper) =>
    renderFacts(
      [{ label: 'SSH keys', lines: sshKeys.length === 0 ? ['none were set here'] : sshKeys.map(shortKey) }],
      paper,
    ),
  )
  return undefined
}
