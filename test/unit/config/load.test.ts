import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { loadConfig, parseCommandLine } from '../../../src/edgehostd/declarations.ts'
import { ConfigInvalid } from '../../../src/config/problem.ts'

let folder: string
let file: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'edgehostd-config-'))
  file = join(folder, 'config.yaml')
  mkdirSync(join(folder, 'config.d'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const write = (name: string, text: string | Buffer) => writeFileSync(join(folder, name), text)
const load = (environment: Record<string, string> = {}, argv: string[] = []) =>
  loadConfig({ commandLine: parseCommandLine(argv), environment, defaultFile: file })

/** Problems as `place: message`, the folder's name taken out. */
async function problemsOf(loading: Promise<unknown>): Promise<string[]> {
  const error: unknown = await loading.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(ConfigInvalid)
  const lines = (error as ConfigInvalid).problems.map(({ place, message }) => `${place}: ${message}`)
  expect((error as ConfigInvalid).message).toBe(lines.join('\n'))
  return lines.map((line) => line.replaceAll(`${folder}/`, ''))
}

describe('layers', () => {
  test('nothing at all gives the defaults', async () => {
    const { config, sources } = await load()
    expect(config.api.port).toBe(5080)
    expect(config.api.tls).toEqual({})
    expect(config.auth.adminGroups).toEqual(['sudo', 'wheel', 'edgehostd-admin'])
    expect(sources.get('api.port')).toBe('default')
    expect(sources.has('host.id')).toBe(false)
  })

  const layers = [
    { name: 'the file', value: 1001, source: 'config.yaml:2' },
    { name: 'a drop-in', value: 1002, source: 'config.d/10-site.yaml:3' },
    { name: 'a later drop-in', value: 1003, source: 'config.d/9-more.yaml:1' },
    { name: 'the environment', value: 1004, source: 'environment EDGEHOSTD_API_PORT' },
    { name: 'a flag', value: 1005, source: 'flag --api.port' },
  ]
  test.each(layers.map((layer, index) => ({ ...layer, strength: index + 1 })))(
    '$name is stronger than what comes before it',
    async ({ strength, value, source }) => {
      write('config.yaml', 'api:\n  port: 1001\n')
      if (strength > 1) write('config.d/10-site.yaml', '# x\napi:\n  port: 1002\n')
      if (strength > 2) write('config.d/9-more.yaml', 'api: {port: 1003}\n')
      const environment: Record<string, string> = strength > 3 ? { EDGEHOSTD_API_PORT: '1004' } : {}
      const { config, sources } = await load(environment, strength > 4 ? ['--api.port=1005'] : [])
      expect(config.api.port).toBe(value)
      expect(sources.get('api.port')?.replace(`${folder}/`, '')).toBe(source)
    },
  )

  test('sections merge and lists replace', async () => {
    write('config.yaml', 'auth:\n  adminGroups: [a, b]\n  guard: {lockMinutes: 2}\n')
    write('config.d/a.yaml', 'auth:\n  adminGroups: [c]\n  guard: {trackedKeys: 7}\n')
    const { auth } = (await load()).config
    expect(auth.adminGroups).toEqual(['c'])
    expect(auth.guard).toMatchObject({ lockMinutes: 2, trackedKeys: 7, lockAfterFailures: 5 })
  })

  test('the path of a folder has no end that says nothing, from whatever layer it comes', async () => {
    write('config.yaml', 'state: {directory: /x/state/./}\n')
    const { config } = await load({}, ['--content.directory=/x/content//'])
    expect([config.state.directory, config.content.directory]).toEqual(['/x/state', '/x/content'])
  })

  test('drop-ins come in byte order, and only visible names ending in .yaml', async () => {
    for (const name of ['b.yaml', 'B.yaml', 'é.yaml', '\u{1f600}.yaml', '\uffee.yaml']) {
      write(`config.d/${name}`, 'unheard: 1\n')
    }
    for (const name of ['b.yaml~', 'c.yml', '.#b.yaml', 'README', 'b.yaml.dpkg-old']) {
      write(`config.d/${name}`, 'broken: [')
    }
    const names = (await problemsOf(load())).map((line) => /^config\.d\/(.+?):1:1: /.exec(line)?.[1])
    expect(names).toEqual(['B.yaml', 'b.yaml', 'é.yaml', '\uffee.yaml', '\u{1f600}.yaml'])
  })

  test('a drop-in that is a link to /dev/null says nothing', async () => {
    symlinkSync('/dev/null', join(folder, 'config.d/a.yaml'))
    expect((await load()).config.api.port).toBe(5080)
  })

  test.each(['', '# only\n  # comments\r\n\n', '\ufeff# mark\n', '---\n', 'api:\nauth:\n  guard: # none\n'])(
    'a file that holds %j sets nothing',
    async (text) => {
      write('config.yaml', text)
      const { sources } = await load()
      expect([...new Set(sources.values())]).toEqual(['default'])
    },
  )

  test.each([
    ['EDGEHOSTD_API_PORT', '+81', 'port', 81],
    ['EDGEHOSTD_AUTH_GUARD_LOCK_MINUTES', '0.5', 'lockMinutes', 0.5],
    ['EDGEHOSTD_AUTH_ALLOW_ANY_SHELL', 'true', 'allowAnyShell', true],
    ['EDGEHOSTD_HOST_NAME', '12', 'name', '12'],
    ['EDGEHOSTD_HOST_MODE', 'connected', 'mode', 'connected'],
    ['EDGEHOSTD_AUTH_ADMIN_GROUPS', 'wheel, ops', 'adminGroups', ['wheel', 'ops']],
    ['EDGEHOSTD_AUTH_ADMIN_GROUPS', '', 'adminGroups', []],
  ])('%s=%j is parsed by the type of its key', async (name, text, key, value) => {
    const { config } = await load({ [name]: text, PATH: '/bin', EDGEHOSTDX: '1' })
    const found = Object.values({ ...config, guard: config.auth.guard }).find((section) => key in section)
    expect(found).toHaveProperty(key, value)
  })

  test('--config names the file and where its drop-ins are, over EDGEHOSTD_CONFIG', async () => {
    mkdirSync(join(folder, 'other'))
    write('other/site.yaml', 'api: {port: 7}\n')
    write('config.d/a.yaml', 'log: {level: debug}\n')
    const other = join(folder, 'other/site.yaml')
    const byFlag = await load({ EDGEHOSTD_CONFIG: '/nowhere' }, ['--config', other])
    const byVariable = await load({ EDGEHOSTD_CONFIG: other })
    for (const { config } of [byFlag, byVariable]) {
      expect([config.api.port, config.log.level]).toEqual([7, 'info'])
    }
  })

  test('the configuration is frozen all the way down, and its defaults are its own', async () => {
    const { config } = await load()
    expect(() => ((config.auth.guard as { lockMinutes: number }).lockMinutes = 1)).toThrow(TypeError)
    expect(() => config.auth.adminGroups.push('x')).toThrow(TypeError)
    expect((await load()).config.auth.adminGroups).not.toBe(config.auth.adminGroups)
  })
})

describe('a drop-in that is going to be', () => {
  const plan = (name: string, text: string | undefined) =>
    loadConfig({
      ...{ commandLine: parseCommandLine([]), environment: {}, defaultFile: file },
      planned: { file: join(folder, 'config.d', name), text },
    })

  test('counts in its place among the others, and instead of what is on the disk', async () => {
    write('config.d/10-a.yaml', 'api: {port: 1001}\n')
    write('config.d/90-z.yaml', 'log: {level: debug}\n')
    const { config, sources } = await plan('50-b.yaml', 'api:\n  port: 1002\nlog: {level: warn}\n')
    expect([config.api.port, config.log.level]).toEqual([1002, 'debug'])
    expect(sources.get('api.port')).toBe(`${folder}/config.d/50-b.yaml:2`)
    expect((await plan('10-a.yaml', '# none\n')).config.api.port).toBe(5080)
    expect((await plan('90-z.yaml', undefined)).config.log.level).toBe('info')
  })

  test('may be the first one, in a folder that is not there', async () => {
    rmSync(join(folder, 'config.d'), { recursive: true })
    expect((await plan('50-b.yaml', 'api: {port: 1002}\n')).config.api.port).toBe(1002)
    expect((await plan('50-b.yaml', undefined)).config.api.port).toBe(5080)
  })

  test('is checked as any other', async () => {
    expect(await problemsOf(plan('50-b.yaml', 'api: {prt: 1}\n'))).toEqual([
      expect.stringMatching(/^config\.d\/50-b\.yaml:1/),
    ])
  })
})

describe('problems', () => {
  test('problems of all layers are listed at once, also those of values that a later layer replaces', async () => {
    write('config.yaml', 'api:\n  prot: 1\n  port: 70000\nhost:\n  name: 12\n')
    write('config.d/a.yaml', 'api:\n\tport: 1\n')
    write('config.d/b.yaml', 'log:\n\n  level: [info]\n')
    write('config.d/c.yaml', Buffer.from('log:\n  # \xe9\n', 'latin1'))
    const environment = { EDGEHOSTD_API_PRT: '1', EDGEHOSTD_API_PORT: 'abc', EDGEHOSTD_HOST_ID: '' }
    const argv = ['--api.prot=1', '--api.body.limitBytes=1.5', 'extra', '--api.port=80']
    const levels = 'one of fatal, error, warn, info, debug, trace'
    expect(await problemsOf(load(environment, argv))).toEqual([
      'config.yaml:2:3: unknown key api.prot; did you mean api.port?',
      'config.yaml:3:9: api.port is 70000; it must be a whole number from 1 to 65535',
      'config.yaml:5:9: host.name is 12; it must be text of 1 to 253 characters; put it in quotes to make it text',
      'config.d/a.yaml:2:1: not valid YAML: Tabs are not allowed as indentation',
      `config.d/b.yaml:3:10: log.level is a list; it must be ${levels}`,
      'config.d/c.yaml:2:1: is not UTF-8 text',
      'environment EDGEHOSTD_API_PORT: api.port is "abc"; it must be a whole number from 1 to 65535',
      'environment EDGEHOSTD_API_PRT: unknown variable; did you mean EDGEHOSTD_API_PORT?',
      'environment EDGEHOSTD_HOST_ID: host.id is empty; it must be 1 to 128 letters, digits, dots, dashes and underscores, the first a letter or digit',
      'flag --api.prot: unknown flag; did you mean --api.port?',
      'flag --api.body.limitBytes: api.body.limitBytes is "1.5"; it must be a whole number from 1 to 1073741824',
      'argument extra: unexpected argument; settings are given as --section.key=value',
    ])
  })

  test.each([
    ['port: 5080', '1:1: unknown key port; did you mean api.port?'],
    ['__proto__: {port: 1}', '1:1: unknown key __proto__'],
    ['constructor: {prototype: {port: 1}}', '1:1: unknown key constructor'],
    ['api: {__proto__: {port: 1}}', '1:7: unknown key api.__proto__'],
    ['api: {Port: 1}', '1:7: unknown key api.Port; did you mean api.port?'],
    ['"a\\eb": 1', '1:1: unknown key a\\u001bb'],
    ['api:\n  port: 1\n  body:\n  port: 2', '4:3: api.port is given twice; first in line 2'],
    [
      'api: 3',
      '1:6: api is 3; it must be a section of address, port, socket, tls, timeouts, body, connections, trustedProxies, rateLimits',
    ],
    [
      '- api',
      '1:1: the file is a list; it must be a section of host, platform, network, api, pages, auth, content, definitions, cluster, userData, diagnosis, audit, metrics, log, state',
    ],
    ['api: {port: }', '1:13: api.port is empty; it must be a whole number from 1 to 65535'],
    ['api: {port: "80"}', '1:13: api.port is "80"; it must be a whole number from 1 to 65535'],
    ['api: {address: local}', '1:16: api.address is "local"; it must be an IPv4 or IPv6 address'],
    [
      'auth: {guard: {lockMinutes: .nan}}',
      '1:29: auth.guard.lockMinutes is NaN; it must be a number above 0 and at most 10080',
    ],
    [
      'auth: {guard: {lockMinutes: 0}}',
      '1:29: auth.guard.lockMinutes is 0; it must be a number above 0 and at most 10080',
    ],
    ['auth: {allowAnyShell: yes}', '1:23: auth.allowAnyShell is "yes"; it must be true or false'],
    [
      'auth: {adminGroups: sudo}',
      '1:21: auth.adminGroups is "sudo"; it must be a list, each item text that is not empty',
    ],
    [
      'auth: {adminGroups: [a, 5]}',
      '1:21: auth.adminGroups[1] is 5; it must be text that is not empty; put it in quotes to make it text',
    ],
    ['log: {level: *x}', '1:14: alias *x has no anchor before it'],
    ['log: {level: !x info}', '1:14: not valid YAML: Unresolved tag: !x'],
    ['<<: {api: {port: 1}}', '1:1: unknown key <<'],
    ['log:\n---\nlog:', '2:1: a second document begins here; a file may have only one'],
    ['%YAML 1.1\n---\nlog:', ' asks for YAML 1.1; only YAML 1.2 is read'],
    ['['.repeat(20_000), expect.stringContaining(': nested too deeply')],
  ])('%.50j is refused with its place', async (text, problem) => {
    write('config.yaml', text)
    const problems = await problemsOf(load())
    expect(problems[0]?.replace('config.yaml:', '')).toEqual(problem)
    if (!text.startsWith('[')) expect(problems).toHaveLength(1)
  })

  test('aliases are followed, many of them are not', async () => {
    write('config.yaml', 'api: {port: &p 81, timeouts: {idleMs: *p}}\n')
    expect((await load()).config.api.timeouts.idleMs).toBe(81)
    write('config.yaml', `auth: {adminGroups: [&a x${', *a'.repeat(101)}]}\n`)
    expect(await problemsOf(load())).toEqual(['config.yaml: has more than 100 aliases (*name)'])
  })

  test('aliases that multiply are refused without being expanded', async () => {
    const levels = Array.from({ length: 50 }, (_, i) => `&l${i + 1} [*l${i}, *l${i}]`)
    write('config.yaml', `auth:\n  adminGroups: [&l0 [x], ${levels.slice(0, 45).join(', ')}]\n`)
    const problems = await problemsOf(load())
    expect(problems).toHaveLength(46)
    expect(problems[45]).toContain('auth.adminGroups[45] is a list')
  })

  test('the place is the whole name of the file, on one line', async () => {
    const name = `config.d/${'long-'.repeat(30)}\n.yaml`
    write(name, 'x: 1')
    expect(await problemsOf(load())).toEqual([`${name.replace('\n', '\\u000a')}:1:1: unknown key x`])
  })

  test('a file over 1 MiB, a folder and a named file that is missing are refused', async () => {
    write('config.yaml', `#${'x'.repeat(1_048_576)}`)
    mkdirSync(join(folder, 'config.d/a.yaml'))
    symlinkSync('/dev/zero', join(folder, 'config.d/b.yaml'))
    symlinkSync('/nowhere', join(folder, 'config.d/c.yaml'))
    expect(await problemsOf(load())).toEqual([
      'config.yaml: has more than 1048576 bytes',
      'config.d/a.yaml: is a folder, not a regular file',
      'config.d/b.yaml: is a device, not a regular file',
      'config.d/c.yaml: does not exist',
    ])
    expect((await problemsOf(load({}, ['--config=/nowhere/x.yaml'])))[0]).toBe(
      '/nowhere/x.yaml: does not exist',
    )
    expect((await problemsOf(load({ EDGEHOSTD_CONFIG: '/nowhere/x.yaml' })))[0]).toMatch(/^\/nowhere/)
    expect(await problemsOf(load({ EDGEHOSTD_CONFIG: '' }))).toContain(
      'environment EDGEHOSTD_CONFIG: is empty; it must be the path of a file',
    )
  })

  test('certificate and key are refused without each other, whichever layers they come from', async () => {
    write('config.yaml', 'api:\n  tls:\n    certificateFile: /a\n')
    expect(await problemsOf(load())).toEqual([
      'config.yaml:3:22: api.tls.certificateFile also needs api.tls.keyFile',
    ])
    const { config } = await load({}, ['--api.tls.keyFile=/b'])
    expect(config.api.tls).toEqual({ certificateFile: '/a', keyFile: '/b' })
    write('config.yaml', '')
    expect(await problemsOf(load({ EDGEHOSTD_API_TLS_KEY_FILE: '/b' }))).toEqual([
      'environment EDGEHOSTD_API_TLS_KEY_FILE: api.tls.keyFile also needs api.tls.certificateFile',
    ])
  })

  test('a half that is wrong or may stand in an unreadable file is not called missing', async () => {
    write('config.yaml', 'api: {tls: {certificateFile: a}}\n')
    expect(await problemsOf(load({}, ['--api.tls.keyFile=/b']))).toEqual([
      'config.yaml:1:30: api.tls.certificateFile is "a"; it must be an absolute path',
    ])
    write('config.yaml', 'api: {tls: {certificateFile: /a}\n')
    expect(await problemsOf(load({}, ['--api.tls.keyFile=/b']))).toHaveLength(1)
  })
})
