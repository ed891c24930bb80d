import { X509Certificate } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { clusterPath, createChangingHost, next, sent, slotOf, upload } from '../../support/changing-host.ts'
import { definitionArchive } from '../../support/definition-archives.ts'
import { detailsOf, json } from '../../support/played-cluster.ts'
import type { Answers } from '../../support/played-ctl.ts'
import { prepareProgram } from '../../support/programs.ts'
import { serviceStatus } from '../../support/test-edge.ts'
import { createWireEdge } from '../../support/wire-edge.ts'

const world = createChangingHost()
const { ctl, definition, play, asked } = world
afterAll(() => world.stop())

/** Runs `edgehostctl definition upload …` against a daemon with these answers. */
async function run(answers: Answers, ...args: readonly string[]) {
  const path = await play({
    'GET /v1/edge-mgmt/edgehosts/current/status': json(200, serviceStatus('airgap')),
    [upload]: json(201, { uid: 'u', uploadPath: sent, message: 'definition shop 1.0.0 is there' }),
    ...answers,
  })
  const ended = await ctl.run([`--socket=${path}`, 'definition', 'upload', ...args])
  return { ...ended, uploads: asked().filter(({ url }) => url === upload) }
}

const slot = (name: string) => `GET /v1/edge-mgmt/clusters/archive/${name}/details`

it('says where the definition is, and how to create a cluster with it', async () => {
  const signature = join(ctl.home, 'shop.sig')
  writeFileSync(signature, 'signed')
  const ended = await run({ [slot('overridden')]: slotOf('') }, definition, '--signature', signature)
  expect(ended).toMatchObject({ exitCode: 0, stderr: '' })
  expect(ended.stdout).toMatch(/Definition: definition shop 1\.0\.0 is there\n +Path: \/definitions\/3\n/)
  expect(ended.stdout).toContain('Next: edgehostctl cluster create --name NAME --dry-run')
  expect(ended.uploads[0]?.body).toMatch(/name="signature"[^]*signed[^]*name="uploadFile"[^]*an archive/)
})

it('with a cluster it goes into the slot for updates, and says what it took the place of', async () => {
  const answers = {
    [`GET ${clusterPath}/details`]: json(200, detailsOf()),
    [slot('update')]: slotOf(next),
  }
  const ended = await run(answers, definition)
  expect(ended.stdout).toMatch(/Replaced: other\.tgz of 2026-01-30 08:00:00Z/)
  expect(ended.stdout).toContain('Next: edgehostctl cluster diff')
  const asJson = await run(answers, definition, '-o', 'json')
  expect(JSON.parse(asJson.stdout)).toEqual({
    ...{ uid: 'u', uploadPath: sent, message: 'definition shop 1.0.0 is there' },
  })
})

it.each([
  [['/no/where'], 2, 'FILE: /no/where cannot be read: no such file'],
  [[''], 2, 'FILE:'],
  [[], 2, 'definition upload needs FILE'],
])('definition upload %j is refused before anything is asked', async (args, exitCode, message) => {
  const ended = await run({}, ...args)
  expect(ended).toMatchObject({ exitCode, stdout: '' })
  expect(ended.stderr).toContain(message)
  expect(asked()).toEqual([])
})

it('a refusal of the host is the end, with its words', async () => {
  const refusal = json(400, { code: 'DefinitionInvalid', message: 'the definition has no profile' })
  const ended = await run({ [slot('overridden')]: slotOf(''), [upload]: refusal }, definition)
  expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
  expect(ended.stderr).toContain('the definition has no profile (DefinitionInvalid)')
})

it('a whole daemon takes a definition, and a creation by its name alone makes all checks of it', async () => {
  const wire = await createWireEdge({ prepareProgram: prepareProgram() })
  try {
    const on = (...args: readonly string[]) => ctl.run([`--host=127.0.0.1:${wire.port}`, ...args])
    const { fingerprint256 } = new X509Certificate(wire.cert)
    const login = await ctl.run(
      [
        `--host=127.0.0.1:${wire.port}`,
        `--fingerprint=${fingerprint256}`,
        'login',
        'alice',
        '--password-stdin',
      ],
      'alice pass\n',
    )
    expect(login.exitCode, login.stderr).toBe(0)
    const none = await on('cluster', 'create', '--name', 'shop', '--dry-run')
    expect(none.stderr).toContain('this host has no definition yet')

    const file = join(ctl.home, 'factory.tgz')
    const variables = [{ name: 'token', format: 'string' as const, isSensitive: true, required: true }]
    writeFileSync(file, definitionArchive({ variables }))
    const first = await on('definition', 'upload', file)
    expect(first, first.stderr).toMatchObject({ exitCode: 0 })
    expect(first.stdout).toMatch(/definition factory 1\.0\.0 is in the slot overridden/)
    expect((await on('definition', 'upload', file)).stdout).toContain(
      'was in the slot overridden of the host already',
    )

    const refused = await on('cluster', 'create', '--name', 'shop', '--set', 'token=hunter2')
    expect(refused).toMatchObject({ exitCode: 2, stdout: '' })
    expect(refused.stderr).toMatch(/token is sensitive/)
    const tried = await ctl.run(
      [
        ...[`--host=127.0.0.1:${wire.port}`, 'cluster', 'create', '--name', 'shop', '--definition', file],
        ...['--set-file', 'token=-', '--dry-run'],
      ],
      'hunter2\n',
    )
    expect(tried.stderr).toContain('was in the slot overridden of the host already')
    expect(tried.stdout, tried.stderr).toMatch(/Pre-flight: the cluster cannot be created/)
    expect(tried.stdout).toMatch(/^SEVERITY +CODE +WHERE +PROBLEM\nerror /m)
    expect(tried.stdout + tried.stderr).not.toContain('hunter2')
    expect(tried.exitCode).toBe(1)
  } finally {
    await wire.stop()
  }
})
