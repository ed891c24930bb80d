import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import {
  clusterPath,
  createChangingHost,
  host,
  next,
  present,
  revisionOf,
  sent,
  slotOf,
  slotPath,
  tried,
  upload,
} from '../../../support/changing-host.ts'
import { applicationsOf, json } from '../../../support/played-cluster.ts'
import { serviceStatus } from '../../../support/test-edge.ts'

const world = createChangingHost()
const { ctl, definition, asked, writes, bodyOf, run, runOnTerminal } = world
afterAll(() => world.stop())

describe('cluster diff', () => {
  it('compares the definition in the slot update with what runs, by a dry run of the state that was read', async () => {
    const ended = await run(host({ [`GET ${slotPath}/details`]: slotOf(next) }), ['diff'])
    expect(ended).toMatchObject({ exitCode: 0, stderr: '' })
    expect(ended.stdout).toMatch(
      /Pre-flight: the change is possible\n +Definition: shop 1\.0\.0 -> shop 1\.1\.0$/m,
    )
    expect(ended.stdout).toMatch(/^web +1\.0\.0 -> 1\.1\.0 +changed/m)
    expect(ended.stdout).toMatch(/^p1\/web is applied +pods of it$/m)
    expect(bodyOf(`PUT ${clusterPath}/profiles?dryRun=true`)).toEqual({ spec: { archiveUploadPath: next } })
    expect(asked().at(-1)?.headers['if-match']).toBe('"one"')
    expect(writes()).toEqual([])
  })

  it('-o json gives the body of the reply', async () => {
    const ended = await run(host(), ['diff', '-o', 'json'])
    expect(JSON.parse(ended.stdout)).toEqual(tried)
  })

  it('without anything that waits it says so', async () => {
    const nothing = { ...tried, isChanged: false, diff: undefined }
    const ended = await run(host({ [`PUT ${clusterPath}/profiles`]: json(200, nothing) }), ['diff'])
    expect(ended).toMatchObject({ exitCode: 0, stdout: 'Nothing differs, and nothing waits.\n' })
  })

  it('shows the change that waits for its time', async () => {
    const items = [
      revisionOf(2, 'waiting', { scheduleAt: '2031-05-01T02:00:00.000Z' }),
      revisionOf(1, 'good'),
    ]
    const ended = await run(
      host({
        [`GET ${clusterPath}/revisions`]: json(200, { items }),
        [`PUT ${clusterPath}/profiles`]: json(200, { ...tried, isChanged: false }),
      }),
      ['diff'],
    )
    expect(ended.stdout).toMatch(
      /This is revision 2, which was accepted and waits for 2031-05-01 02:00:00Z\./,
    )
    expect(ended.stdout).toMatch(/^web +1\.0\.0 -> 1\.1\.0/m)
  })

  it('a change that is not possible is listed, and ends with 1', async () => {
    const problems = [{ code: 'ImageMissing', severity: 'error', message: 'no image', pack: 'p1/web' }]
    const found = { ...tried, isPossible: false, problems, diff: undefined }
    const ended = await run(host({ [`PUT ${clusterPath}/profiles`]: json(200, found) }), ['diff'])
    expect(ended.exitCode).toBe(1)
    expect(ended.stdout).toMatch(/the change is not possible[^]*^error +ImageMissing +web +no image$/m)
  })

  it('sends a definition into the empty slot, and says that it is there', async () => {
    const answers = host({
      [upload]: json(201, {
        uid: 'u',
        uploadPath: sent,
        message: 'definition shop 1.1.0 is in the slot update',
      }),
    })
    const ended = await run(answers, ['diff', '--definition', definition])
    expect(ended.exitCode).toBe(0)
    expect(ended.stderr).toMatch(/Uploaded: definition shop 1\.1\.0 is in the slot update\. It stays there/)
    const form = asked().find(({ url }) => url === upload)
    expect(form?.headers['content-type']).toMatch(/^multipart\/form-data; boundary=/)
    expect(form?.body).toMatch(/name="uploadFile"; filename="shop\.tgz"\r\n\r\nan archive\r\n/)
    expect(bodyOf(`PUT ${clusterPath}/profiles?dryRun=true`)).toEqual({ spec: { archiveUploadPath: sent } })
  })

  it('the former name of --definition still means the same', async () => {
    const answers = host({ [upload]: json(201, { uid: 'u', uploadPath: sent, message: 'sent' }) })
    expect(await run(answers, ['diff', '--file', definition])).toMatchObject({ exitCode: 0 })
    expect(bodyOf(`PUT ${clusterPath}/profiles?dryRun=true`)).toEqual({ spec: { archiveUploadPath: sent } })
  })

  it('a signature goes before the file', async () => {
    writeFileSync(join(ctl.home, 'shop.sig'), 'signed')
    const answers = host({ [upload]: json(201, { uid: 'u', uploadPath: sent, message: 'm' }) })
    await run(answers, ['diff', '--definition', definition, '--signature', join(ctl.home, 'shop.sig')])
    expect(asked().find(({ url }) => url === upload)?.body).toMatch(
      /name="signature"[^]*signed[^]*name="uploadFile"/,
    )
  })

  it('does not send a definition that is in the slot already', async () => {
    const sha256 = createHash('sha256').update('an archive').digest('hex')
    const ended = await run(host({ [`GET ${slotPath}/details`]: slotOf(next, { sha256 }) }), [
      'diff',
      '--definition',
      definition,
    ])
    expect(ended.exitCode).toBe(0)
    expect(ended.stdout).toContain('was in the slot update of the host already')
    expect(writes()).toEqual([])
  })

  it('replaces a definition that waits only after a yes, and says which one', async () => {
    const answers = host({
      [`GET ${slotPath}/details`]: slotOf(next),
      [upload]: json(201, { uid: 'u', uploadPath: sent, message: 'sent' }),
    })
    const refused = await run(answers, ['diff', '--definition', definition])
    expect(refused.exitCode).toBe(2)
    expect(refused.stderr).toMatch(
      /The definition other\.tgz of 2026-01-30 08:00:00Z waits in the slot update.*add --yes/s,
    )
    expect(writes()).toEqual([])
    const no = await runOnTerminal(answers, ['diff', '--definition', definition], 'n\n')
    expect(no.exitCode).toBe(1)
    expect(no.stdout).toMatch(/Replace it\? \[y\/N\] .*nothing was replaced/s)
    expect(writes()).toEqual([])
    const done = await run(answers, ['diff', '--definition', definition, '--yes'])
    expect(done.stderr).toMatch(/sent, in the place of other\.tgz of 2026-01-30/)
    expect(writes()).toHaveLength(1)
  })

  it('the definition that the cluster runs with is not asked about: the cluster has a copy of it', async () => {
    const answers = host({
      [`GET ${slotPath}/details`]: slotOf(present),
      [upload]: json(201, { uid: 'u', uploadPath: sent, message: 'sent' }),
    })
    expect((await run(answers, ['diff', '--definition', definition])).exitCode).toBe(0)
    expect(writes()).toHaveLength(1)
  })

  it('on a host that the platform manages nothing is uploaded', async () => {
    const connected = { 'GET /v1/edge-mgmt/edgehosts/current/status': json(200, serviceStatus('connected')) }
    const ended = await run(host(connected), ['diff', '--definition', definition])
    expect(ended.exitCode).toBe(1)
    expect(ended.stderr).toMatch(
      /the platform makes and changes the cluster of this host; nothing was uploaded/,
    )
    expect(writes()).toEqual([])
  })

  it.each([
    [['--definition', '/no/where'], '--definition: /no/where cannot be read: no such file'],
    [['--definition', '/'], '--definition: / is not a file'],
    [['--file', '/no/where'], '--file: /no/where cannot be read: no such file'],
    [['--definition', 'a', '--file', 'b'], '--definition and --file mean the same; leave out --file'],
    [['--definition', 'a', '--update'], 'leave out --update'],
    [['--signature', 'a'], 'add --definition'],
  ])('diff %j is refused before anything is sent', async (args, message) => {
    const ended = await run(host(), ['diff', ...args])
    expect(ended).toMatchObject({ exitCode: 2, stdout: '' })
    expect(ended.stderr).toContain(message)
    expect(writes()).toEqual([])
  })

  it('--set alone changes values of the present definition, and says what waits in the slot', async () => {
    const applications = applicationsOf('Available', '')
    const [profile] = applications.clusterProfileTemplates
    const variables = [{ name: 'replicas', value: '2' }]
    const answers = host({
      [`GET ${slotPath}/details`]: slotOf(next),
      [`GET ${clusterPath}/applications`]: json(200, {
        clusterProfileTemplates: [{ ...profile, variables }],
      }),
    })
    const alone = await run(answers, ['diff', '--set', 'replicas=3'])
    expect(alone.stdout).toMatch(/other\.tgz of 2026-01-30 08:00:00Z in the slot update is not part of this/)
    expect(bodyOf(`PUT ${clusterPath}/profiles?dryRun=true`)).toEqual({
      spec: {
        archiveUploadPath: present,
        profileVariables: [{ name: 'replicas', profileUid: 'p1', value: '3' }],
      },
    })
    await run(answers, ['diff', '--set', 'replicas=3', '--update'])
    expect(bodyOf(`PUT ${clusterPath}/profiles?dryRun=true`)).toEqual({
      spec: {
        archiveUploadPath: next,
        profileVariables: [{ name: 'replicas', profileUid: 'p2', value: '3' }],
      },
    })
    const wrong = await run(answers, ['diff', '--set', 'replica=3'])
    expect(wrong.exitCode).toBe(2)
    expect(wrong.stderr).toContain('no variable replica; did you mean replicas?')
  })

  it('a secret comes from standard input, and is nowhere in the output', async () => {
    const answers = host({ [`GET ${slotPath}/details`]: slotOf(next) })
    const ended = await run(answers, ['diff', '--update', '--set-file', 'password=-'], 'hunter2\n')
    expect(JSON.stringify(bodyOf(`PUT ${clusterPath}/profiles?dryRun=true`))).toContain('"value":"hunter2"')
    expect(ended.stdout + ended.stderr).not.toContain('hunter2')
    const refused = await run(answers, ['diff', '--update', '--set', 'password=hunter2'])
    expect(refused.exitCode).toBe(2)
    expect(refused.stderr).toMatch(/password is sensitive/)
    expect(refused.stderr).not.toContain('hunter2')
  })

  it('where a change waits and its variables are not known, a value on the command line is refused', async () => {
    const items = [
      revisionOf(2, 'waiting', { scheduleAt: '2031-05-01T02:00:00.000Z' }),
      revisionOf(1, 'good'),
    ]
    const answers = host({
      [`GET ${slotPath}/details`]: slotOf(next),
      [`GET ${clusterPath}/revisions`]: json(200, { items }),
    })
    const refused = await run(answers, ['diff', '--set', 'password=hunter2'])
    expect(refused).toMatchObject({ exitCode: 2, stdout: '' })
    expect(refused.stderr).toMatch(/password may be sensitive.*--set-file password=FILE/)
    expect(refused.stderr).not.toContain('hunter2')
    expect((await run(answers, ['diff', '--set-file', 'password=-'], 'hunter2')).exitCode).toBe(0)
  })

  it('without a cluster it says so', async () => {
    for (const words of [
      'diff',
      'apply --yes',
      'rollback --yes',
      'revisions',
      'settings',
      'settings --none --yes',
    ]) {
      const ended = await run({}, words.split(' '))
      expect(ended, words).toMatchObject({ exitCode: 1, stdout: '' })
      expect(ended.stderr, words).toMatch(/this host has no cluster/)
    }
  })
})
