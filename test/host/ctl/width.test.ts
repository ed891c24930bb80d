import { stripVTControlCharacters } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildDefinition, createCtlShell, type CtlShell } from '../../support/ctl-shell.ts'

let shell: CtlShell
beforeAll(async () => {
  shell = await createCtlShell()
  await buildDefinition(shell)
})
afterAll(() => shell.stop())

/** Output of a command: in a pipe, or on a terminal of so many columns. */
async function show(command: string, columns?: number, env: Record<string, string> = {}): Promise<string> {
  const given = columns === undefined ? { env } : { env, columns }
  const { stdout, stderr } = await shell.command(command, given)
  return stripVTControlCharacters(stdout + stderr)
}

const wordsOf = (text: string) => text.split(/\s+/).filter((word) => word !== '')

describe.each([
  'status',
  'host show',
  'host usage',
  'session list',
  'audit list',
  'audit verify',
  'definition inspect d.tgz',
  'definition validate d.tgz',
  'cluster get',
  'cluster events',
  'cluster diff',
  'cluster revisions',
  'content list',
  'content show u',
  'content delete d --dry-run',
  'content usage',
  'help',
  'help audit list',
])('%s', (command) => {
  it.each([40, 60, 80, 100])(
    `the text of ${command} fits %i columns without a break inside a word that fits`,
    async (columns) => {
      const whole = new Set(wordsOf(await show(command)))
      const text = await show(command, columns)
      expect(text.length).toBeGreaterThan(100)
      for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(columns)
      // Words longer than a line, such as a hash or a path in an archive, are broken; a fingerprint between bytes.
      const long = [...whole].filter((word) => word.length > columns - 2 || /^([0-9A-F]{2}:){31}/.test(word))
      for (const word of wordsOf(text)) {
        if (!long.some((each) => each.includes(word))) expect(whole, `${word} in\n${text}`).toContain(word)
      }
    },
  )
})

it('COLUMNS overrides the width of the terminal, and does not apply to a pipe', async () => {
  const narrow = await show('audit list --limit=1', 120, { COLUMNS: '40' })
  for (const line of narrow.split('\n')) expect(line.length).toBeLessThanOrEqual(40)
  expect(await show('audit list', undefined, { COLUMNS: '40' })).toBe(await show('audit list'))
})

it('a terminal has the width that stty sets', async () => {
  const { stdout } = await shell.run('script -qec "stty cols 50; edgehostctl host show" /dev/null')
  const text = stripVTControlCharacters(stdout).replaceAll('\r', '')
  expect(text.trimEnd()).toBe((await show('host show', 50)).trimEnd())
})
