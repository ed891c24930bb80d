import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bundleProgram } from '../../support/bundle-program.ts'
import { buildDefinition, createCtlShell, type CtlShell } from '../../support/ctl-shell.ts'
import { compressions, rawTar, signedMembers } from '../../support/tar-bytes.ts'

let shell: CtlShell
beforeAll(async () => {
  shell = await createCtlShell()
  bundleProgram('support', shell.at('support.cjs'))
  bundleProgram('edgehostd', shell.at('main.cjs'))
  await buildDefinition(shell)
  const bad = compressions.gzip(rawTar(signedMembers({ 'profiles/u1/profile.json': '{' })))
  writeFileSync(shell.at('bad.tgz'), bad)
  writeFileSync(shell.at('good.yaml'), '{}\n')
})
afterAll(() => shell.stop())

const commands = [
  'help',
  'help audit list',
  'audit list --help',
  'version',
  'completion bash',
  'status',
  'status -o json',
  'status -o yaml',
  'host show',
  'host usage',
  'host usage -o json',
  'session list',
  'audit list --limit=5',
  'audit verify',
  'audit download --file=-',
  'api get /v1/ping',
  'definition inspect d.tgz',
  'definition inspect d.tgz -o json',
  'definition validate d.tgz -o json',
  'definition validate bad.tgz',
  'definition build --profile p.json --pack pack --file e.tgz',
  'content list',
  'content show u -o json',
  'content usage',
  'content delete d --yes',
]

const full = 'standard output cannot be written: no space left on device (ENOSPC)'

describe('a standard output that is full', () => {
  it.each(commands)('a full standard output is one line and exit code 1 for %s', async (command) => {
    const ended = await shell.command(command, { refusedOutput: 'ENOSPC' })
    expect(ended).toEqual({ exitCode: 1, stdout: '', stderr: `edgehostctl: ${full}\n` })
  })

  it.each([
    ['status', 'edgehostctl'],
    // It is run by the program of the daemon.
    ['config check good.yaml', 'edgehostd'],
  ])('a device that is full is one line and exit code 1 for %s', async (command, name) => {
    const { exitCode, stderr } = await shell.run(`edgehostctl ${command} > /dev/full`)
    expect(stderr).toBe(`${name}: ${full}`)
    expect(exitCode).toBe(1)
  })

  it.each([
    'status -o json',
    'audit download --file=-',
    'completion bash',
    'api get /v1/edge-mgmt/edgehosts/current',
  ])('a standard output that becomes full within %s is reported', async (command) => {
    // The first write ends at the limit and counts as written, as on a disk that gets full; the next one fails.
    const { exitCode, stderr } = await shell.run(`ulimit -f 1; edgehostctl ${command} > part`)
    expect(readFileSync(shell.at('part')).length).toBe(1_024)
    expect(stderr).toBe('edgehostctl: standard output cannot be written: file too large (EFBIG)')
    expect(exitCode).toBe(1)
  })

  it.each(['--help', '--version', '--print-config', '--check-config'])(
    'a full standard output is reported by edgehostd %s',
    async (flag) => {
      const { exitCode, stderr } = await shell.run(
        `'${process.execPath}' main.cjs --config good.yaml ${flag} > /dev/full`,
      )
      expect(stderr).toBe(`edgehostd: ${full}`)
      expect(exitCode).toBe(1)
    },
  )
})

describe('a reader that has seen enough', () => {
  // An incomplete archive is an error.
  const codeOf = (command: string) => (command.startsWith('audit download') ? 1 : 0)

  it.each(commands)('%s prints no error to a reader that has gone', async (command) => {
    const ended = await shell.command(command, { refusedOutput: 'EPIPE' })
    expect(ended).toEqual({ exitCode: codeOf(command), stdout: '', stderr: '' })
  })

  it.each(['status -o json', 'audit download --file=-', 'config check good.yaml'])(
    '%s prints no error to a reader that closes the pipe',
    async (command) => {
      // The program starts when the reader has closed its end.
      const { stderr } = await shell.run(
        `[ -p go ] || mkfifo go; (read -r < go; edgehostctl ${command}; echo "ended with $?" >&2) | { exec 0<&-; echo > go; }`,
      )
      expect(stderr).toBe(`ended with ${codeOf(command)}`)
    },
  )
})

it('a closed standard output is reported by the installed command', async () => {
  const script = join(import.meta.dirname, '../../../build/debian/edgehostctl')
  const { exitCode, stderr } = await shell.run(`sh '${script}' help >&-`)
  expect(stderr).toBe('edgehostctl: standard output cannot be written: it is closed')
  expect(exitCode).toBe(1)
})

it('a full standard error does not change the exit code', async () => {
  const { exitCode } = await shell.run('edgehostctl --socket /nowhere status 2> /dev/full')
  expect(exitCode).toBe(3)
})
