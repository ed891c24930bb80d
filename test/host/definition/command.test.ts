import {
  copyFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createCtl, type Ctl } from '../../support/ctl.ts'
import { compressions, exportedProfile, rawTar, signedMembers } from '../../support/tar-bytes.ts'
import { authoringProgram } from '../../support/programs.ts'

let ctl: Ctl
beforeAll(() => {
  ctl = createCtl()
  copyFileSync(authoringProgram(), join(ctl.home, 'definition.cjs'))
  const packs = [
    ['one', 'edge-k3s'],
    ['two', 'web-shop'],
  ].map(([folder = '', name = '']) => {
    mkdirSync(at(folder))
    writeFileSync(join(at(folder), 'pack.json'), JSON.stringify({ name, version: '1.0', layer: 'addon' }))
    const values = 'pw: "{{ .spectro.var.secret }}"\ncharts: { x: { image: { repository: a/hunter2 } } }\n'
    return { name, layer: 'addon', tag: '1.0', uid: name, type: 'spectro', values }
  })
  const variables = [{ name: 'secret', isSensitive: true, defaultValue: 'hunter2' }]
  writeFileSync(at('p.json'), JSON.stringify(exportedProfile('u1', { type: 'add-on', packs }, { variables })))
})
afterAll(() => rmSync(ctl.home, { recursive: true }))

const at = (name: string) => join(ctl.home, name)

describe('edgehostctl definition', () => {
  it('edgehostctl definition builds from lists of files, shows the result without secrets, and finds it valid', async () => {
    const built = await ctl.run([
      ...['definition', 'build', '--pack', at('one'), at('two'), '--profile', at('p.json')],
      ...['--output', at('d.tar.zst'), '-o', 'json'],
    ])
    expect(built, built.stderr).toMatchObject({ exitCode: 0, stderr: '' })
    expect(JSON.parse(built.stdout)).toMatchObject({ name: 'profile u1', memberCount: 5 })
    const shown = await ctl.run(['definition', 'inspect', at('d.tar.zst')])
    expect(shown).toMatchObject({ exitCode: 0 })
    expect(shown.stdout).toContain('edge-k3s')
    expect(shown.stdout).toContain('********')
    expect(shown.stdout).toMatch(/web-shop +a\/\*{8} +guessed, tag unknown/)
    expect(shown.stdout).not.toContain('hunter2')
    const valid = await ctl.run(['definition', 'validate', at('d.tar.zst')])
    expect(valid, valid.stdout).toMatchObject({ exitCode: 0, stdout: '' })
  })

  it.each(['l.tgz', 'l.tar.zst'])('building %s does not write through a link beside it', async (name) => {
    writeFileSync(at('victim'), 'old')
    symlinkSync(at('victim'), at(`${name}.part`))
    const built = await ctl.run([
      ...['definition', 'build', '--pack', at('one'), at('two'), '--profile', at('p.json')],
      ...['--file', at(name)],
    ])
    expect(built, built.stderr).toMatchObject({ exitCode: 0 })
    rmSync(at(`${name}.part`))
    expect(readFileSync(at('victim'), 'utf8')).toBe('old')
    expect(await ctl.run(['definition', 'validate', at(name)])).toMatchObject({ exitCode: 0 })
  })

  it('a build uses all packs of a folder, and names a missing output folder', async () => {
    mkdirSync(at('packs'))
    for (const name of ['one', 'two']) cpSync(at(name), join(at('packs'), name), { recursive: true })
    const args = ['definition', 'build', '--pack', at('packs'), '--profile', at('p.json')]
    const built = await ctl.run([...args, '--output', at('folder.tgz'), '-o', 'json'])
    expect(built, built.stderr).toMatchObject({ exitCode: 0, stderr: '' })
    expect(JSON.parse(built.stdout)).toMatchObject({ memberCount: 5 })
    const refused = await ctl.run([...args, '--file', at('missing/d.tgz')])
    expect(refused).toMatchObject({
      exitCode: 1,
      stdout: '',
      stderr: `edgehostctl: the folder ${at('missing')} is missing; make it first: mkdir -p ${at('missing')}\n`,
    })
  })

  it('a build of what cannot be used ends with 1 and names the files of the author; a misspelt key is warned of', async () => {
    const profile = exportedProfile('u2', { type: 'add-on', packs: [] })
    const { spec } = profile as { spec: object }
    writeFileSync(
      at('slip.json'),
      JSON.stringify({
        ...profile,
        spec: { ...spec, variables: undefined, variabels: [{ name: 'replicas' }] },
      }),
    )
    const args = ['definition', 'build', '--profile', at('slip.json'), '--file', at('slip.tgz')]
    const slip = await ctl.run([...args, '-o', 'json'])
    expect(slip, slip.stdout).toMatchObject({ exitCode: 0 })
    expect(JSON.parse(slip.stdout)).toMatchObject({
      isValid: true,
      problems: [
        {
          ...{ code: 'FieldMisspelt', severity: 'warning', place: `${at('slip.json')}#spec.variabels` },
          message: expect.stringContaining('did you mean variables?') as string,
        },
      ],
    })
    // In a list the name of the variable is said, which its author knows.
    const variables = [{ name: 'replicas' }, { name: 'mode', requierd: true }]
    writeFileSync(at('slip.json'), JSON.stringify({ ...profile, spec: { ...spec, variables } }))
    const inList = JSON.parse(
      (await ctl.run([...args.slice(0, -1), at('list.tgz'), '-o', 'json'])).stdout,
    ) as object
    expect(inList).toMatchObject({
      problems: [
        { code: 'VariableUnused' },
        { code: 'VariableUnused' },
        {
          ...{ code: 'FieldMisspelt', place: `${at('slip.json')}#spec.variables[1].requierd` },
          message: 'of the variable mode is not known, so it has no effect; did you mean required?',
        },
      ],
    })
    const values = 'a: "{{ .spectro.var.nothing }}"\n'
    const packs = [{ name: 'web-shop', layer: 'addon', tag: '1.0', uid: 'w', type: 'spectro', values }]
    writeFileSync(at('unset.json'), JSON.stringify(exportedProfile('u3', { type: 'add-on', packs })))
    const unset = await ctl.run([
      ...['definition', 'build', '--profile', at('unset.json'), '--pack', at('two'), '--file', at('u.tgz')],
    ])
    expect(unset).toMatchObject({
      exitCode: 1,
      stderr: `edgehostctl: ${at('u.tgz')} is built and cannot be used: 1 error\n`,
    })
    expect(unset.stdout).toMatch(new RegExp(`^${at('unset.json')}#.*error`, 'm'))
    expect(await ctl.run(['definition', 'validate', at('u.tgz')])).toMatchObject({ exitCode: 1 })
  })

  it('definition validate ends with 1 and reports every problem with code and place', async () => {
    const files = { 'profiles/u1/profile.json': '{', 'packs/a-1/pack.json': '{}' }
    writeFileSync(at('bad.tgz'), compressions.gzip(rawTar(signedMembers(files))))
    const ended = await ctl.run(['definition', 'validate', at('bad.tgz'), '--output=json'])
    expect(ended.exitCode).toBe(1)
    const { isValid, problems } = JSON.parse(ended.stdout) as {
      isValid: boolean
      problems: { code: string }[]
    }
    expect(isValid).toBe(false)
    expect(problems.map(({ code }) => code)).toContain('JsonInvalid')
    const evil = rawTar([...signedMembers(files), { name: '../evil' }])
    writeFileSync(at('evil.tgz'), compressions.gzip(evil))
    const refused = await ctl.run(['definition', 'validate', at('evil.tgz')])
    expect(refused).toMatchObject({ exitCode: 1 })
    expect(refused.stdout).toContain('../evil: error ArchiveInvalid')
  })

  it.each([
    [['definition', 'build'], 2],
    [['definition', 'build', '--profile', 'none.json', '--file', 'd.zip'], 2],
    [['definition', 'build', '--profile', '/nowhere/none.json', '--file', '/nowhere/d.tgz'], 1],
    [['definition', 'build', '--profile', 'none.json', '--file', 'd.tgz', '--name=', '--no-color'], 2],
    [['definition', 'inspect'], 2],
    [['definition', 'inspect', '/nowhere/none.tgz'], 1],
    [['definition', 'inspect', 'x.tgz', '--host', 'box'], 2],
    [['status', '--output', 'x.tgz'], 2],
  ])('%j ends with %d and an error message', async (args, code) => {
    const ended = await ctl.run(args)
    expect(ended.exitCode).toBe(code)
    expect(ended.stderr).toMatch(/^edgehostctl: /)
    expect(ended.stderr).not.toContain('    at ')
  })

  it('edgehostctl definition leaves no other files', () => {
    expect(readdirSync(ctl.home).filter((name) => name.endsWith('.part'))).toEqual([])
  })
})
