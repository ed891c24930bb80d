import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { applyPreset } from '../../../src/definition/build/presets.ts'
import { createCtl, type Ctl } from '../../support/ctl.ts'
import { exportedProfile } from '../../support/tar-bytes.ts'
import { authoringProgram } from '../../support/programs.ts'

const presets = `presets:
  - name: private
    displayName: Private Registry
    group: registry
    remove: ['registry.ingress.host']
    add: |
      registry:
        private: true
        host: { ip: "{{ .spectro.var.ip }}" }
  - name: public
    group: registry
    add: 'registry: { private: false }'
  - name: large
    add: 'replicas: 3'
`
const values = `# of the shop
registry:
  private: false # for now
  ingress:
    host: a.example
    path: /
replicas: 1
name: '{{ .spectro.system.cluster.name }}'
`

describe('a preset', () => {
  const preset = { name: 'p', displayName: '', group: '', remove: ['a.b', 'c', 'no.such'], add: '' }

  it('a preset removes paths, merges values, and keeps comments and macros', () => {
    const add = 'registry:\n  private: true\n  host: { ip: "{{ .spectro.var.ip }}" }\n'
    expect(applyPreset(values, { ...preset, remove: ['registry.ingress.host'], add })).toBe(`# of the shop
registry:
  private: true
  ingress:
    path: /
  host: { ip: "{{ .spectro.var.ip }}" }
replicas: 1
name: '{{ .spectro.system.cluster.name }}'
`)
  })

  it('a preset removes a key with dots and an item of a list, and ignores a missing path', () => {
    expect(applyPreset('a: { b: 1, d: 2 }\nc: 1\ne: 1\n', preset)).toBe('a: { d: 2 }\ne: 1\n')
    expect(applyPreset('x.io/y: 1\nl: [1, 2]\n', { ...preset, remove: ['x.io/y', 'l.0'] })).toBe('l: [ 2 ]\n')
  })

  it('a preset applies to a pack without values', () => {
    expect(applyPreset('', { ...preset, remove: [], add: 'a: 1' })).toBe('a: 1\n')
  })

  it.each([
    ['a: {', '', 'the text of the values is not valid YAML'],
    ['- a', '', 'the text of the values is not a mapping'],
    ['a: 1', 'b: {', 'the text of add is not valid YAML'],
  ])('a preset for the values %j with add %j is refused', (text, add, message) => {
    expect(() => applyPreset(text, { ...preset, add })).toThrow(message)
  })
})

let ctl: Ctl
const at = (name: string) => join(ctl.home, name)
beforeAll(() => {
  ctl = createCtl()
  copyFileSync(authoringProgram(), at('definition.cjs'))
  mkdirSync(at('shop'))
  const constraints = {
    dependencies: [{ packName: 'store', minVersion: '1.0', type: 'optional' }],
    resources: [{ type: 'cpu', minLimit: 100 }],
  }
  writeFileSync(
    at('shop/pack.json'),
    JSON.stringify({ name: 'shop', version: '1.0', layer: 'addon', constraints }),
  )
  writeFileSync(at('shop/values.yaml'), values)
  writeFileSync(at('shop/presets.yaml'), presets)
  writeFileSync(
    at('shop/schema.yaml'),
    'replicas:\n  schema: \'{{ required | format "${number:[1-3]}" }}\'\n',
  )
  const packs = [{ name: 'shop', layer: 'addon', tag: '1.0', uid: 'shop', type: 'spectro' }]
  const variables = [{ name: 'ip', defaultValue: '127.0.0.1' }]
  writeFileSync(at('p.json'), JSON.stringify(exportedProfile('u1', { type: 'add-on', packs }, { variables })))
})
afterAll(() => rmSync(ctl.home, { recursive: true }))

const build = (...wishes: string[]) =>
  ctl.run([
    ...['definition', 'build', '--profile', at('p.json'), '--pack', at('shop')],
    ...['--preset', ...wishes, '--file', at('d.tgz')],
  ])

describe('edgehostctl definition build --preset', () => {
  it('build --preset makes the values of a pack valid; inspect shows the presets', async () => {
    const built = await build('shop:private', 'shop:large')
    expect(built, built.stdout + built.stderr).toMatchObject({ exitCode: 0 })
    const valid = await ctl.run(['definition', 'validate', at('d.tgz')])
    expect(valid, valid.stdout).toMatchObject({ exitCode: 0, stdout: '' })
    const { stdout } = await ctl.run(['definition', 'inspect', at('d.tgz'), '-o', 'json'])
    const [pack] = (JSON.parse(stdout) as { packs: Record<string, unknown>[] }).packs
    expect(pack).toMatchObject({
      dependencies: [{ packName: 'store', layer: '', minVersion: '1.0', maxVersion: '', type: 'optional' }],
      presets: ['private', 'public', 'large'],
    })
    const table = (await ctl.run(['definition', 'inspect', at('d.tgz')])).stdout
    expect(table).toMatch(/shop +optional +store from 1\.0/)
    expect(table).toMatch(/shop:private +Private Registry +registry/)
  })

  it.each([
    [['shop'], '--preset shop: error PresetInvalid: must be written as PACK:NAME'],
    [['bar:x'], '--preset bar:x: error PresetInvalid: names a pack without a folder; give it with --pack'],
    [
      ['shop:x'],
      '--preset shop:x: error PresetInvalid: is not a preset of shop 1.0, which has private, public, large',
    ],
    [
      ['shop:private', 'shop:public'],
      '--preset shop:public: error PresetInvalid: is in the same group (registry) as private; choose one of them',
    ],
  ])('build refuses --preset %j', async (wishes, message) => {
    const built = await build(...wishes)
    expect(built.exitCode).toBe(1)
    expect(built.stdout).toContain(message)
  })
})
