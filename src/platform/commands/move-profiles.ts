import { notLoggedIn } from '../../ctl/client.ts'
import type { Context } from '../../ctl/context.ts'
import { readBody } from '../../ctl/read-body.ts'
import { parseBody, readReply, toFailure } from '../../ctl/reply.ts'
import { oneLine } from '../../ctl/text.ts'
import type { ClusterProfile } from '../schemas/profiles.ts'
import { findUid, projects } from './find.ts'
import { findVersion, profileKind } from './find-version.ts'

// What the platform accepts.
const largestProfile = 33_554_432
// The largest profile is examined on a slow machine.
const examineMs = 400_000

export async function importProfile({
  client,
  line,
  output,
  target,
}: Context<'project' | 'publish'>): Promise<undefined> {
  const [file = ''] = line.arguments
  const { project, publish } = line.options
  const body = readBody(file, 'FILE', largestProfile)
  const query = new URLSearchParams({
    publish: String(publish !== undefined),
    ...(project === undefined ? {} : { ProjectUid: await findUid(client, projects, project) }),
  })
  const isJson = /^\s*[{[]/.test(body.subarray(0, 1_024).toString('latin1'))
  const reply = await client.ask({
    ...{ method: 'POST', path: `${profileKind.path}/import?${query.toString()}`, body },
    headers: { 'content-type': isJson ? 'application/json' : 'application/yaml' },
    timeoutMs: examineMs,
  })
  if (reply.status === 401) throw notLoggedIn(target, toFailure(reply))
  if (reply.status !== 201) throw toFailure(reply)
  const made = parseBody<{ uid: string }>(reply, ['uid'])
  await output.show(made, () => `${oneLine(made.uid)}\n`)
  return undefined
}

export async function exportProfile({
  client,
  line,
  output,
  target,
}: Context<'project'>): Promise<undefined> {
  const { pathOf } = await findVersion<ClusterProfile>(
    client,
    profileKind,
    line.arguments[0] ?? '',
    line.options.project,
  )
  const format = output.format === 'yaml' ? 'yaml' : 'json'
  const message = await client.open({ method: 'GET', path: pathOf('/export', { format }) })
  if (message.statusCode !== 200) {
    const reply = await readReply(message)
    throw reply.status === 401 ? notLoggedIn(target, toFailure(reply)) : toFailure(reply)
  }
  // As it arrives: it may be larger than other replies.
  for await (const chunk of message as AsyncIterable<Buffer>) output.write(chunk)
  return undefined
}
