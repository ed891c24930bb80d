import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { migrations } from '../../../src/edgeplatformd/migrations.ts'
import { changeSecret } from '../../../src/platform/system/secret.ts'
import { createSecret } from '../../../src/secrets/secrets.ts'
import { noteName } from '../../../src/store/database-name.ts'
import { captureLog } from '../../support/https-server.ts'
import { createCloudWorld, machinesOf, right, rightSecret } from '../../support/platform-clouds.ts'
import { manyServers } from '../../support/played-cloud.ts'

let stateDirectory: string
beforeAll(() => {
  stateDirectory = mkdtempSync(join(tmpdir(), 'cloud-secrets-'))
})
afterAll(() => rmSync(stateDirectory, { recursive: true }))

/** Everything in the state folder, as bytes. */
const stored = () =>
  readdirSync(stateDirectory, { recursive: true, encoding: 'utf8' })
    .map((name) => join(stateDirectory, name))
    .filter((file) => statSync(file).isFile())
    .map((file) => readFileSync(file, 'latin1'))
    .join('\n')

it('the secret of an account is in clear text in no log, audit, error, reply or file, and outlives a change of the secret', async () => {
  const others = ['a-secret-that-is-wrong', 'a-secret-that-is-repeated', 'a-secret-without-an-answer']
  const world = await createCloudWorld({ stateDirectory })
  const { cloud, platform } = world
  cloud.servers = manyServers(2, ['plant'])
  const replies: unknown[] = []
  const tell = async (...asked: Parameters<typeof world.ask>) => {
    const { body } = await world.ask(...asked)
    replies.push(body)
  }
  const account = await world.make('/v1/cloudaccounts/vendor', { metadata: { name: 'plant' }, spec: right })
  const config = await world.configure({ pool: ['plant'] }, account)
  await tell('GET', '/v1/cloudaccounts/vendor')
  await tell('GET', `/v1/cloudaccounts/vendor/${account}`)
  await tell('GET', machinesOf(config, 'pool'))
  const validate = (secretKey: string) =>
    tell('POST', '/v1/clouds/vendor/account/validate', { ...right, secretKey })
  await validate(others[0] ?? '')
  // A cloud that repeats what it was sent, as no JSON, as JSON, and in a status line.
  cloud.misbehaves = ({ body }, reply) => reply.writeHead(201).end(`no JSON: ${body}`)
  await validate(others[1] ?? '')
  cloud.misbehaves = ({ body }, reply) =>
    reply.writeHead(400).end(JSON.stringify({ error: { message: body } }))
  await validate(others[1] ?? '')
  cloud.misbehaves = (_, reply) => reply.socket?.end(`HTTP/1.1 abc ${others[1]}\r\n\r\n`)
  await validate(others[1] ?? '')
  cloud.misbehaves = (_, reply) => reply.socket?.destroy()
  await validate(others[2] ?? '')
  await tell('POST', '/v1/cloudaccounts/vendor', {
    metadata: { name: 'b' },
    spec: { ...right, secretKey: 7 },
  })
  await world.turn(20_000)
  await tell('GET', machinesOf(config, 'pool'))
  await tell('GET', '/v1/audits')
  const lines = JSON.stringify(platform.lines)
  await world.close()

  for (const secret of [rightSecret, ...others]) {
    expect(JSON.stringify(replies)).not.toContain(secret)
    expect(lines).not.toContain(secret)
    expect(stored()).not.toContain(secret)
  }
  // What is looked for would be found.
  expect(stored()).toContain(right.secretId)
  expect(lines).toContain('the machines of a pool could not be read')

  const { log } = captureLog()
  expect(await changeSecret({ stateDirectory, migrations, log })).toEqual({ sealed: 1, unreadable: 0 })
  const changed = await createCloudWorld({ stateDirectory })
  changed.cloud.servers = manyServers(2, ['plant'])
  const { code, body } = await changed.ask<{ items: object[] }>('GET', machinesOf(config, 'pool'))
  expect([code, body.items.length]).toEqual(['200', 2])
  expect(JSON.parse(changed.cloud.asked('/identity')[0]?.body ?? '')).toMatchObject({
    auth: { identity: { application_credential: { id: right.secretId, secret: rightSecret } } },
  })
  await changed.close()

  // A secret that was replaced, and not changed.
  writeFileSync(join(stateDirectory, 'secret'), createSecret())
  await expect(createCloudWorld({ stateDirectory })).rejects.toThrow(/is of another state than the database/)
  // As a recovery leaves it, which takes over what can still be read.
  writeFileSync(join(stateDirectory, noteName), 'Take over what could be read')
  const lost = await createCloudWorld({ stateDirectory })
  const refused = await lost.ask('GET', machinesOf(config, 'pool'))
  expect([refused.code, refused.message]).toEqual([
    '409 SecretReplaced',
    'the secret of the cloud account plant cannot be read any more',
  ])
  expect((await lost.ask('GET', `/v1/cloudaccounts/vendor/${account}`)).code).toBe('200')
  await lost.close()
})
