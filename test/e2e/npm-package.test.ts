import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdtemp, mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { exportedProfile } from '../support/tar-bytes.ts'
import { execa } from 'execa'

const machinesNode = '/usr/bin/node'
const pinned = dirname(process.execPath)
let folder: string
let archive: string

beforeAll(async () => {
  // The next run removes the folder by this name if this one is killed.
  folder = await mkdtemp(join(tmpdir(), `edgehost-${process.pid}-`))
  const dist = dirname(inject('deb'))
  const [name] = (await readdir(dist)).filter((each) => /^edgehostctl-.*\.tgz$/.test(each))
  if (name === undefined) throw new Error(`make package left no edgehostctl-*.tgz in ${dist}`)
  archive = join(folder, name)
  await cp(join(dist, name), archive)
  await run('npm', ['install', '--global', `--prefix=${prefix()}`, '--offline', archive])
  await mkdir(join(folder, 'pack'))
  const pack = { name: 'web', version: '1.0', layer: 'addon' }
  await writeFile(join(folder, 'pack/pack.json'), JSON.stringify(pack))
  const packs = [{ name: 'web', layer: 'addon', tag: '1.0', uid: 'w', type: 'spectro', values: 'a: 1\n' }]
  const profile = exportedProfile('u1', { type: 'add-on', packs }, { variables: [] })
  await writeFile(join(folder, 'p.json'), JSON.stringify(profile))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const prefix = () => join(folder, 'prefix')

/** Away from this tree, and from every registry. */
async function run(program: string, args: readonly string[], path = pinned) {
  const { exitCode, stdout, stderr } = await execa(program, args, {
    reject: false,
    extendEnv: false,
    cwd: folder,
    env: { PATH: `${path}:/usr/bin:/bin`, HOME: folder, npm_config_registry: 'http://127.0.0.1:9/' },
    stdin: 'ignore',
  })
  return { exitCode, stdout, stderr }
}
const ctl = (...args: string[]) => run(join(prefix(), 'bin/edgehostctl'), args)

describe('edgehostctl, installed by npm from its tarball without a registry', () => {
  it('the npm package runs, with its manual page beside it', async () => {
    expect(await ctl('version')).toMatchObject({ exitCode: 0, stderr: '' })
    expect((await ctl('help')).stdout).toContain('Usage: edgehostctl')
    expect(existsSync(join(prefix(), 'share/man/man1/edgehostctl.1'))).toBe(true)
  })

  it('the npm package brings the documents that its messages name', async () => {
    expect(existsSync(join(prefix(), 'lib/node_modules/edgehostctl/docs/definition-format.md'))).toBe(true)
  })

  it('the npm package builds, inspects and validates a definition', async () => {
    const built = await ctl(
      'definition',
      'build',
      '--profile',
      'p.json',
      '--pack',
      'pack',
      '--file',
      'd.tar.zst',
    )
    expect(built, built.stderr).toMatchObject({ exitCode: 0 })
    expect((await ctl('definition', 'inspect', 'd.tar.zst', '-o', 'yaml')).stdout).toMatch(/^archive:\n/)
    expect(await ctl('definition', 'validate', 'd.tar.zst')).toMatchObject({ exitCode: 0 })
  })

  it('the npm package writes an example and lists what it needs, by the helm in PATH', async () => {
    await mkdir(join(folder, 'bin'))
    const helm = `#!/bin/sh
case $1 in
package) eval last=\\$$#; mkdir -p "$last"; tar -C "$(dirname "$2")" -czf "$last/web.tgz" web; echo "saved it to: $last/web.tgz" ;;
template) echo 'apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: a, image: "of.helm/a:1"}]}' ;;
esac
`
    await writeFile(join(folder, 'bin/helm'), helm, { mode: 0o755 })
    expect(await ctl('definition', 'init', 'shop')).toMatchObject({ exitCode: 0 })
    const files = ['--profile', 'shop/profile.yaml', '--pack', 'shop/packs', '--file', 'shop.tgz']
    expect(await ctl('definition', 'build', ...files)).toMatchObject({ exitCode: 0 })
    const program = join(prefix(), 'bin/edgehostctl')
    const args = ['definition', 'needs', 'shop.tgz', '--list', 'image']
    const ended = await run(program, args, `${pinned}:${join(folder, 'bin')}`)
    expect(ended, ended.stderr).toMatchObject({ exitCode: 0, stderr: '' })
    expect(ended.stdout).toContain('of.helm/a:1')
  })

  it('the npm package reports a missing host like the installed edgehostctl', async () => {
    expect(await ctl('--host', 'localhost:1', 'status')).toMatchObject({ exitCode: 3 })
  })

  it('the npm package keeps keys and tokens, for which it needs modules only under node:', async () => {
    const ended = await ctl('forget', 'box')
    expect(ended).toMatchObject({ exitCode: 1, stdout: '', stderr: 'edgehostctl: no key of box is saved' })
  })

  it.each(['config check', 'support'])('the npm package says that %s is for the host', async (command) => {
    const ended = await ctl(...command.split(' '))
    expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
    expect(ended.stderr).toMatch(/^edgehostctl: this command works on the host .* run it on the host/)
  })
})

// Debian 12 has Node 18; the tests are skipped on a machine with a newer Node.
describe.skipIf(!isOld(machinesNode))('a Node that is too old', () => {
  const line = new RegExp(
    `^(\\w+) needs Node 24 or later; this is v\\d+\\.\\d+\\.\\d+ \\(${machinesNode}\\)$`,
  )
  const dist = () => dirname(inject('deb'))

  it.each(['definition validate x', 'definition', 'status', 'help', 'config check'])(
    'a Node that is too old is reported by edgehostctl %s',
    async (command) => {
      const ended = await run(machinesNode, [join(dist(), 'edgehostctl.cjs'), ...command.split(' ')])
      expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
      expect(line.exec(ended.stderr)?.[1]).toBe('edgehostctl')
    },
  )

  it('a Node that is too old is reported by the command that npm installed', async () => {
    const ended = await run(join(prefix(), 'bin/edgehostctl'), ['help'], dirname(machinesNode))
    expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
    expect(ended.stderr).toMatch(line)
  })

  it('a Node that is too old is reported by the daemon', async () => {
    const ended = await run(machinesNode, [join(dist(), 'main.cjs'), '--version'])
    expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
    expect(line.exec(ended.stderr)?.[1]).toBe('edgehostd')
  })
})

function isOld(node: string): boolean {
  if (!existsSync(node)) return false
  return parseInt(execFileSync(node, ['--version'], { encoding: 'utf8' }).slice(1), 10) < 24
}
