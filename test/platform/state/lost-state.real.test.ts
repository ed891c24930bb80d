import { randomBytes } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { makeBackup } from '../../../src/backup/make-backup.ts'
import { beginAnew } from '../../../src/backup/replace-state.ts'
import { openKeptFolders } from '../../../src/platform/kept-folders.ts'
import { backupMachine, cutBefore, passphrase, picture } from '../../support/backup-machine.ts'
import { captureLog } from '../../support/https-server.ts'
import { createRandom } from '../../support/random.ts'

const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
const password = 'a long password'
const uid = '0198f000-0000-7000-8000-000000000001'
let home: string
let state: string
const { paths, start, stop, run, backup, restore, file, preload } = backupMachine()
beforeEach(() => ({ home, state } = paths()))

/** The state folder of a platform that has run, with one user. */
let made: string
let fingerprint: string
beforeAll(async () => {
  made = mkdtempSync(join(tmpdir(), 'used-state-'))
  const running = await start(made)
  await running.addUser('you0@plant.example', password, ['admin'])
  fingerprint = running.rooms.certificate.fingerprint()
  await stop()
})
afterAll(() => rmSync(made, { recursive: true }))

/** A platform that has run, with users and a folder of each kind; it does not run any more. */
async function used(users = 1): Promise<void> {
  cpSync(made, state, { recursive: true, preserveTimestamps: true })
  if (users === 1) return
  const running = await start()
  for (let index = 1; index < users; index += 1)
    await running.addUser(`you${index}@plant.example`, password, ['admin'])
  await stop()
}
const database = () => join(state, 'edgeplatform.db')
const refusal = async () => ((await start().catch((error: unknown) => error)) as Error).message
const commands = /restore FILE.*recover takes over.*fresh-start/

function overwrite(path: string, page: number, random = createRandom(seed)): void {
  const bytes = readFileSync(path)
  for (let at = page * 4_096; at < Math.min(bytes.length, (page + 1) * 4_096); at += 1)
    bytes[at] = random.below(256)
  writeFileSync(path, bytes)
}

describe('a platform that lost a part of its state', () => {
  it.each([
    ['a page of its database is damaged', () => overwrite(database(), 1), /is damaged/],
    ['its database is missing', () => rmSync(database()), /is missing or empty/],
    ['its database is empty', () => writeFileSync(database(), ''), /is missing or empty/],
    [
      'its database is another, empty one',
      () => {
        rmSync(database())
        const sql = new DatabaseSync(database())
        sql.exec('PRAGMA user_version = 0; VACUUM')
        sql.close()
      },
      /is missing or empty|is an empty one/,
    ],
    [
      'an index of its database is missing',
      () => {
        const sql = new DatabaseSync(database())
        sql.exec('DROP INDEX audit_kind')
        sql.close()
      },
      /the index audit_kind is missing/,
    ],
    ['its secret is empty', () => writeFileSync(join(state, 'secret'), ''), /the secret \S+ is damaged/],
    [
      'its secret is of zeros',
      () => writeFileSync(join(state, 'secret'), Buffer.alloc(32)),
      /the secret \S+ is damaged/,
    ],
    [
      'its secret is that of another state',
      () => writeFileSync(join(state, 'secret'), randomBytes(32)),
      /the secret \S+ is of another state than the database \S+: put back the secret/,
    ],
    ['its secret is missing', () => rmSync(join(state, 'secret')), /the secret \S+ is missing/],
    [
      'its key is garbage',
      () => writeFileSync(join(state, 'tls/key.pem'), 'x'),
      /private key \S+ cannot be used/,
    ],
    [
      'its certificate is garbage',
      () => writeFileSync(join(state, 'tls/certificate.pem'), 'x'),
      /certificate\.pem/,
    ],
    [
      'its key and its certificate are missing',
      () => rmSync(join(state, 'tls'), { recursive: true }),
      /the private key \S+ is missing/,
    ],
    [
      'only folders named by uids are left',
      () => {
        rmSync(database())
        rmSync(join(state, 'secret'))
      },
      /is missing or empty/,
    ],
  ])('does not start where %s, names the commands and changes nothing', async (_what, damage, reason) => {
    await used()
    mkdirSync(join(state, 'packs', uid), { recursive: true })
    writeFileSync(join(state, 'packs', uid, 'pack'), 'content')
    damage()
    const before = picture(join(state, 'packs'))
    const first = await refusal()
    expect(first).toMatch(reason)
    expect(first).toMatch(commands)
    // Nor at the next start.
    expect(await refusal()).toMatch(reason)
    expect(picture(join(state, 'packs'))).toBe(before)
    expect(readdirSync(state).filter((name) => name.includes('corrupt'))).toEqual([])

    // The deliberate way: all is put aside, and the platform begins.
    const fresh = await run(['fresh-start', '--yes'])
    expect([fresh.exitCode, fresh.stderr]).toEqual([0, ''])
    const former = /^The former state is in (\S+);/m.exec(fresh.stdout)?.[1] ?? ''
    expect(picture(join(former, 'packs'))).toBe(before)
    expect(statSync(state).mode & 0o777).toBe(0o700)
    const anew = await start()
    await expect(anew.signIn('you0@plant.example', password)).rejects.toThrow('401')
    expect(anew.lines).toContainEqual(
      expect.objectContaining({ msg: 'Begin with an empty state; the former one was put aside' }),
    )
  })

  it('starts for the first time, and after its secret was removed by --end-sessions', async () => {
    await used()
    writeFileSync(join(state, 'secret.ended'), '')
    rmSync(join(state, 'secret'))
    await start()
    expect(existsSync(join(state, 'secret.ended'))).toBe(false)
  })

  it('is recovered with what can be read, and a restore brings back all of it', async () => {
    console.info(`seed ${seed}`)
    await used(30)
    await start()
    expect((await backup()).exitCode).toBe(0)
    await stop()
    const sql = new DatabaseSync(database())
    const { root } = sql
      .prepare("SELECT rootpage AS root FROM sqlite_schema WHERE name = 'audit_actor'")
      .get() as {
      root: number
    }
    sql.close()
    overwrite(database(), root - 1)
    writeFileSync(join(state, 'secret'), '')
    expect(await refusal()).toMatch(/is damaged/)

    const recovered = await run(['recover', '--yes'])
    expect([recovered.exitCode, recovered.stderr]).toEqual([0, ''])
    expect(recovered.stdout).toMatch(/^Read: \d+ tables, \d+ rows\.$/m)
    expect(recovered.stdout).toMatch(/^The secret is new/m)
    const again = await start()
    expect(again.rooms.certificate.fingerprint()).toBe(fingerprint)
    await again.signIn('you7@plant.example', password)
    expect(again.lines).toContainEqual(
      expect.objectContaining({ msg: expect.stringMatching(/^Take over what could be read.*a new secret$/) }),
    )
    await stop()

    overwrite(database(), 1)
    expect((await restore({}, file())).exitCode).toBe(0)
    const restored = await start()
    await restored.signIn('you29@plant.example', password)
  })

  it('says what to do where its folder is a link or a mount, which cannot be put aside', async () => {
    await used()
    renameSync(state, join(home, 'data'))
    symlinkSync(join(home, 'data'), state)
    for (const command of ['recover', 'fresh-start']) {
      const { exitCode, stderr } = await run([command, '--yes'])
      expect([exitCode, stderr]).toEqual([
        1,
        expect.stringContaining('name the folder itself as state.directory'),
      ])
    }
    const log = captureLog().log
    const options = { stateDirectory: '/proc', now: Date.now(), log, onBegin: () => undefined }
    await expect(beginAnew(options)).rejects.toThrow('/proc is a mount of its own')
  })

  it('keeps folders that no row names where its database is not known to be complete', async () => {
    await used()
    mkdirSync(join(state, 'packs', uid), { recursive: true })
    writeFileSync(join(state, 'packs', uid, 'pack'), 'content')
    rmSync(join(state, 'audit-head'))
    const said = ({ lines }: Awaited<ReturnType<typeof start>>) =>
      lines.flatMap(({ msg }) => (String(msg).includes('was not beside') ? [msg] : []))
    expect(said(await start())).toEqual([expect.stringContaining('lost its last commits is not known')])
    const [stamp = ''] = readdirSync(join(state, 'aside'))
    expect(stamp).toMatch(/^\d{4}-\d\d-\d\dT/)
    expect(readFileSync(join(state, 'aside', stamp, 'packs', uid, 'pack'), 'utf8')).toBe('content')
    await stop()
    // A killed daemon has left it, and the database has every row.
    mkdirSync(join(state, 'packs', uid), { recursive: true })
    expect(said(await start())).toEqual([])
    expect(existsSync(join(state, 'packs', uid))).toBe(false)
    expect(readdirSync(join(state, 'aside'))).toEqual([stamp])
  })

  it('keeps what came after an old copy of its database was made, which is put back with its head', async () => {
    const folder = join(state, 'packs')
    mkdirSync(join(folder, uid), { recursive: true })
    const open = (completeUntil: number) =>
      openKeptFolders({ folder, named: [], completeUntil, onMissing: () => undefined, log: captureLog().log })
    await open(Date.now() - 2 * 3_600_000)
    const [stamp = ''] = readdirSync(join(state, 'aside'))
    expect(readdirSync(join(state, 'aside', stamp, 'packs'))).toEqual([uid])
    // What a killed upload has left is as old as the newest record.
    mkdirSync(join(folder, uid))
    await open(Date.now())
    expect([existsSync(join(folder, uid)), readdirSync(join(state, 'aside'))]).toEqual([false, [stamp]])
  })
})

it('a start on a database that lost its last commits says so in the trail, the journal, the status and the verification', async () => {
  await used()
  const older = readFileSync(database())
  const next = await start()
  await next.addUser('later@plant.example', password)
  await stop()
  writeFileSync(database(), older)
  const behind = await start()
  const lost = expect.stringMatching(
    /^the database lost its last commits: records \d+ to \d+ of the trail are missing/,
  )
  expect(behind.lines).toContainEqual(expect.objectContaining({ level: 50, msg: lost }))
  expect(behind.lines).toContainEqual(
    expect.objectContaining({ kind: 'audit', outcome: 'failed', msg: lost }),
  )
  expect(behind.rooms.audit.checks?.map(({ kind, holds }) => [kind, holds()])).toEqual([['note', false]])
  expect(await behind.rooms.audit.access.verify(undefined)).toMatchObject({
    isIntact: false,
    problem: { message: lost },
  })
  await stop()
  // It is said once, stays in the status until the secret is another one, and in the verification.
  const after = await start()
  expect(after.lines.filter(({ msg }) => String(msg).startsWith('the database lost'))).toEqual([])
  expect(after.rooms.audit.checks?.map(({ holds }) => holds())).toEqual([false])
  await stop()
  expect((await run(['secret', '--yes'])).exitCode).toBe(0)
  const answered = await start()
  expect(answered.rooms.audit.checks?.map(({ holds }) => holds())).toEqual([true])
  expect((await answered.rooms.audit.access.verify(undefined)).isIntact).toBe(false)
})

it('a backup removes what killed ones have left, and refuses a passphrase that is no UTF-8', async () => {
  await used()
  const left = join(state, '.edgeplatform.db.0123456789abcdef.tmp')
  writeFileSync(left, 'a whole database')
  writeFileSync(`${left}-journal`, 'its journal')
  const half = join(home, '.platform.backup.0123456789abcdef.tmp')
  writeFileSync(half, 'half a backup')
  expect((await backup()).exitCode).toBe(0)
  expect([left, `${left}-journal`, half].map((path) => existsSync(path))).toEqual([false, false, false])

  const passphraseFile = join(home, 'latin')
  writeFileSync(passphraseFile, Buffer.from('Gew\xfcrzm\xfchle 1234\n', 'latin1'))
  const words = [`--file=${file()}`, `--passphrase-file=${passphraseFile}`]
  for (const args of [
    ['backup', ...words],
    ['restore', ...words, '--yes'],
  ]) {
    const { exitCode, stderr } = await run(args)
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('the passphrase is not UTF-8')])
  }
})

it('a backup removes what a killed one of another name has left, and nothing of other machines or while one is made', async () => {
  await used()
  const dated = (day: number, options = {}) =>
    run(
      [
        'backup',
        `--file=${join(home, `2026-11-0${day}.backup`)}`,
        `--passphrase-file=${paths().passphraseFile}`,
      ],
      options,
    )
  const unfinished = () => readdirSync(home).filter((name) => name.endsWith('.tmp'))
  const killed = { node: preload(cutBefore('rename')), step: 1 }
  await dated(1, killed)
  const [left, ...others] = unfinished()
  expect([left, others]).toEqual([
    expect.stringMatching(/^\.edgeplatform-backup-[0-9a-f]{16}\.[0-9a-f]{16}\.tmp$/),
    [],
  ])
  const foreign = '.edgeplatform-backup-0123456789abcdef.0123456789abcdef.tmp'
  writeFileSync(join(home, foreign), 'half a backup of another platform')

  // Each backup holds this lock while it is made.
  const other = new DatabaseSync(join(state, '.edgeplatform.db.backups'))
  other.exec('BEGIN')
  other.prepare('SELECT count(*) FROM sqlite_schema').get()
  await dated(2, killed)
  other.close()
  expect(unfinished()).toHaveLength(3)

  expect((await dated(3)).exitCode).toBe(0)
  expect(unfinished()).toEqual([foreign])
  expect(readdirSync(home).filter((name) => name.endsWith('.backup'))).toEqual(['2026-11-03.backup'])
})

it('a passphrase file with a byte order mark is refused, and opens what was made with it by having it twice', async () => {
  await used()
  await stop()
  const { passphraseFile } = paths()
  const mark = '\ufeff'
  const words = [`--file=${file()}`, `--passphrase-file=${passphraseFile}`]
  writeFileSync(passphraseFile, `${mark}${passphrase}\n`)
  for (const args of [
    ['backup', ...words],
    ['restore', ...words, '--yes'],
  ]) {
    const { exitCode, stderr } = await run(args)
    expect([exitCode, stderr]).toEqual([
      1,
      expect.stringContaining('begins with a byte order mark (EF BB BF)'),
    ])
    expect(stderr).toMatch(/sed -i .* opens with a file that has the mark twice: .*Nothing was changed$/)
  }
  expect(existsSync(file())).toBe(false)
  // As an earlier version made it.
  await makeBackup({
    ...{
      file: file(),
      passphrase: mark + passphrase,
      stateDirectory: state,
      configFile: join(home, 'etc/config.yaml'),
    },
    ...{ namedFiles: [], programVersion: '1.0.0', now: 0, onBegin: () => undefined },
  })
  writeFileSync(passphraseFile, `${passphrase}\n`)
  expect((await restore()).stderr).toContain('passphrase')
  writeFileSync(passphraseFile, `${mark}${mark}${passphrase}\n`)
  expect((await run(['backup', ...words])).stderr).toContain('begins with a byte order mark')
  expect(await restore()).toMatchObject({ exitCode: 0, stderr: '' })
})
