import {
  createReadStream,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { buildArchive } from '../../../src/definition/build/build.ts'
import { planBuild } from '../../../src/definition/build/build-plan.ts'
import { extractDefinition, readDefinition } from '../../../src/definition/read/read-definition.ts'
import { defaultLimits as limits } from '../../../src/archive/limits.ts'
import { deriveUid } from '../../../src/definition/read/read-profile.ts'
import { exportedProfile } from '../../support/tar-bytes.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'definition-inputs-'))
  writePack('a-pack', 'alpha')
  writeFileSync(at('infra.json'), JSON.stringify(exportedProfile('u2')))
})
afterEach(() => rmSync(home, { recursive: true }))

const at = (...path: string[]) => join(home, ...path)
const paths = (...names: string[]) => names.map((name) => at(name))

function writePack(folder: string, name: string, version = '1.0.0') {
  mkdirSync(at(folder), { recursive: true })
  writeFileSync(at(folder, 'pack.json'), JSON.stringify({ name, version, layer: 'addon' }))
}

describe('what a definition is built of', () => {
  it('--pack may be a folder of packs, each of which is used once', () => {
    writePack('packs/a-pack', 'alpha')
    writePack('packs/b/b-pack', 'beta', '0.30.0-5.5.2026')
    writePack('c-pack', 'gamma')
    symlinkSync(at('c-pack'), at('packs/c-link'))
    symlinkSync(home, at('packs/home'))
    writeFileSync(at('packs/README.md'), 'none of them')
    const plan = planBuild({ profiles: paths('infra.json'), packs: paths('packs'), limits })
    expect(plan.problems).toEqual([])
    expect(plan.packs).toBe(3)
    const names = plan.members.map(({ name }) => name).filter((name) => name.endsWith('pack.json'))
    expect(names).toEqual(
      ['alpha-1.0.0', 'beta-0.30.0-5.5.2026', 'gamma-1.0.0'].map((each) => `packs/${each}/pack.json`),
    )
    const twice = planBuild({
      profiles: paths('infra.json'),
      packs: paths('packs', 'a-pack'),
      limits,
    })
    expect(twice.problems).toMatchObject([{ code: 'PackTwice', place: at('a-pack') }])
  })

  it('--pack has to contain a pack', () => {
    mkdirSync(at('none/below'), { recursive: true })
    const { problems } = planBuild({
      profiles: paths('infra.json'),
      packs: paths('none', 'infra.json'),
      limits,
    })
    expect(problems.map(({ code, place }) => [code, place])).toEqual([
      ['PackMissing', at('none')],
      ['FileMissing', at('infra.json')],
    ])
  })

  it('profiles without uid, also in YAML, become JSON with the uid that is derived from the name', async () => {
    const export_ = {
      ...exportedProfile('u1', { type: 'system', packs: [{ name: 'alpha' }] }),
      metadata: { name: 'shop', labels: {} },
    }
    writeFileSync(at('shop.json'), JSON.stringify(export_))
    writeFileSync(at('hall.yaml'), stringify({ ...export_, metadata: { name: 'hall' } }))
    writeFileSync(at('yard'), stringify({ ...export_, metadata: { name: 'yard' } }))
    const profiles = paths('shop.json', 'hall.yaml', 'yard')
    const plan = planBuild({ profiles, packs: paths('a-pack'), limits })
    expect(plan.problems).toEqual([])
    await buildArchive({ plan, file: at('d.tgz') })
    const { definition, problems } = await readDefinition(
      await extractDefinition({ source: createReadStream(at('d.tgz')), folder: at('staging') }),
    )
    expect(problems).toEqual([])
    const read = definition.profiles.map(({ uid, name, packs }) => [name, uid, packs[0]?.tag])
    expect(read.sort()).toEqual(['hall', 'shop', 'yard'].map((name) => [name, deriveUid(name), '1.0.0']))
    expect(
      JSON.parse(readFileSync(at(`staging/profiles/${deriveUid('hall')}/profile.json`), 'utf8')),
    ).toEqual({
      ...export_,
      metadata: { name: 'hall' },
    })
  })

  it('two profiles without uid may not have the same name', () => {
    const unnamed = { ...exportedProfile(), metadata: { name: 'shop' } }
    for (const file of ['one.json', 'two.json']) writeFileSync(at(file), JSON.stringify(unnamed))
    const { problems } = planBuild({ profiles: paths('one.json', 'two.json'), packs: [], limits })
    expect(problems).toMatchObject([{ code: 'ProfileTwice', place: at('two.json') }])
  })
})
