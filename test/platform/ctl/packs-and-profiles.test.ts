import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { createCtl, overSocket, type Ctl } from '../../support/ctl.ts'
import { smallPack, smallProfile } from '../../support/platform-packs.ts'
import { platformCtlProgram } from '../../support/programs.ts'
import { createTestPlatform } from '../../support/test-platform.ts'

let platform: Awaited<ReturnType<typeof createTestPlatform>>
let folder: string
let socket: string
let ctl: Ctl

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'platform-ctl-'))
  socket = join(folder, 'api.sock')
  platform = await createTestPlatform({ socket })
  await platform.start()
  ctl = createCtl(platformCtlProgram())
})
afterAll(async () => {
  await platform.close()
  for (const each of [folder, ctl.home]) rmSync(each, { recursive: true, force: true })
})

const { run, ok, json } = overSocket(() => ({ ctl, socket }))

function packFolder(name: string, files: Readonly<Record<string, string>> = {}): string {
  const at = join(folder, name)
  for (const [path, content] of Object.entries(smallPack(name, '1.0.0', files))) {
    mkdirSync(dirname(join(at, path)), { recursive: true })
    writeFileSync(join(at, path), content)
  }
  return at
}
function profileFile(name: string, version = '1.0.0'): string {
  const file = join(folder, `${name}-${version}.json`)
  writeFileSync(file, JSON.stringify(smallProfile(name, version)))
  return file
}

describe('packs', () => {
  it('are uploaded from their folder, listed, shown and deleted', async () => {
    const long = `charts/${'x'.repeat(120)}/ä.txt`
    const at = packFolder('web', { [long]: 'kept', '.git/config': 'left out' })
    const uid = (await ok('pack', 'upload', at)).trim()
    const stored = platform.rooms.packs.packs.folderOf({ uid })
    expect(readFileSync(join(stored, long), 'utf8')).toBe('kept')
    expect(existsSync(join(stored, '.git'))).toBe(false)
    expect(await ok('pack', 'list')).toMatch(/^web +1\.0\.0 +addon/m)
    expect(await ok('pack', 'show', 'web@1.0.0')).toMatch(/Digest: sha256:[0-9a-f]{64}/)
    const twice = await run('pack', 'upload', at)
    expect(twice).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('there is a pack web 1.0.0') as string,
    })
    await ok('pack', 'delete', 'web', '--yes')
    expect((await run('pack', 'show', 'web')).exitCode).toBe(1)
  })

  it('of a project are found in it', async () => {
    await ok('project', 'create', 'north')
    const uid = (await ok('pack', 'upload', packFolder('api'), '--project', 'north')).trim()
    const { items } = await json<{ items: { metadata: { uid: string } }[] }>(
      'packs',
      'list',
      '--project',
      'north',
    )
    expect(items.map(({ metadata }) => metadata.uid)).toEqual([uid])
    expect(await ok('pack', 'show', 'api')).toMatch(/Project: north/)
  })

  it.each([
    [
      'a folder without pack.json',
      () => {
        const at = packFolder('bare')
        rmSync(join(at, 'pack.json'))
        return at
      },
      'has no pack.json',
    ],
    ['nothing', () => join(folder, 'nothing'), 'cannot be read'],
    [
      'a link',
      () => {
        const at = packFolder('linked')
        symlinkSync('/etc/passwd', join(at, 'README.md'))
        return at
      },
      'is not a regular file',
    ],
  ])('%s is refused before anything is sent', async (_, path, why) => {
    const { exitCode, stderr } = await run('pack', 'upload', path())
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(why)])
  })
})

describe('profiles', () => {
  it('are imported, shown, exported and deleted', async () => {
    const uid = (await ok('profile', 'import', profileFile('shop'), '--publish')).trim()
    await ok('profile', 'import', profileFile('shop', '1.1.0'))
    expect(await ok('profile', 'list')).toMatch(/^shop +1\.0\.0 +published +add-on +1/m)
    const ambiguous = await run('profile', 'show', 'shop')
    expect(ambiguous).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('more than one') as string,
    })
    expect(await ok('profile', 'show', 'shop@1.0.0')).toMatch(/web 1\.0\.0 \(addon\), not uploaded/)
    const exported = JSON.parse(await ok('profile', 'export', 'shop@1.0.0')) as ReturnType<
      typeof smallProfile
    >
    expect(exported.metadata.uid).toBe(uid)
    expect(exported.spec).toEqual(smallProfile('shop').spec)
    const asYaml = parse(await ok('profile', 'export', uid, '-o', 'yaml')) as typeof exported
    expect(asYaml.spec).toEqual(exported.spec)
    const values = await json<{ spec: { published: { packs: { values: string }[] } } }>(
      'profiles',
      'show',
      uid,
    )
    expect(values.spec.published.packs[0]?.values).toContain('password: ********')
    await ok('profile', 'delete', 'shop@1.1.0', '--yes')
    expect((await run('profile', 'show', 'shop@1.1.0')).exitCode).toBe(1)
  })

  it('give their variables, and take them back', async () => {
    await ok('profile', 'import', profileFile('mart'))
    expect(await ok('profile', 'variables', 'mart')).toMatch(/^PASSWORD .*\*{8} +sensitive/m)
    const { variables } = await json<{ variables: { name: string; defaultValue: string }[] }>(
      ...['profile', 'variables', 'mart'],
    )
    const file = join(folder, 'variables.json')
    writeFileSync(
      file,
      JSON.stringify({
        variables: variables.map((each) =>
          each.name === 'USER' ? { ...each, defaultValue: 'paula' } : each,
        ),
      }),
    )
    await ok('profile', 'variables', 'mart', '--set-from', file)
    const exported = JSON.parse(await ok('profile', 'export', 'mart')) as ReturnType<typeof smallProfile>
    expect(exported.spec.variables.map(({ defaultValue }) => defaultValue)).toEqual([
      'paula',
      'hunter-of-two',
    ])
  })

  it('that are invalid are refused with the problem', async () => {
    const file = join(folder, 'bad.yaml')
    writeFileSync(file, 'metadata: {name: a}\nspec: {version: one, template: {type: add-on, packs: []}}\n')
    const { exitCode, stderr } = await run('profile', 'import', file)
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('malformed version')])
  })
})
