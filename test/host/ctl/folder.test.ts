import { X509Certificate } from 'node:crypto'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { TlsMaterial } from '../../../src/system/tls-options.ts'
import { createCtl, type Ctl } from '../../support/ctl.ts'
import { startDaemonSocket } from '../../support/daemon-socket.ts'
import { makeMaterial, startServer } from '../../support/https-server.ts'

let ctl: Ctl
let material: TlsMaterial
let server: Awaited<ReturnType<typeof startServer>>
let daemon: Awaited<ReturnType<typeof startDaemonSocket>>
let asked: string[]
let home: string
beforeAll(async () => {
  ctl = createCtl()
  material = await makeMaterial()
  server = await startServer(material, ({ url = '' }, response) => {
    asked.push(url)
    response.end('{}')
  })
  daemon = await startDaemonSocket(join(ctl.home, 'daemon.sock'))
})
afterAll(async () => {
  await server.stop()
  await daemon.stop()
  rmSync(ctl.home, { recursive: true })
})
beforeEach(() => {
  asked = []
  home = mkdtempSync(join(ctl.home, 'home-'))
})

const known = () => ['--host', `localhost:${server.port}`, '--fingerprint', fingerprint()]
const fingerprint = () => new X509Certificate(material.cert).fingerprint256

/** As the user of the tests, or as another user where that is root, since permissions do not stop root. */
async function run(env: Record<string, string>, ...args: string[]) {
  const { exitCode, stdout, stderr } = await execa(
    'setsid',
    ['--wait', process.execPath, ctl.program, ...args],
    { reject: false, extendEnv: false, cwd: home, env, input: 'right pass\n', timeout: 20_000 },
  )
  return { exitCode, stdout, stderr }
}

describe('a config folder that cannot be written', () => {
  it.each<[string, () => Record<string, string>, RegExp]>([
    [
      'since a file is in its place',
      () => {
        writeFileSync(join(home, '.config'), '')
        return { HOME: home }
      },
      /home-\w+\/\.config\/edgehostctl\/(hosts|sessions)\/\S+ cannot be read: not a directory \(ENOTDIR\)$/,
    ],
    [
      'since a file is in the place of its own folder',
      () => {
        mkdirSync(join(home, '.config/edgehostctl'), { recursive: true })
        writeFileSync(join(home, '.config/edgehostctl/hosts'), '')
        return { HOME: home }
      },
      /edgehostctl\/hosts\S* cannot be (read|written): not a directory \(ENOTDIR\)$/,
    ],
    [
      'since its file system takes no folder',
      () => ({ XDG_CONFIG_HOME: '/sys' }),
      /^edgehostctl: \/sys\/edgehostctl cannot be written: (operation not permitted|permission denied|read-only file system|no such file or directory) \(\w+\)$/,
    ],
    ['since HOME is empty', () => ({ HOME: '' }), /there is no home folder.*set HOME, or XDG_CONFIG_HOME/],
    [
      'since HOME is relative',
      () => ({ HOME: 'here' }),
      /there is no home folder.*set HOME, or XDG_CONFIG_HOME/,
    ],
  ])(
    'a config folder that cannot be written, %s, is named, and the host is not blamed',
    async (_, prepare, message) => {
      const env = prepare()
      for (const command of [['status'], ['login', 'alice', '--password-stdin']]) {
        const ended = await run(env, ...known(), ...command)
        expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
        expect(ended.stderr).toMatch(message)
        expect(ended.stderr).not.toMatch(/reachable|\n/)
      }
      expect(asked).toEqual([])
      expect(existsSync(join(home, 'edgehostctl'))).toBe(false)
    },
  )

  it('a config folder that cannot be written is noticed before a password is sent, where the key is known already', async () => {
    expect(await run({ HOME: home }, ...known(), 'api', 'get', '/v1/ping')).toMatchObject({ exitCode: 0 })
    writeFileSync(join(home, '.config/edgehostctl/sessions'), '')
    asked = []
    const ended = await run({ HOME: home }, ...known(), 'login', 'alice', '--password-stdin')
    expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
    expect(ended.stderr).toMatch(/edgehostctl\/sessions cannot be written|sessions\S* cannot be read/)
    expect(asked).toEqual(['/v1/ping'])
  })

  it.each(['forget', 'logout'])('a config folder that cannot be written is named by %s', async (command) => {
    mkdirSync(join(home, '.config/edgehostctl'), { recursive: true })
    writeFileSync(join(home, '.config/edgehostctl/sessions'), '')
    const args = command === 'forget' ? ['forget', 'box'] : [...known(), 'logout']
    const ended = await run({ HOME: home }, ...args)
    expect(ended.exitCode).toBe(1)
    expect(ended.stderr).toMatch(/^edgehostctl: \S+ cannot be (read|written): .*\(E\w+\)$/)
  })

  it('a command over the socket needs no config folder', async () => {
    const env = { HOME: '', EDGEHOSTCTL_SOCKET: join(ctl.home, 'daemon.sock') }
    expect(await run(env, 'api', 'get', '/v1/ping')).toMatchObject({ exitCode: 0, stdout: '{"msg":"pong"}' })
  })
})

it('a config folder that only its owner may write is named to others', async ({ skip }) => {
  if (process.getuid?.() !== 0) skip('only root can give a folder away')
  // Root without capabilities, since another user may have no access to this checkout.
  chownSync(home, 65534, 65534)
  chmodSync(home, 0o755)
  const { exitCode, stderr } = await execa(
    'setpriv',
    ['--bounding-set=-all', 'setsid', '--wait', process.execPath, ctl.program, ...known(), 'status'],
    { reject: false, extendEnv: false, env: { HOME: home, PATH: '/usr/bin:/bin' } },
  )
  expect(stderr).toMatch(/home-\w+\/\.config\S* cannot be written: permission denied \(EACCES\)$/)
  expect(exitCode).toBe(1)
})
