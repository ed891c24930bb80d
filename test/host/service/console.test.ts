import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createConsole } from '../../../src/service/console.ts'
import { CommandFailed, type CommandRunner } from '../../../src/system/runner.ts'
import { captureLog } from '../../support/https-server.ts'

let folder: string
let file: string
let logged: ReturnType<typeof captureLog>
let commands: string[]
const runner: CommandRunner = {
  run(program, args) {
    commands.push([program, ...args].join(' '))
    return Promise.reject(new CommandFailed(program, 'not-started', 'ENOENT'))
  },
}
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edgehostd-issue-'))
  file = join(folder, 'edgehostd.issue')
  logged = captureLog()
  commands = []
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const makeIssue = (at = file) => createConsole({ file: at, runner, log: logged.log })
const warnings = () => logged.lines.filter(({ level }) => level === 40)

describe('the issue file', () => {
  it('the issue file has the text, readable for all, and consoles are reloaded', async () => {
    await makeIssue().show('one\n')
    expect(await readFile(file, 'utf8')).toBe('one\n\n')
    expect((await stat(file)).mode & 0o777).toBe(0o644)
    expect(commands).toEqual(['agetty --reload'])
    expect(await readdir(folder)).toEqual(['edgehostd.issue'])
  })

  it('what a killed daemon has left of the issue file is removed, and nothing of other programs', async () => {
    await writeFile(join(folder, '.edgehostd.issue.7470644c9d440170.tmp'), 'half')
    await writeFile(join(folder, '.other.issue.7470644c9d440170.tmp'), 'of another program')
    await makeIssue().show('one\n')
    expect((await readdir(folder)).sort()).toEqual(['.other.issue.7470644c9d440170.tmp', 'edgehostd.issue'])
  })

  it('the issue file is written again only when the text has changed', async () => {
    const issue = makeIssue()
    await issue.show('one\n')
    const { ino } = await stat(file)
    await issue.show('one\n')
    expect((await stat(file)).ino).toBe(ino)
    await Promise.all([issue.show('two\n'), issue.show('three\n')])
    expect(await readFile(file, 'utf8')).toBe('three\n\n')
    expect(commands).toHaveLength(3)
  })

  it('the issue file does not exist after the removal', async () => {
    const issue = makeIssue()
    await issue.show('one\n')
    await issue.remove()
    expect(await readdir(folder)).toEqual([])
    await makeIssue().remove()
  })

  it('an issue file that cannot be written is one warning with the command that mends it', async () => {
    const issue = makeIssue(join(folder, 'missing', 'edgehostd.issue'))
    await issue.show('one\n')
    await issue.show('two\n')
    expect(warnings()).toEqual([
      expect.objectContaining({
        reason: 'ENOENT',
        msg: expect.stringContaining('systemd-tmpfiles --create edgehostd.conf') as string,
      }),
    ])
    expect(commands).toEqual([])
    await issue.remove()
  })

  it('there is no issue file when its path is empty', async () => {
    const issue = makeIssue('')
    await issue.show('one\n')
    await issue.remove()
    expect(warnings()).toEqual([])
    expect(commands).toEqual([])
  })
})
