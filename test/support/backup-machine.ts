import { randomBytes } from 'node:crypto'
import { execa } from 'execa'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { requireFinishedRestore } from '../../src/backup/unfinished-restore.ts'
import { bundleProgram } from './bundle-program.ts'
import { createTestPlatform } from './test-platform.ts'
import { noise } from './random.ts'

export const passphrase = 'correct horse battery staple'

/** For each test a machine with a state folder, its configuration, and files of an administrator; for the tests of a file. */
export function backupMachine() {
  let programs: string
  let program: string
  let home: string
  let state: string
  let passphraseFile: string
  /** Of each Node that is started. */
  let options: string
  let platform: Awaited<ReturnType<typeof createTestPlatform>> | undefined

  beforeAll(() => {
    programs = mkdtempSync(join(tmpdir(), 'backup-program-'))
    program = join(programs, 'backup.cjs')
    bundleProgram('edgeplatformd', program, { program: 'edgeplatformd', file: 'backup.ts' })
    writeFileSync(join(programs, 'cheap-keys.cjs'), cheapKeys)
  })
  afterAll(() => rmSync(programs, { recursive: true }))

  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'backup-'))
    options = ''
    state = join(home, 'state')
    passphraseFile = join(home, 'passphrase')
    writeFileSync(passphraseFile, `${passphrase}\n`)
    mkdirSync(join(home, 'etc/config.d'), { recursive: true })
    writeFileSync(join(home, 'etc/config.yaml'), 'platform: {hostName: platform.example}\n')
    writeFileSync(join(home, 'etc/config.d/10-site.yaml'), 'log: {level: warn}\n')
  })
  afterEach(async () => {
    await stop()
    rmSync(home, { recursive: true, force: true })
  })

  const start = async (stateDirectory = state) => (platform = await createTestPlatform({ stateDirectory }))
  async function stop() {
    await platform?.close()
    platform = undefined
  }

  /** @param from the machine whose state and configuration it works on; `end` is what follows the path of the state folder */
  function run(
    args: readonly string[],
    { from = home, end = '', shell = '', node = [] as string[], step = 0 } = {},
  ) {
    const command = [process.execPath, ...node, program, ...args]
    const given = {
      reject: false,
      extendEnv: false,
      env: {
        PATH: '/usr/bin:/bin',
        NODE_OPTIONS: options,
        EDGEPLATFORMD_CONFIG: join(from, 'etc/config.yaml'),
        EDGEPLATFORMD_STATE_DIRECTORY: `${join(from, 'state')}${end}`,
        // Of the program below alone.
        STEP: String(step),
      },
    } as const
    const words = [
      '--wait',
      ...(shell === '' ? command : ['bash', '--norc', '-c', `${shell}; exec "$@"`, 'bash', ...command]),
    ]
    return execa('setsid', words, given)
  }

  const file = () => join(home, 'platform.backup')
  const backup = (options = {}) =>
    run(['backup', `--file=${file()}`, `--passphrase-file=${passphraseFile}`], options)
  const restore = (options: Parameters<typeof run>[1] = {}, from = file()) =>
    run(['restore', `--file=${from}`, `--passphrase-file=${passphraseFile}`, '--yes'], options)

  return {
    paths: () => ({ home, state, passphraseFile }),
    /** The platform of a state folder; it is stopped at the end of the test. */
    start,
    stop,
    run,
    file,
    backup,
    restore,
    /** A platform with a user, which does not run any more, and its backup. The keys of this test take no time: with their own cost they would take most of it. */
    async makeBackedUp() {
      options = `--require=${join(programs, 'cheap-keys.cjs')}`
      const running = await start()
      await running.addUser('you@plant.example', 'a long password', ['admin'])
      // More than one piece of the file.
      writeFileSync(join(state, 'note'), noise(600_000))
      expect((await backup()).exitCode).toBe(0)
      await stop()
    },
    /** Node's flag that runs a program before the one of a test. */
    preload(text: string) {
      const path = join(home, `${randomBytes(4).toString('hex')}.cjs`)
      writeFileSync(path, text)
      return [`--require=${path}`]
    },
  }
}

const cheapKeys = `
const crypto = require('node:crypto')
const { scrypt } = crypto
crypto.scrypt = (passphrase, salt, length, cost, done) => scrypt(passphrase, salt, length, { ...cost, N: 1_024 }, done)
`

/** Everything below a folder, with modes, as one text. */
export function picture(folder: string): string {
  return (
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      // Empty files that are locked.
      .filter((name) => name !== 'lock' && !name.endsWith('.db.backups'))
      .sort()
      .map((name) => {
        const stats = statSync(join(folder, name))
        const content = stats.isFile() ? readFileSync(join(folder, name)).toString('base64') : ''
        return `${name} ${stats.mode} ${content}`
      })
      .join('\n')
  )
}

/** The users of a state folder. */
export function usersOf(folder: string): unknown[] {
  const sql = new DatabaseSync(join(folder, 'edgeplatform.db'), { readOnly: true })
  const users = sql.prepare('SELECT email FROM user').all()
  sql.close()
  return users.map(({ email }) => email)
}
/** Why a platform does not start on a state folder; empty where it does. */
export const refusalOf = (folder: string): Promise<string> =>
  requireFinishedRestore(folder).then(
    () => '',
    (error: unknown) => (error as Error).message,
  )

/** A program before the one of a test (`preload`), which kills it right before its STEPth change of the file system by one of these calls. */
export const cutBefore = (...names: readonly string[]) => `
const fs = require('node:fs')
// The command after a killed one may be in the same second.
Date.now = () => 1_790_000_000_000
let left = Number(process.env.STEP)
function cutBefore(object, name) {
  const original = object[name]
  object[name] = (...args) => {
    left -= 1
    if (left === 0) process.kill(process.pid, 'SIGKILL')
    return original(...args)
  }
}
for (const name of ${JSON.stringify(names)}) cutBefore(fs.promises, name)
cutBefore(fs, 'renameSync')
`
