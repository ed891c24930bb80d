import { mkdtempSync, rmSync, readFileSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bundleProgram } from '../../support/bundle-program.ts'
import { createCtl, type Ctl } from '../../support/ctl.ts'
import { playEdgeHost } from '../../support/played-edge-host.ts'
import { platformCtlProgram } from '../../support/programs.ts'
import { createTestPlatform } from '../../support/test-platform.ts'

const password = 'a long password'
let platform: Awaited<ReturnType<typeof createTestPlatform>>
let folder: string
let socket: string
let ctl: Ctl
let fingerprint: string
/** HOST:PORT of the platform. */
let remote: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'platform-ctl-'))
  socket = join(folder, 'api.sock')
  platform = await createTestPlatform({ socket, flags: ['--platform.hostName=platform.example'] })
  await platform.start()
  ctl = createCtl(platformCtlProgram())
  fingerprint = (await json(['status'])).certificate.fingerprint
  remote = `127.0.0.1:${(platform.app.server.address() as AddressInfo).port}`
})
afterAll(async () => {
  await platform.close()
  for (const each of [folder, ctl.home]) rmSync(each, { recursive: true, force: true })
})

// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Any = any

/** A command of root on the machine. */
const run = (args: readonly string[], input?: string) => ctl.run(['--socket', socket, ...args], input)
/** A command that has to succeed; gives its standard output. */
async function ok(args: readonly string[], input?: string, command = run): Promise<string> {
  const { exitCode, stdout, stderr } = await command(args, input)
  if (exitCode !== 0) throw new Error(`${args.join(' ')} ended with ${exitCode}: ${stderr}`)
  return stdout
}
const json = async (args: readonly string[], command = run): Promise<Any> =>
  JSON.parse(await ok([...args, '-o', 'json'], undefined, command))

/** A user's home on another machine. */
function elsewhere() {
  const own = createCtl(platformCtlProgram())
  const args = ['--host', remote, '--fingerprint', fingerprint]
  return { ...own, at: (words: readonly string[], input?: string) => own.run([...args, ...words], input) }
}

it('the first administrator is made by root, sets a password by the link, and logs in from elsewhere', async () => {
  const link = (await ok(['user', 'create', 'you@plant.example', '--admin'])).trim()
  expect(link).toMatch(/^https:\/\/platform\.example:?\d*\/v1\/auth\/password\/[\w-]+\/activate$/)
  const you = elsewhere()
  const short = await you.at(['activate', link, '--password-stdin'], 'short\n')
  expect(short).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('password') })
  // As the page of users hands it out.
  const ofPage = link.replace('/v1/auth/password/', '/#/password/').replace('/activate', '')
  await ok(['activate', ofPage, '--password-stdin'], `${password}\n`, you.at)
  expect(await you.at(['activate', link, '--password-stdin'], `${password}\n`)).toMatchObject({ exitCode: 1 })

  expect(await you.at(['user', 'list'])).toMatchObject({
    exitCode: 4,
    stderr: `edgeplatformctl: not logged in on ${remote}: edgeplatformctl --host ${remote} login\n`,
  })
  const wrong = await you.at(['login', 'you@plant.example', '--password-stdin'], 'wrong password\n')
  expect(wrong).toMatchObject({ exitCode: 4 })
  await ok(['login', 'you@plant.example', '--password-stdin'], `${password}\n`, you.at)
  expect(await ok(['user', 'list'], undefined, you.at)).toMatch(/^you@plant\.example +admin +active +\d{4}-/m)

  await ok(['logout'], undefined, you.at)
  expect((await you.at(['user', 'list'])).exitCode).toBe(4)
  rmSync(you.home, { recursive: true })
})

it('a session is renewed before it ends, and its old token is refused then', async () => {
  await platform.addUser('renewing@plant.example', password, ['viewer'])
  const user = elsewhere()
  await ok(['login', 'renewing@plant.example', '--password-stdin'], password, user.at)
  const file = join(
    user.home,
    '.config/edgeplatformctl/sessions',
    `${encodeURIComponent(remote).replace('%3A', '_')}.json`,
  )
  const before = JSON.parse(readFileSync(file, 'utf8'))
  await ok(['project', 'list'], undefined, user.at)
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(before)
  // As six minutes later.
  writeFileSync(file, JSON.stringify({ ...before, since: before.since - 360_000 }))
  await ok(['project', 'list'], undefined, user.at)
  const after = JSON.parse(readFileSync(file, 'utf8'))
  expect(after.tokens.Authorization).not.toBe(before.tokens.Authorization)
  const headers = { authorization: before.tokens.Authorization }
  expect((await platform.app.inject({ url: '/v1/projects', headers })).statusCode).toBe(401)
  // A token that has ended cannot be exchanged.
  writeFileSync(file, JSON.stringify(before))
  expect((await user.at(['project', 'list'])).exitCode).toBe(4)
  rmSync(user.home, { recursive: true })
})

describe('users', () => {
  it('get roles, a new link, and go', async () => {
    const email = 'eve@plant.example'
    const { uid, activationLink } = await json([
      'users',
      'create',
      email,
      '--role=viewer',
      '--first-name=Eve',
    ])
    const again = await json(['user', 'activation', email])
    expect(again.uid).toBe(uid)
    expect(again.activationLink).not.toBe(activationLink)
    await ok(['user', 'roles', email, 'operator,viewer'])
    const roles = async () => {
      const { items } = await json(['user', 'list', `--filter=spec.emailId=${email}`])
      return (items as { spec: { roles: string[] } }[]).map(({ spec }) => spec.roles)
    }
    expect(await roles()).toEqual([['operator', 'viewer']])
    await ok(['user', 'roles', uid, 'none'])
    expect(await roles()).toEqual([[]])
    expect(await run(['user', 'delete', email])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('add --yes'),
    })
    await ok(['user', 'delete', email, '--yes'])
    expect(await run(['user', 'delete', email, '--yes'])).toMatchObject({
      exitCode: 1,
      stderr: 'edgeplatformctl: there is no user eve@plant.example; see: edgeplatformctl user list\n',
    })
  })

  it.each([
    [['user', 'create', 'no address'], 1, /e-mail address/],
    [['user', 'create', 'a@b.example', '--admin', '--role=viewer'], 2, /--admin contradicts --role=viewer/],
    [['user', 'create', 'a@b.example', '--role=boss'], 2, /must be one of: admin, operator, viewer/],
    [['user', 'roles', 'a@b.example', 'admin,boss'], 2, /boss is not a role/],
    [['activate', 'https://elsewhere/'], 2, /is not a link to set a password/],
    [['user'], 2, /user needs one of: list/],
  ])('%j is refused', async (args, exitCode, message) => {
    const ended = await run(args)
    expect(ended.exitCode).toBe(exitCode)
    expect(ended.stderr).toMatch(message)
    expect(ended.stdout).toBe('')
  })
})

it('users have roles in projects, and what a project holds keeps it', async () => {
  const uid = (await ok(['project', 'create', 'north plant'])).trim()
  await platform.addUser('of-north@plant.example', password)
  await ok(['project', 'roles', 'north plant', 'of-north@plant.example', 'operator'])
  const read = () => json(['project', 'list', '--filter', 'metadata.name=north plant'])
  expect((await read()).items).toMatchObject([
    { metadata: { uid }, spec: { users: [{ roles: ['operator'] }] } },
  ])
  expect(await ok(['project', 'list'])).toMatch(/^north plant +1 /m)
  await ok(['project', 'roles', uid, 'of-north@plant.example', 'none'])
  expect((await read()).items).toMatchObject([{ spec: { users: [] } }])
  expect(await run(['project', 'create', 'north plant'])).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('there is a project named north plant (ProjectExists)'),
  })
  await ok(['project', 'delete', 'north plant', '--yes'])
  expect((await read()).items).toEqual([])
})

it('an API key is shown once, logs a script in, and can be switched off', async () => {
  await platform.addUser('scripts@plant.example', password, ['viewer'])
  const wanted = ['apikey', 'create', 'nightly', '--for=scripts@plant.example']
  expect(await run(wanted)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--expiry=+90d') })
  const { apiKey } = await json([...wanted, '--expiry=+90d'])
  expect(await ok(['apikey', 'list'])).not.toContain(apiKey)
  const script = elsewhere()
  const file = join(script.home, 'key')
  writeFileSync(file, `${apiKey}\n`)
  await ok(['login', '--api-key-file', file], undefined, script.at)
  expect((await json(['project', 'list'], script.at)).items).toEqual([])
  expect(await script.at(['project', 'create', 'east'])).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/Forbidden/),
  })

  await ok(['apikey', 'disable', 'nightly'])
  expect(await ok(['apikey', 'list'])).toMatch(/^nightly .* disabled /m)
  expect((await script.at(['project', 'list'])).exitCode).toBe(4)
  await ok(['apikey', 'enable', 'nightly'])
  await ok(['project', 'list'], undefined, script.at)
  writeFileSync(file, 'another-key')
  expect((await script.at(['login', '--api-key-file', file])).exitCode).toBe(4)
  writeFileSync(file, 'two words')
  expect((await script.at(['login', '--api-key-file', file])).exitCode).toBe(2)
  await ok(['apikey', 'delete', 'nightly', '--yes'])
  expect((await script.at(['project', 'list'])).exitCode).toBe(4)
  rmSync(script.home, { recursive: true })
})

it('hosts register with a token of a command, and are listed, shown, accepted and removed', async () => {
  await ok(['project', 'create', 'south'])
  const token = (
    await ok(['token', 'create', 'for south', '--project=south', '--maximum-hosts=2', '--expiry=+1d'])
  ).trim()
  expect(await ok(['token', 'list'])).toMatch(/^for south +\S{8}… +south +0 of 2 +active /m)
  const [press, mill] = [playEdgeHost(platform), playEdgeHost(platform)]
  expect((await press.register(token, 'press-7')).status).toBe(200)
  const own = (await ok(['token', 'create', 'own'])).trim()
  await mill.register(own, 'mill-7')
  await press.logIn()

  const list = await ok(['host', 'list'])
  expect(list).toMatch(/^press-7 +south +192\.0\.2\.7 +amd64 +never seen +- +\S+$/m)
  expect(list).toMatch(/^mill-7 +- /m)
  expect(await ok(['host', 'list', '--project=south'])).not.toContain('mill-7')
  expect(await ok(['host', 'list', '--filter=metadata.name=mill-7'])).not.toContain('press-7')
  const one = await run(['host', 'list', '--limit=1'])
  expect([one.stdout.split('\n').length, one.stderr]).toEqual([3, '1 of 2; --limit=0 gives all\n'])
  expect(await json(['host', 'show', 'press-7'])).toMatchObject({ metadata: { uid: press.uid } })
  expect(await ok(['host', 'show', press.uid])).toMatch(/Project: south$/m)
  expect(await run(['host', 'show', 'nowhere'])).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/there is no host nowhere/),
  })

  await platform.addUser('of-south@plant.example', password)
  await ok(['project', 'roles', 'south', 'of-south@plant.example', 'viewer'])
  const viewer = elsewhere()
  await ok(['login', 'of-south@plant.example', '--password-stdin'], password, viewer.at)
  const seen = (await json(['host', 'list'], viewer.at)).items as { metadata: { name: string } }[]
  expect(seen.map(({ metadata: { name } }) => name)).toEqual(['press-7'])
  expect((await viewer.at(['host', 'delete', 'press-7', '--yes'])).exitCode).toBe(1)
  await ok(['project', 'roles', 'south', 'of-south@plant.example', 'none'])
  expect((await viewer.at(['host', 'list'])).exitCode).toBe(1)
  rmSync(viewer.home, { recursive: true })

  // A host of another scope that has the uid as its name does not hide it.
  await playEdgeHost(platform).register(own, press.uid)
  expect(await json(['host', 'show', press.uid])).toMatchObject({ metadata: { name: 'press-7' } })

  // Two hosts with one key: the copy logs in with an old generation.
  const copy = press.copy()
  await press.logIn()
  await platform.app.inject({
    ...{ method: 'PATCH', url: `/v1/edgehosts/${press.uid}/health` },
    ...{ headers: { authorization: press.token }, payload: { state: 'healthy' } },
  })
  await copy.logIn()
  expect(await ok(['host', 'list'])).toMatch(/^press-7 .* exists twice /m)
  await ok(['host', 'accept', 'press-7', '--yes'])
  expect((await press.logIn()).status).toBe(200)
  await ok(['host', 'delete', 'press-7', '--yes'])
  expect(await ok(['host', 'list'])).not.toContain('press-7')
  expect((await press.logIn()).json.code).toBe('HostRemoved')

  await ok(['token', 'disable', 'own'])
  expect((await playEdgeHost(platform).register(own)).status).toBe(401)
  await ok(['token', 'enable', 'own'])
  expect((await playEdgeHost(platform).register(own)).status).toBe(200)
  await ok(['token', 'delete', 'own', '--yes'])
  expect(await ok(['token', 'list'])).not.toMatch(/^own /m)
})

it('events of all scopes are shown, the newest first', async () => {
  await ok(['project', 'create', 'west'])
  for (const [name, options] of [
    ['a-host', []],
    ['b-host', ['--project=west']],
  ] as const) {
    const token = (await ok(['token', 'create', `of ${name}`, ...options])).trim()
    const host = playEdgeHost(platform)
    await host.register(token, name)
    await host.logIn()
    const uid = crypto.randomUUID()
    const creationTimestamp = '2026-11-01T08:00:00Z'
    const event = {
      reason: 'Hot',
      message: `${name} is hot`,
      severity: 'Warning',
      metadata: { uid, creationTimestamp },
    }
    const reply = await platform.app.inject({
      ...{ method: 'POST', url: '/v1/events/components/bulk' },
      ...{ headers: { authorization: host.token }, payload: [event] },
    })
    expect(reply.statusCode).toBe(201)
  }
  const [, first, second] = (await ok(['event', 'list'])).split('\n')
  expect([first, second].map((line) => line?.split(/\s+/)[2])).toEqual(['b-host', 'a-host'])
  expect(await ok(['event', 'list', '--project=west'])).not.toContain('a-host')
})

it('the audit trail tells who did what, and can be asked for one user and one project', async () => {
  await platform.addUser('auditor@plant.example', password, ['admin'])
  const auditor = elsewhere()
  await ok(['login', 'auditor@plant.example', '--password-stdin'], password, auditor.at)
  await ok(['project', 'create', 'audited'], undefined, auditor.at)
  const of = (words: readonly string[]) => ok(['audit', 'list', ...words], undefined, auditor.at)
  await expect
    .poll(() => of(['--by=auditor@plant.example']))
    .toMatch(/auditor@plant\.example +127\.0\.0\.1 .* success .*project/)
  expect(await of(['--by=auditor@plant.example'])).not.toMatch(/^\S+ \S+ +root /m)
  expect((await of(['--project=audited'])).trim().split('\n')).toHaveLength(1)
  expect((await of(['--since=+1d'])).trim().split('\n')).toHaveLength(1)
  expect((await of(['--limit=2'])).trim().split('\n')).toHaveLength(3)
  expect(await auditor.at(['audit', 'list', '--since=soon'])).toMatchObject({ exitCode: 2 })
  rmSync(auditor.home, { recursive: true })
})

it('the audit trail is verified against an earlier head, and saved', async () => {
  const { head, isIntact } = await json(['audit', 'verify'])
  expect(isIntact).toBe(true)
  await ok(['project', 'create', 'later'])
  const earlier = `--head=${head.number}:${head.hash}`
  expect(await ok(['audit', 'verify', earlier])).toContain('Trail: whole and unaltered')
  const other = await run([
    'audits',
    'verify',
    earlier.replace(/.{4}$/, (end) => (end === '0000' ? 'ffff' : '0000')),
  ])
  expect(other).toMatchObject({
    exitCode: 1,
    stdout: expect.stringContaining(`record ${head.number}: the record is not the one whose hash was given`),
  })

  const file = join(folder, 'trail.tar')
  expect(await run(['audit', 'download', `--file=${file}`])).toMatchObject({
    exitCode: 0,
    stderr: `The audit trail is in ${file}.\n`,
  })
  expect(readFileSync(file, 'utf8')).toContain(head.hash)
  const viewer = elsewhere()
  await platform.addUser('reader@plant.example', password, ['viewer'])
  await ok(['login', 'reader@plant.example', '--password-stdin'], password, viewer.at)
  for (const action of ['verify', 'download'])
    expect(await viewer.at(['audits', action])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('Forbidden'),
    })
  rmSync(viewer.home, { recursive: true })

  platform.rooms.state.database.sql.exec(
    `DROP TRIGGER audit_is_not_altered; UPDATE audit SET message = 'nothing' WHERE seq = ${head.number}`,
  )
  expect(await run(['audit', 'verify'])).toMatchObject({
    exitCode: 1,
    stdout: expect.stringContaining(`record ${head.number}: the record was altered`),
  })
})

it('nothing of a host is a part of the program', () => {
  const file = join(folder, 'ctl.cjs')
  const parts = bundleProgram('edgeplatformctl', file, { program: 'edgeplatformd', file: 'main.ts' })
  const rooms = new Set(parts.flatMap((path) => /^src\/([^/]+)\//.exec(path)?.[1] ?? []))
  // `archive` packs the folder of `pack upload`; it is a library of both programs.
  expect([...rooms].sort()).toEqual([
    'archive',
    'audit',
    'base',
    'ctl',
    'edgeplatformctl',
    'errors',
    'platform',
    'program',
    'system',
  ])
  expect(parts.filter((path) => /^src\/(audit|platform)\/(?!(.*\/)?commands[-./])/.test(path))).toEqual([])
  // Messages name this program.
  const sources = parts.filter((path) => path.startsWith('src/') && path !== 'src/base/program.ts')
  const named = sources.filter((path) =>
    readFileSync(path, 'utf8')
      .split('\n')
      .some((line) => !/^\s*(\/\/|\/?\*)/.test(line) && /edgehost(ctl|d)/.test(line)),
  )
  expect(named).toEqual([])
})

it('the state of the platform is shown with the fingerprint that a first contact asks for', async () => {
  expect(await ok(['status'])).toContain(fingerprint)
  const you = createCtl(platformCtlProgram())
  const { exitCode, stderr } = await you.run(['--host', remote, 'user', 'list'])
  expect(exitCode).toBe(5)
  expect(stderr).toContain(`The platform ${remote} is not known yet.`)
  expect(stderr).toContain('sudo edgeplatformctl status')
  expect(stderr).toContain(fingerprint)
  rmSync(you.home, { recursive: true })
})

it('the completion of the shell is offered the names that there are', async () => {
  await ok(['project', 'create', 'offered'])
  const offered = async (...command: string[]) => (await ok(['completion', 'names', ...command])).split('\n')
  expect(await offered('project', 'delete')).toContain('offered')
  expect(await offered('user', 'delete')).toContain('you@plant.example')
  for (const noun of ['host', 'pack', 'profile', 'cluster', 'token', 'apikey'])
    expect((await offered(noun, 'delete')).at(-1)).toBe('')
})
