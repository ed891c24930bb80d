import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { definitionArchive } from '../support/definition-archives.ts'
import { noise, createRandom } from '../support/random.ts'
import { exportedProfile } from '../support/tar-bytes.ts'
import { definitionsFolder, definitionsOf, type Definitions } from './host/definitions.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import type { Reply } from './host/http.ts'

const right = 'right canary 1301'
const sensitive = 'default-canary-1301'
const MB = 1_000_000
// The daemon writes this much at once, so this much of what has arrived may not be on the disk yet.
const batchBytes = 524_288

let host: Edgehostd
let token: string
let definitions: Definitions
/** A definition of at least this size, since random bytes cannot be compressed. */
let large: Buffer

beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'machine' })
  await host.addUser({ name: 'anna', password: right, groups: ['sudo'] })
  await host.addUser({ name: 'victor', password: right })
  token = (await host.openSession('anna', right)).token
  definitions = definitionsOf(host, token)
  const files = Object.fromEntries(
    Array.from({ length: 4 }, (_, index) => [`packs/web-shop-1.0/charts/${index}.tgz`, noise(5 * MB)]),
  )
  large = definitionArchive({ version: '20.0.0', files })
})
afterAll(() => host.unplug())

const stagedBytes = async () =>
  Number((await host.sh(`cat ${definitionsFolder}/staging/*/archive 2>/dev/null | wc -c`)).trim())

const audits = async () => {
  const path = '/v1/edge-mgmt/edgehosts/current/audits?resourceKind=definition'
  return (await host.http('GET', path, { token })).json.items as { spec: Record<string, unknown> }[]
}

describe('a definition that was built on the host', () => {
  const file = '/home/victor/factory.tgz'
  let reply: Reply

  beforeAll(async () => {
    const variables = [{ name: 'pw', isSensitive: true, defaultValue: sensitive }]
    const pack = { name: 'web-shop', layer: 'addon', tag: '1.0', uid: 'web', type: 'spectro' }
    const values = 'pw: "{{ .spectro.var.pw }}"\n'
    const profile = exportedProfile('u1', { type: 'add-on', packs: [{ ...pack, values }] }, { variables })
    await host.write('/home/victor/profile.json', JSON.stringify(profile))
    const packFile = { name: 'web-shop', version: '1.0', layer: 'addon', charts: ['charts/shop.tgz'] }
    await host.write('/home/victor/web-shop/pack.json', JSON.stringify(packFile))
    await host.write('/home/victor/web-shop/values.yaml', values)
    await host.write('/home/victor/web-shop/charts/shop.tgz', noise(MB))
    await host.sh(
      `cd /home/victor; runuser -u victor -- edgehostctl definition build --profile profile.json \
        --pack web-shop --file "$1" --name factory --release 1.4.0`,
      file,
    )
    reply = await definitions.upload(`/proc/${host.leader}/root${file}`)
  })

  it('a definition is accepted from an administrator, and its details show it', async () => {
    expect(reply).toMatchObject({
      status: 201,
      json: { message: 'definition factory 1.4.0 is in the slot overridden' },
    })
    const { uid, uploadPath } = reply.json
    expect(uploadPath).toBe(`${definitionsFolder}/${uid}`)
    const details = await definitions.details()
    expect(details).toMatchObject({ status: 200, json: { uid, archiveUploadPath: uploadPath, problems: [] } })
    const sum = (await host.output(['sha256sum', file])).split(' ')[0]
    expect(details.json).toMatchObject({ sha256: sum, fileName: 'factory.tgz' })
    expect(details.json.clusterProfileDetails).toMatchObject([
      {
        profileUid: 'u1',
        packs: [{ name: 'web-shop' }],
        variables: [{ name: 'pw', defaultValue: '********' }],
      },
    ])
    expect(details.text).not.toContain(sensitive)
    expect((await host.output(['sha256sum', `${uploadPath}/archive`])).split(' ')[0]).toBe(sum)
  })

  it('a definition has a handle by which values for its variables are judged', async () => {
    const validate = (archiveUploadPath: unknown) =>
      host.http('POST', '/v1/edge-mgmt/cluster/profiles/variables/validate', {
        token,
        body: { archiveUploadPath, variables: [{ name: 'pw', value: 'other' }, { name: 'pv' }] },
      })
    const judged = await validate(reply.json.uploadPath)
    expect(judged.json.variables).toMatchObject([
      { name: 'pw', isValid: true },
      { name: 'pv', isValid: false, validationFailureReason: expect.stringContaining('did you mean pw?') },
    ])
    expect(await validate('/etc/shadow')).toMatchObject({ status: 400, json: { code: 'BadRequest' } })
  })

  it('the uploaded definition is all there is in the state folder, and belongs to root alone', () =>
    definitions.expectNothingLeft())

  it('the upload is in the audit trail, with the name, the uid and the user', async () => {
    expect((await audits()).map(({ spec }) => spec)).toMatchObject([
      {
        actionType: 'create',
        actor: { uid: 'anna', role: 'admin' },
        outcome: 'success',
        resource: { kind: 'definition', name: 'factory 1.4.0', uid: reply.json.uid },
        status: 201,
      },
    ])
  })

  it('a definition is neither accepted from a viewer nor shown to one', async () => {
    const viewer = definitionsOf(host, (await host.openSession('victor', right)).token)
    const before = await definitions.details()
    expect(await viewer.upload(`/proc/${host.leader}/root${file}`)).toMatchObject({
      status: 403,
      json: { code: 'Forbidden' },
    })
    expect(await viewer.details()).toMatchObject({ status: 403 })
    expect((await definitions.details()).text).toBe(before.text)
  })
})

describe('an upload that is interrupted', () => {
  /** Waits until all sent bytes are written, except those of a batch that is not full. */
  const untilStaged = (position: number) =>
    eventually(async () =>
      expect(await stagedBytes()).toBeGreaterThanOrEqual(Math.floor(position / batchBytes - 1) * batchBytes),
    )

  async function killDaemon(): Promise<void> {
    const pid = await host.mainPid()
    await host.output(['systemctl', 'kill', '--kill-whom=main', '--signal=KILL', 'edgehostd'])
    await eventually(async () => {
      const next = await host.mainPid()
      expect([0, pid]).not.toContain(next)
      expect(await host.property('ActiveState')).toBe('active')
    })
  }

  it('the examination has the lowest CPU priority and is killed first when memory is short', async () => {
    const upload = await definitions.open(large)
    await upload.sendTo(2 * MB)
    const pid = await eventually(async () => {
      const [first, ...more] = await definitions.examinations()
      expect(more).toEqual([])
      // Node has started and the program runs.
      expect(await host.read(`/proc/${first}/oom_score_adj`)).toBe('500\n')
      return first!
    })
    expect((await host.output(['ps', '-o', 'ni=', '-p', String(pid)])).trim()).toBe('10')
    await upload.abandon()
    await definitions.expectNothingLeft()
  })

  it('a kill of the daemon at any byte leaves the slot unchanged, and the next upload is accepted', async () => {
    const random = createRandom(1301)
    const positions = Array.from({ length: 10 }, () => random.below(large.length))
    for (const [round, position] of positions.entries()) {
      await definitions.take(`1.0.${round}`)
      const before = await definitions.details()
      const upload = await definitions.open(large)
      await upload.sendTo(position)
      await untilStaged(position)
      await killDaemon()
      expect(await upload.reply, `at byte ${position}`).toBe('')
      expect((await definitions.details()).text, `at byte ${position}`).toBe(before.text)
      await definitions.expectNothingLeft()
    }
    const interrupted = (await audits()).filter(({ spec }) => spec.outcome === 'unknown')
    expect(interrupted).toHaveLength(positions.length)
  })

  /** An upload without its last byte, and a check that it has ended completely or not at all. */
  async function openAlmost() {
    await definitions.take('1.1.0')
    const before = await definitions.details()
    const upload = await definitions.open(large)
    await upload.sendTo(upload.length - 1)
    const early = upload.reply.then((text) => Promise.reject(new Error(`it was answered early: ${text}`)))
    await Promise.race([untilStaged(large.length), early])
    const expectOneOrOther = async () => {
      await upload.reply
      const after = await definitions.details()
      const isTaken = after.text !== before.text
      if (isTaken) expect(after.json).toMatchObject({ sizeBytes: large.length })
      await definitions.expectNothingLeft()
      return isTaken
    }
    return { upload, expectOneOrOther }
  }

  it('a kill of the daemon right after the last byte leaves one of the two definitions, complete', async () => {
    const { upload, expectOneOrOther } = await openAlmost()
    await upload.sendTo(upload.length)
    await killDaemon()
    await expectOneOrOther()
  })

  const hasLeft = '[ "$(echo "$1"/*-*)" != "$before" ]'
  it.each([
    // On a busy machine its file may be gone before it is seen.
    [
      'the check is done',
      2,
      [false, true],
      `compgen -G "$1/staging/*/details.json" > /dev/null || ${hasLeft}`,
    ],
    ['it has left the staging folder', 3, [false, true], hasLeft],
    ['the previous definition is being removed', 2, [true], '[ ! -e "$before/archive" ]'],
  ])(
    'a kill of the daemon when %s leaves one of the two definitions, complete',
    async (_, rounds, taken, moment) => {
      const kill = `
      pid=$(systemctl show --property=MainPID --value edgehostd) before=$(echo "$1"/*-*)
      touch /run/armed
      until ${moment} || (( SECONDS > 60 )); do :; done
      kill -KILL $pid; rm /run/armed`
      for (let round = 0; round < rounds; round += 1) {
        const { upload, expectOneOrOther } = await openAlmost()
        const killed = host.sh(kill, definitionsFolder)
        await eventually(() => host.output(['test', '-e', '/run/armed']))
        await upload.sendTo(upload.length)
        await killed
        expect(taken).toContain(await expectOneOrOther())
      }
      await definitions.take('1.1.1')
    },
  )

  it('a stop of the daemon refuses an upload at its next byte and does not wait for its end', async () => {
    const before = await definitions.details()
    const upload = await definitions.open(large)
    await upload.sendTo(5 * MB)
    await untilStaged(5 * MB)
    const began = performance.now()
    const restarted = host.output(['systemctl', 'restart', 'edgehostd'])
    const over = new AbortController()
    void upload.reply.then(() => over.abort())
    for (let position = 5 * MB; !over.signal.aborted; position += 10_000) {
      await upload.sendTo(position)
      // Its client continues at its own pace.
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    expect(await upload.reply).toMatch(/^HTTP\/1\.1 503 [^]*"code":"NotReady"/)
    await restarted
    // Otherwise the drain of open connections would take 10 s.
    expect(performance.now() - began).toBeLessThan(8_000)
    await definitions.expectNothingLeft()
    expect((await definitions.details()).text).toBe(before.text)
  })

  it('an upload that the client ends leaves nothing and is in the audit trail', async () => {
    const before = await definitions.details()
    const upload = await definitions.open(large)
    await upload.sendTo(12 * MB)
    await untilStaged(12 * MB)
    await upload.abandon()
    await definitions.expectNothingLeft()
    expect((await definitions.details()).text).toBe(before.text)
    // The files on the disk are removed first.
    await eventually(async () =>
      expect((await audits())[0]!.spec).toMatchObject({ outcome: 'refused', status: 400 }),
    )
  })
})

describe('a client that is slow', () => {
  beforeAll(() => host.configure('slow', 'api: {body: {windowSeconds: 1}}\n'))

  it('a slow client is waited for as long as bytes arrive', async () => {
    const archive = definitionArchive({
      version: '2.0.0',
      files: { 'packs/web-shop-1.0/charts/a.tgz': noise(30_000) },
    })
    const upload = await definitions.open(archive)
    for (let position = 0; position < upload.length;) {
      position = Math.min(position + 2_000, upload.length)
      await upload.sendTo(position)
      // About 10 kB a second, over several windows.
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
    expect(await upload.reply).toMatch(/^HTTP\/1\.1 201 /)
    await definitions.expectNothingLeft()
  })

  it('a client that stops sending is refused, and nothing is kept', async () => {
    const before = await definitions.details()
    const upload = await definitions.open(large)
    await upload.sendTo(3 * MB)
    const reply = await upload.reply
    expect(reply).toMatch(/^HTTP\/1\.1 408 /)
    expect(reply).toContain('"code":"RequestTimeout"')
    await definitions.expectNothingLeft()
    expect((await definitions.details()).text).toBe(before.text)
  })
})

describe('the journal', () => {
  it('the journal warns only of the ended upload and contains no secret default', async () => {
    const warnings = (await host.log()).filter(({ priority }) => priority <= 4)
    expect(warnings.map(({ code }) => code)).toEqual(['NotReady'])
    expect(await host.sh('journalctl --no-pager -q')).not.toContain(sensitive)
  })
})
