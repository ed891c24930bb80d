import { expect, test } from 'vitest'
import { helpText, parseCommandLine, configSchema } from '../../../src/edgehostd/declarations.ts'
import { listKeys } from '../../../src/config/key.ts'
import { nearestName } from '../../../src/base/nearest-name.ts'

test.each([
  [[], 'run'],
  [['--check-config'], 'check-config'],
  [['--print-config', '--check-config'], 'print-config'],
  [['--version'], 'version'],
  [['--check-config', '--help', '--nonsense'], 'help'],
])('%j requests the action %s', (argv, action) => {
  expect(parseCommandLine(argv).action).toBe(action)
})

test.each([
  [['--api.port=81'], 81],
  [['--api.port', '81'], 81],
  [['--api.port=1', '--api.port=81'], 81],
  [['--host.name=a=b'], 'a=b'],
  [['--host.name=-x'], '-x'],
  [['--auth.adminGroups=a, b'], ['a', 'b']],
  [['--auth.adminGroups='], []],
  [['--auth.allowAnyShell'], true],
  [['--auth.allowAnyShell=false'], false],
])('%j sets %j', (argv, value) => {
  const { settings, problems } = parseCommandLine(argv)
  expect(problems).toEqual([])
  expect(settings.at(-1)?.value).toEqual(value)
})

test('a boolean flag leaves the next argument alone', () => {
  const { action, settings } = parseCommandLine(['--auth.allowAnyShell', '--check-config'])
  expect(action).toBe('check-config')
  expect(settings).toHaveLength(1)
})

test.each([
  [['--config', '/x'], '/x'],
  [['--config=/x'], '/x'],
  [['--config=/y', '--config=/x'], '/x'],
])('%j names the configuration file', (argv, file) => {
  expect(parseCommandLine(argv)).toMatchObject({ configFile: file, problems: [] })
})

test.each([
  ['--port=1', 'flag --port: unknown flag; did you mean --api.port?'],
  ['--chek-config', 'flag --chek-config: unknown flag; did you mean --check-config?'],
  ['--run', 'flag --run: unknown flag; see --help'],
  ['-x', 'flag -x: unknown flag; see --help'],
  ['--__proto__=1', 'flag --__proto__: unknown flag; see --help'],
  ['--constructor', 'flag --constructor: unknown flag; see --help'],
  ['--api=1', 'flag --api: unknown flag; see --help'],
  ['--api.port', 'flag --api.port: needs a value'],
  ['--config', 'flag --config: needs a value'],
  ['--config=', 'flag --config: needs a value'],
  ['--check-config=yes', 'flag --check-config: takes no value'],
  [
    '--auth.allowAnyShell=1',
    'flag --auth.allowAnyShell: auth.allowAnyShell is "1"; it must be true or false',
  ],
  ['start', 'argument start: unexpected argument; settings are given as --section.key=value'],
])('%s is a problem', (argument, problem) => {
  const { problems, settings } = parseCommandLine([argument])
  expect(problems.map(({ place, message }) => `${place}: ${message}`)).toEqual([problem])
  expect(settings).toEqual([])
})

test('a flag is not taken for the value of the one before it', () => {
  const { problems } = parseCommandLine(['--api.port', '--check-config'])
  expect(problems).toEqual([
    {
      place: 'flag --api.port',
      message: 'needs a value; write --api.port=--check-config if this is the value',
    },
  ])
})

test('the help lists --prime-cache too, which the loader around the program takes', () => {
  expect(helpText()).toContain('\n  --prime-cache ')
})

test('the help names every key with its default', () => {
  const text = helpText()
  for (const { path, schema } of listKeys(configSchema)) {
    const preset = schema.default === undefined ? '' : ` [${[schema.default].flat().map(String).join(',')}]`
    expect(text).toContain(`  --${path}=…${preset}\n`)
  }
})

test.each([
  ['prot', 'port'],
  ['PORT', 'port'],
  ['adress', 'address'],
  ['zzz', undefined],
  ['x'.repeat(1000), undefined],
])('nearest to %.20s is %s', (name, nearest) => {
  expect(nearestName(name, ['address', 'port', 'tls'])).toBe(nearest)
})
