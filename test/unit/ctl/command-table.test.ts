import { expect, it } from 'vitest'
import {
  defineCommand,
  type Command,
  type Program,
  optionsOf,
  sumCommands,
} from '../../../src/ctl/command.ts'
import { parseCommandLine } from '../../../src/ctl/command-line.ts'
import { bashCompletion, helpText } from '../../../src/ctl/help.ts'
import { hostSessions } from '../../../src/edgehostctl/host-sessions.ts'
import { commandTable } from '../../../src/edgehostctl/nouns.ts'
import { limit, type Options } from '../../../src/ctl/options.ts'

const named = (name: string, options?: Options): Command =>
  defineCommand({
    name,
    summary: 'Do it',
    load: async () => async () => undefined,
    ...(options && { options }),
  })

it('a new noun is parsed, described and completed', () => {
  const depth = { value: 'N', summary: 'How deep.' }
  const table = sumCommands(
    [[named('box open', { depth, limit })], [named('box close'), named('help')]],
    hostSessions,
  )
  expect(parseCommandLine(['box', 'open', '--depth=2'], table)).toMatchObject({ options: { depth: '2' } })
  expect(() => parseCommandLine(['box', 'close', '--depth=2'], table)).toThrow('box close takes no --depth')
  expect(helpText(['box', 'open'], table)).toContain('--depth=N  How deep.')
  const text = bashCompletion(table)
  expect(text).toContain("'box') candidates='open close'")
  expect(text).toMatch(/'box open'\*\) candidates='--output [^']* --depth --limit'/)
})

it.each<[string, readonly (readonly Command[])[], RegExp]>([
  ['command', [[named('box open')], [named('box open')]], /the command box open is declared twice/],
  [
    'command with the name of a group',
    [[named('box open')], [named('box')]],
    /box is declared as a command and as a group/,
  ],
  [
    'option with a second meaning',
    [[named('a', { size: { summary: 'Big.' } })], [named('b', { size: { summary: 'Bigger.' } })]],
    /the option --size is declared twice/,
  ],
  [
    'option with the name of a global one',
    [[named('a', { host: { summary: 'Ours.' } })]],
    /--host is declared twice/,
  ],
  [
    'option with the name of --version',
    [[named('a', { version: { summary: 'Ours.' } })]],
    /--version is declared twice/,
  ],
  [
    'letter of an option',
    [[named('a', { open: { short: 'o', summary: 'Open.' } })]],
    /the option -o is declared twice/,
  ],
])('a second declaration of a %s is refused', (_what, nouns, message) => {
  expect(() => sumCommands(nouns, hostSessions)).toThrow(message)
})

it('an option of one command may have the name of another, if it is parsed alike', () => {
  const file = { value: 'FILE', summary: 'The file to write.' }
  const own = { value: 'NAME=FILE...', summary: 'Files.', isList: true, isOfCommand: true } as const
  const table = sumCommands([[named('a', { file })], [named('b', { file: own })]], hostSessions)
  expect(parseCommandLine(['a', '--file', 'x'], table)).toMatchObject({ options: { file: 'x' } })
  expect(parseCommandLine(['b', '--file', 'x', 'y'], table)).toMatchObject({ lists: { file: ['x', 'y'] } })
  expect(helpText(['b'], table)).toContain('--file=NAME=FILE...')
  expect(() => sumCommands([[named('b', { file: own })]], hostSessions)).toThrow('has no namesake')
  expect(() =>
    sumCommands([[named('a', { file: { summary: 'On.' } })], [named('b', { file: own })]], hostSessions),
  ).toThrow('is parsed in another way')
})

it('words behind a list are its values once the command has its arguments', () => {
  const file = { value: 'FILE...', summary: 'Files.', isList: true }
  const table = sumCommands([[{ ...named('b', { file }), arguments: ['NAME'] }]], hostSessions)
  for (const line of [
    'b c --file x y',
    'b --file x c --file y',
    '--file x b c --file y',
    'b c --file x --file y',
  ])
    expect(parseCommandLine(line.split(' '), table), line).toMatchObject({
      arguments: ['c'],
      lists: { file: ['x', 'y'] },
    })
  expect(() => parseCommandLine(['b', '--file', 'x', 'y', 'c'], table)).toThrow('unexpected argument c')
})

it('an option of several nouns is declared once and accepted by each of them', () => {
  const table = sumCommands([[named('a', { limit })], [named('b', { limit })]], hostSessions)
  for (const command of table.commands) expect(optionsOf(table, command)).toContain('limit')
})

it('a program reads only options that its command has', () => {
  const program: Program<'limit'> = async ({ options }) => (options.limit === '' ? 'usage' : 'ok')
  defineCommand({ name: 'a', summary: 'A', options: { limit }, load: async () => program })
  // @ts-expect-error: the command has no --limit
  defineCommand({ name: 'b', summary: 'B', load: async () => program })
})

it('each command of edgehostctl has a program', async () => {
  for (const { load } of commandTable.commands) expect(await load()).toBeTypeOf('function')
})
