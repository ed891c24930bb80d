import { execaSync } from 'execa'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { backupMachine, passphrase, picture } from '../../support/backup-machine.ts'
import { playEdgeHost } from '../../support/played-edge-host.ts'
import { noise } from '../../support/random.ts'

const password = 'a long password'
let home: string
let state: string
let passphraseFile: string
const { paths, start, stop, run, file, backup, restore, makeBackedUp, preload } = backupMachine()
beforeEach(() => ({ home, state, passphraseFile } = paths()))

/** Changes the secret right after the database was copied. */
const changedSecret = `
const sqlite = require('node:sqlite')
const { spawnSync } = require('node:child_process')
const { backup } = sqlite
sqlite.backup = async (...args) => {
  const pages = await backup(...args)
  spawnSync(process.execPath, [process.argv[1], 'secret', '--yes'])
  return pages
}
`

describe('a backup', () => {
  it('is made while the platform writes, and brings users, projects and hosts to another machine', async () => {
    const running = await start()
    await running.addUser('you@plant.example', password, ['admin'])
    const admin = await running.signIn('you@plant.example', password)
    const url = '/v1/edgehosts/tokens'
    const made = await running.app.inject({
      method: 'POST',
      url,
      headers: admin,
      payload: { metadata: { name: 't' } },
    })
    const host = playEdgeHost(running)
    await host.register(made.json<{ token: string }>().token, 'press-1')
    await host.logIn()

    const writing = Array.from({ length: 40 }, async (_, index) =>
      running.app.inject({
        ...{ method: 'POST', url: '/v1/projects', headers: admin },
        payload: { metadata: { name: `project ${index}` } },
      }),
    )
    const [ended] = await Promise.all([backup(), ...writing])
    expect(ended).toMatchObject({ exitCode: 0, stderr: '' })
    expect(ended.stdout).toMatch(/^The backup is in \S+: \d+ files, /)
    expect(statSync(file()).mode & 0o777).toBe(0o600)
    const sealed = readFileSync(file()).toString('latin1')
    for (const secret of ['you@plant.example', 'PRIVATE KEY', 'platform.example', 'press-1'])
      expect(sealed).not.toContain(secret)
    expect(readdirSync(home).filter((name) => name.includes('.part'))).toEqual([])
    expect(readdirSync(state).filter((name) => name.endsWith('.tmp'))).toEqual([])

    // The host logs in after the backup, so it is ahead of the restored platform.
    await host.logIn()
    const fingerprint = running.rooms.certificate.fingerprint()
    await stop()

    // Another machine, where a platform has run too.
    const other = join(home, 'other')
    mkdirSync(join(other, 'etc'), { recursive: true })
    writeFileSync(join(other, 'etc/config.yaml'), 'platform: {hostName: elsewhere.example}\n')
    const elsewhere = await start(join(other, 'state'))
    await elsewhere.addUser('other@plant.example', password)
    const busy = await restore({ from: other })
    expect([busy.exitCode, busy.stderr]).toEqual([
      1,
      expect.stringMatching(
        /is in use by another edgeplatformd: .* stop it first; if none runs, another restore .*Nothing was changed$/,
      ),
    ])
    await stop()
    const restored = await restore({ from: other })
    expect(restored.stderr).toBe('')
    expect(restored.stdout).toMatch(/^The platform of 2.* is restored\.$/m)
    const former = /^The former state is in (\S+);/m.exec(restored.stdout)?.[1] ?? ''
    expect(readdirSync(former)).toContain('edgeplatform.db')
    expect(readFileSync(join(other, 'etc/config.yaml'), 'utf8')).toContain('platform.example')
    expect(readFileSync(join(other, 'etc/config.d/10-site.yaml'), 'utf8')).toContain('warn')
    const kept = readdirSync(join(other, 'etc')).find((name) => name.startsWith('config.yaml.before-'))
    expect(readFileSync(join(other, 'etc', kept ?? ''), 'utf8')).toContain('elsewhere.example')
    expect(statSync(join(other, 'state')).mode & 0o777).toBe(0o700)
    expect(statSync(join(other, 'state/secret')).mode & 0o777).toBe(0o600)

    const again = await start(join(other, 'state'))
    expect(again.rooms.certificate.fingerprint()).toBe(fingerprint)
    const headers = await again.signIn('you@plant.example', password)
    const list = await again.app.inject({ url: '/v1/users', headers })
    expect(
      list.json<{ items: { spec: { emailId: string } }[] }>().items.map(({ spec }) => spec.emailId),
    ).toEqual(['you@plant.example'])
    expect((await host.copy(again).logIn()).status).toBe(200)
  })

  it('is refused where there is nothing, or the passphrase is short, and leaves a former backup', async () => {
    writeFileSync(file(), 'the former backup')
    expect((await backup()).stderr).toMatch(
      /state\/edgeplatform\.db does not exist or is empty: .*Nothing was changed$/,
    )
    await start()
    writeFileSync(passphraseFile, 'short')
    expect((await backup()).stderr).toMatch(/the passphrase has fewer than 12 characters/)
    const none = await run(['backup', `--file=${file()}`])
    expect([none.exitCode, none.stderr]).toEqual([2, expect.stringContaining('use --passphrase-file')])
    writeFileSync(passphraseFile, passphrase)
    // ulimit counts 1,024 bytes; SIGXFSZ is ignored, so that the write fails as on a full disk.
    const full = await backup({ shell: "trap '' XFSZ; ulimit -f 16" })
    expect([full.exitCode, full.stderr]).toEqual([
      1,
      expect.stringMatching(/^edgeplatformctl: .*Nothing was changed$/),
    ])
    expect(readFileSync(file(), 'utf8')).toBe('the former backup')
    expect(readdirSync(state).filter((name) => name.endsWith('.tmp'))).toEqual([])
  })
})

describe('a backup of a platform that does not run', () => {
  beforeEach(async () => {
    await start()
    await stop()
  })

  it('is refused where the secret is changed meanwhile, or a change was interrupted', async () => {
    const secret = readFileSync(join(state, 'secret'))
    const during = await backup({ node: preload(changedSecret) })
    expect(readFileSync(join(state, 'secret'))).not.toEqual(secret)
    expect([during.exitCode, during.stderr]).toEqual([
      1,
      expect.stringMatching(
        /the secret of the platform was changed while .*; try again. Nothing was changed$/,
      ),
    ])
    writeFileSync(join(state, 'secret.next'), '')
    expect((await backup()).stderr).toMatch(/complete it with edgeplatformctl secret change, then make/)
    expect(existsSync(file())).toBe(false)
    rmSync(join(state, 'secret.next'))
    expect((await backup()).exitCode).toBe(0)
  })

  it('is not made in the state folder, also by another path, and names a foreign file there', async () => {
    symlinkSync(state, join(home, 'link'))
    for (const path of ['state/own.backup', 'state/tls/own.backup', 'link/own.backup']) {
      const inside = await run([
        ...['backup', `--file=${join(home, path)}`, `--passphrase-file=${passphraseFile}`],
      ])
      expect([inside.exitCode, inside.stderr]).toEqual([
        1,
        expect.stringMatching(/own\.backup would be in the state folder, .*Nothing was changed$/),
      ])
    }
    expect(readdirSync(state, { recursive: true })).not.toContain('own.backup')
    writeFileSync(join(state, 'core'), noise(1_048_577))
    expect((await backup()).stderr).toMatch(
      /^edgeplatformctl: \S+core has more than 1048576 bytes, and is no file of edgeplatformd: move it out/,
    )
    rmSync(join(state, 'core'))
    expect((await backup()).exitCode).toBe(0)
  })
})

describe('a restore', () => {
  let before: string
  beforeEach(async () => {
    await makeBackedUp()
    before = picture(state)
  })

  /** What it is refused with; nothing has changed then. */
  async function refused(options: Parameters<typeof run>[1] = {}, from = file()): Promise<string> {
    const names = readdirSync(home)
    const { exitCode, stderr } = await restore(options, from)
    expect(exitCode).toBe(1)
    expect(stderr).toMatch(/Nothing was changed$/)
    expect(picture(state)).toBe(before)
    expect(readdirSync(home)).toEqual(names)
    expect(readdirSync(join(home, 'etc'))).toEqual(['config.d', 'config.yaml'])
    return stderr
  }

  it('refuses a wrong passphrase', async () => {
    writeFileSync(passphraseFile, `${passphrase}.`)
    expect(await refused()).toMatch(/the passphrase is wrong/)
  })

  it('refuses a file in which any one byte was changed', async () => {
    const bytes = readFileSync(file())
    const places = [
      0,
      9,
      30,
      200,
      bytes.length - 300,
      bytes.length - 1,
      ...[3, 5, 7].map((part) => Math.floor(bytes.length / part)),
    ]
    for (const place of places) {
      const changed = Buffer.from(bytes)
      changed[place] = (changed[place] ?? 0) ^ 1
      writeFileSync(file(), changed)
      expect(await refused(), `byte ${place}`).toMatch(
        /damaged|passphrase is wrong|no backup of this program/,
      )
    }
  })

  it('refuses a file that was cut, also between two parts, and one with more at its end', async () => {
    const bytes = readFileSync(file())
    const startsAt = 12 + bytes.readUInt32BE(8) + 32
    const lengths = [
      0,
      7,
      40,
      startsAt,
      startsAt + 262_160,
      startsAt + 2 * 262_160,
      bytes.length - 1,
      bytes.length - 17,
    ]
    for (const length of lengths) {
      writeFileSync(file(), bytes.subarray(0, length))
      expect(await refused(), `${length} bytes`).toMatch(/damaged|no backup of this program/)
    }
    writeFileSync(file(), Buffer.concat([bytes, Buffer.alloc(16)]))
    expect(await refused()).toMatch(/damaged/)
  })

  it('refuses a newer version of the format, and names the program that made the file', async () => {
    const bytes = readFileSync(file())
    const text = bytes.toString('latin1').replace('"version":1', '"version":2')
    writeFileSync(file(), Buffer.from(text, 'latin1'))
    expect(await refused()).toMatch(
      /has version 2 of its format, and this program knows version 1: install .*, test,/,
    )
  })

  it('changes nothing on a full disk', async () => {
    expect(await refused({ shell: "trap '' XFSZ; ulimit -f 16" })).toMatch(/EFBIG/)
  })

  it('changes nothing on a disk that is really full', async (context) => {
    if (process.getuid?.() !== 0) context.skip()
    const small = join(home, 'small')
    mkdirSync(small)
    execaSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'edgeplatform-test', small])
    try {
      // The state is on the small disk, and has less room than it takes.
      const from = { from: small }
      mkdirSync(join(small, 'etc'))
      writeFileSync(join(small, 'etc/config.yaml'), '')
      await start(join(small, 'state'))
      await stop()
      const here = picture(small)
      const full = await restore(from)
      expect([full.exitCode, full.stderr]).toEqual([
        1,
        expect.stringMatching(/no space left.*Nothing was changed$/i),
      ])
      expect(picture(small)).toBe(here)
      // A backup needs room for a copy of the database, and for its file.
      expect((await backup(from)).stderr).toMatch(
        /a copy of the database needs \d+ for a while; .*Nothing was changed$/,
      )
      const there = await run(['backup', `--file=${join(small, 'b')}`, `--passphrase-file=${passphraseFile}`])
      expect([there.exitCode, there.stderr]).toEqual([
        1,
        expect.stringMatching(/no space left.*Nothing was changed$/i),
      ])
      expect(picture(small)).toBe(here)
    } finally {
      await stop()
      execaSync('umount', [small])
    }
  })

  it.each(['/', '/.'])('works where the path of the state folder ends with %j', async (end) => {
    expect((await backup({ end })).exitCode).toBe(0)
    writeFileSync(join(state, 'note'), 'later')
    const restored = await restore({ end })
    expect([restored.exitCode, restored.stderr]).toEqual([0, ''])
    expect(statSync(join(state, 'note')).size).toBe(600_000)
  })

  it('puts what the configuration names outside of the state folder in its place', async () => {
    const pem = join(home, 'own.pem')
    writeFileSync(pem, 'a token of scrapers\n')
    chmodSync(pem, 0o600)
    writeFileSync(join(home, 'etc/config.d/20-metrics.yaml'), `metrics: {tokenFile: ${pem}}\n`)
    expect((await backup()).exitCode).toBe(0)
    rmSync(pem)
    // As a restore leaves it that was killed.
    const left = ['state.restore-0123456789abcdef', '.own.pem.0123456789abcdef.tmp', 'state.restore-notes']
    for (const name of left) writeFileSync(join(home, name), 'a secret')
    expect((await restore()).stdout).toContain(`New: ${pem}`)
    expect([readFileSync(pem, 'utf8'), statSync(pem).mode & 0o777]).toEqual(['a token of scrapers\n', 0o600])
    expect(readdirSync(home).filter((name) => left.includes(name))).toEqual(['state.restore-notes'])
  })
})
